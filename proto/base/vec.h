/* proto/base/vec.h - a growable array of one type.
 *
 *     VEC(struct peer) peers = { 0 };
 *     struct peer *p = VEC_PUSH(&peers);     NULL: out of memory
 *     for (size_t i = 0; i < peers.n; i++) use(&peers.at[i]);
 *     VEC_FINI(&peers);
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        size_t n, cap;                                                                                                 \
    }

/* Makes room for n items in all; false: out of memory, nothing changed. */
bool vec_reserve_(void **at, size_t *cap, size_t n, size_t item_bytes);

#define VEC_RESERVE(v, count) vec_reserve_((void **)&(v)->at, &(v)->cap, (count), sizeof *(v)->at)
#define VEC_PUSH(v)           (VEC_RESERVE((v), (v)->n + 1) ? &(v)->at[(v)->n++] : NULL)
#define VEC_REMOVE(v, i)      ((v)->at[i] = (v)->at[--(v)->n]) /* does not keep the order */
#define VEC_FINI(v)           (mem_free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
