/* client/session/local_store.h - the key-value store of a world inside this process: what is there now, nobody waits here.
 *
 * Limits, semantics and sentences are those of meshd's store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_LOCAL_STORE_H
#define SESSION_LOCAL_STORE_H

#include "base/buf.h"
#include "base/map.h"
#include "session/control.h"

struct local_store {
    struct map entries; /* struct entry */
};

void local_store_fini(struct local_store *s);

bool local_store_has(const struct local_store *s, struct bytes key);
int local_store_get(const struct local_store *s, struct bytes key, struct buf *ret_value); /* MESH_ENOTFOUND */
int local_store_set(struct local_store *s, struct bytes key, struct bytes value);
int local_store_add(struct local_store *s, struct bytes key, int64_t delta, int64_t *ret_value);
/* ret_value: what stands then, also with MESH_EEXIST. */
int local_store_compare_set(struct local_store *s, const struct store_swap *swap, struct buf *ret_value);
int local_store_delete(struct local_store *s, struct bytes key); /* MESH_ENOTFOUND */

#endif
