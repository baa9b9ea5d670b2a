/* client/comm/call.h - one collective call, checked and brought into one form: what every rank must have in common.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_CALL_H
#define COMM_CALL_H

#include "comm/collective.h"
#include "comm/plan.h"
#include "wire/frame.h"

struct call {
    mesh_comm_kind kind;
    mesh_dtype dtype;
    mesh_reduce_op op; /* 0 where nothing is reduced */
    int root;          /* -1 where there is none */
    size_t count;
    const size_t *in_counts, *out_counts; /* NULL: all parts have `count` elements; borrowed */
    size_t in_rows;                       /* 1: parts one after another */
    uint32_t splits;                      /* digest of split sizes that all ranks share; 0: none */
    uint64_t total;                       /* elements of all parts together */
    enum plan_algorithm algorithm;        /* PLAN_NONE: to be chosen */
    const void *in;
    void *out;
};

/* 0, or MESH_EINVAL, MESH_EUNSUPPORTED, MESH_ETOOLARGE (ret_call is then worth nothing): before any traffic. */
int call_prepare(struct call *ret_call, const struct collective_call *given, int size, int rank);

/* The header that every frame of this call has; length, step (and of all_to_all: count) are each frame's own. */
void call_header(const struct call *c, struct frame_header *ret_header);

/* "all_reduce sum f32[1024]", from a header; returns buf. */
const char *call_text(const struct frame_header *h, char *buf, size_t cap);

#endif
