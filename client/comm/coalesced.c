/* client/comm/coalesced.c - several small buffers reduced in one call.
 *
 * The buffers are copied one behind the other into a parcel, reduced as one, and copied back by whoever waits for the
 * call.  A digest of their lengths goes with the call, so that ranks which cut the same number of elements differently
 * find out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/coalesced.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/map.h"
#include "comm/collective.h"
#include "comm/work.h"

struct piece {
    void *at;
    size_t bytes;
};

struct parcel {
    uint8_t *whole;
    int n;
    struct piece pieces[];
};

struct buffers {
    void *const *at;
    const size_t *counts;
    int n;
};

static int measure(const struct buffers *b, size_t element_bytes, size_t *ret_total, uint32_t *ret_digest)
{
    size_t total = 0;
    uint64_t digest = 0;
    for (int i = 0; i < b->n; i++) {
        uint64_t n = b->counts[i];
        if (n > 0 && b->at[i] == NULL) {
            return err_set(MESH_EINVAL, "buffer %d is NULL, but for %zu elements", i, b->counts[i]);
        }
        if (n > MEMORY_MAX_BYTES / element_bytes || total + n > MEMORY_MAX_BYTES / element_bytes) {
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

/* The buffers of `total` elements together; NULL: error set. */
static struct parcel *parcel_pack(const struct buffers *b, size_t element_bytes, size_t total)
{
    struct parcel *p = mem_alloc(sizeof *p + (size_t)b->n * sizeof p->pieces[0]);
    uint8_t *whole = mem_alloc(total * element_bytes);
    if (p == NULL || whole == NULL) {
        (void)mem_free(p);
        (void)mem_free(whole);
        (void)err_no_memory(total * element_bytes, "several buffers in one");
        return NULL;
    }
    *p = (struct parcel){ .whole = whole, .n = b->n };
    for (int i = 0; i < b->n; i++) {
        p->pieces[i] = (struct piece){ .at = b->at[i], .bytes = b->counts[i] * element_bytes };
        if (p->pieces[i].bytes > 0) {
            memcpy(whole, b->at[i], p->pieces[i].bytes);
        }
        whole += p->pieces[i].bytes;
    }
    return p;
}

void parcel_open(struct parcel *p, bool is_well)
{
    if (p == NULL) {
        return;
    }
    const uint8_t *whole = p->whole;
    for (int i = 0; i < p->n && is_well; i++) {
        if (p->pieces[i].bytes > 0) {
            memcpy(p->pieces[i].at, whole, p->pieces[i].bytes);
        }
        whole += p->pieces[i].bytes;
    }
    (void)mem_free(p->whole);
    (void)mem_free(p);
}

/* call: with dtype and op; becomes the call on the parcel. */
static int prepare(struct collective_call *call, const struct buffers *b, struct parcel **ret_parcel)
{
    size_t total = 0;
    int r = reduce_check(call->dtype, call->op);
    if (r == 0 && (b->n < 0 || (b->n > 0 && (b->at == NULL || b->counts == NULL)))) {
        r = err_set(MESH_EINVAL, "%d buffers: their list or that of their counts is NULL", b->n);
    }
    r = r < 0 ? r : measure(b, dtype_size(call->dtype), &total, &call->parts);
    if (r < 0) {
        return r;
    }
    struct parcel *p = parcel_pack(b, dtype_size(call->dtype), total);
    if (p == NULL) {
        return err_last()->status;
    }
    call->count = total;
    call->out = p->whole;
    *ret_parcel = p;
    return 0;
}

int mesh_all_reduce_coalesced(void *const *bufs, const size_t *counts, int n, mesh_dtype t, mesh_reduce_op op,
                              mesh_group *g)
{
    err_enter(__func__);
    struct parcel *parcel;
    struct collective_call call = { .kind = MESH_COMM_ALL_REDUCE, .dtype = t, .op = op };
    int r = prepare(&call, &(struct buffers){ .at = bufs, .counts = counts, .n = n }, &parcel);
    if (r < 0) {
        return r;
    }
    r = collective_run(g, &call);
    parcel_open(parcel, r == 0);
    return r;
}

mesh_work *mesh_all_reduce_coalesced_async(void *const *bufs, const size_t *counts, int n, mesh_dtype t,
                                           mesh_reduce_op op, mesh_group *g)
{
    err_enter(__func__);
    struct parcel *parcel;
    struct collective_call call = { .kind = MESH_COMM_ALL_REDUCE, .dtype = t, .op = op };
    if (prepare(&call, &(struct buffers){ .at = bufs, .counts = counts, .n = n }, &parcel) < 0) {
        return NULL;
    }
    struct mesh_work *w = collective_start(g, &call);
    if (w == NULL) {
        parcel_open(parcel, false);
        return NULL;
    }
    w->parcel = parcel; /* only who waits looks at it, and that is this thread */
    return w;
}
