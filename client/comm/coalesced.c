/* client/comm/coalesced.c - several small buffers reduced in one call.
 *
 * The buffers are copied one behind the other, reduced as one, and copied back.  A digest of their lengths goes with the call,
 * so that ranks which cut the same number of elements differently find out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/map.h"
#include "comm/collective.h"
#include "comm/group.h"

struct buffers {
    void *const *at;
    const size_t *counts;
    int n;
};

static void copy(uint8_t *whole, const struct buffers *b, size_t element_bytes, bool is_back)
{
    for (int i = 0; i < b->n; i++) {
        size_t bytes = b->counts[i] * element_bytes;
        if (bytes > 0) {
            memcpy(is_back ? b->at[i] : whole, is_back ? whole : b->at[i], bytes);
        }
        whole += bytes;
    }
}

static int measure(const struct buffers *b, size_t element_bytes, size_t *ret_total, uint32_t *ret_digest)
{
    size_t total = 0;
    uint64_t digest = 0;
    for (int i = 0; i < b->n; i++) {
        uint64_t n = b->counts[i];
        if (n > 0 && b->at[i] == NULL) {
            return err_set(MESH_EINVAL, "buffer %d is NULL, but for %zu elements", i, b->counts[i]);
        }
        if (n > SIZE_MAX / 8 / element_bytes || total + n > SIZE_MAX / 8 / element_bytes) {
            return err_set(MESH_ETOOLARGE, "%zu elements on top of %zu do not fit into memory", b->counts[i], total);
        }
        total += b->counts[i];
        digest = hash_bytes(&n, sizeof n, digest);
    }
    uint32_t folded = (uint32_t)(digest ^ (digest >> 32));
    *ret_total = total;
    *ret_digest = b->n > 1 ? (folded != 0 ? folded : 1) : 0;
    return 0;
}

int mesh_all_reduce_coalesced(void *const *bufs, const size_t *counts, int n, mesh_dtype t, mesh_reduce_op op,
                              mesh_group *g)
{
    err_enter(__func__);
    const struct buffers b = { .at = bufs, .counts = counts, .n = n };
    size_t total = 0;
    struct collective_call call = { .kind = MESH_COMM_ALL_REDUCE, .dtype = t, .op = op };
    int r = reduce_check(t, op);
    if (r == 0 && (n < 0 || (n > 0 && (bufs == NULL || counts == NULL)))) {
        r = err_set(MESH_EINVAL, "%d buffers: their list or that of their counts is NULL", n);
    }
    r = r < 0 ? r : measure(&b, dtype_size(t), &total, &call.parts);
    if (r < 0) {
        return r;
    }
    uint8_t *whole = mem_alloc(total * dtype_size(t) + 1);
    if (whole == NULL) {
        return err_no_memory(total * dtype_size(t), "several buffers in one");
    }
    copy(whole, &b, dtype_size(t), false);
    call.count = total;
    call.out = whole;
    r = collective_run(g, &call);
    if (r == 0) {
        copy(whole, &b, dtype_size(t), true);
    }
    (void)mem_free(whole);
    return r;
}
