/* proto/base/call_words.h - a collective call in words, the same ones in errors, in meshd's verdicts and in meshctl.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CALL_WORDS_H
#define BASE_CALL_WORDS_H

#include <mesh/debug.h>

#include <stddef.h>
#include <stdint.h>

struct call_words {
    uint8_t kind, dtype, op; /* op 0: nothing is reduced */
    int32_t root;            /* -1: there is none; of a message: the peer's group rank, negative: any */
    uint32_t splits;         /* digest of split sizes, 0: none; of a message: its tag, UINT32_MAX: any */
    uint64_t count;
};

const char *comm_kind_name(mesh_comm_kind kind); /* "all_reduce"; "?" */
/* "all_reduce sum f32[1024]", of any bytes whatever; returns buf. */
const char *call_words_text(const struct call_words *c, char *buf, size_t cap);

#endif
