/* client/comm/choose.c - the table of algorithms by collective, group size and bytes; the first row that fits counts.
 *
 * Only facts that are equal on all ranks may stand here, else ranks would run different plans.  What carries the bytes is none
 * of them: the limits are a compromise of loopback TCP and unix sockets, measured on two cores with each plan forced in turn
 * (tests/bench/RESULTS.md).  include/mesh/collective.h tells them to users.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/choose.h"

#include "base/check.h"
#include "base/util.h"
#include "comm/reduce.h"

#define ANY_SIZE  0
#define ANY_BYTES UINT64_MAX
#define KIB       (UINT64_C(1) << 10)
#define MIB       (UINT64_C(1) << 20)

struct choice {
    mesh_comm_kind kind;
    int min_size, max_size;
    uint64_t max_bytes;
    enum plan_algorithm algorithm;
};

/* clang-format off */
static const struct choice choices[] = {
    { MESH_COMM_ALL_REDUCE,     1, 2,         32 * KIB, PLAN_ALL_REDUCE_DOUBLING },
    { MESH_COMM_ALL_REDUCE,     3, ANY_SIZE,  64 * KIB, PLAN_ALL_REDUCE_DOUBLING },
    { MESH_COMM_ALL_REDUCE,     1, 7,        ANY_BYTES, PLAN_ALL_REDUCE_PAIRWISE },
    { MESH_COMM_ALL_REDUCE,     8, ANY_SIZE,   1 * MIB, PLAN_ALL_REDUCE_FOLD },
    { MESH_COMM_ALL_REDUCE,     8, ANY_SIZE, ANY_BYTES, PLAN_ALL_REDUCE_RING },
    { MESH_COMM_REDUCE_SCATTER, 3, ANY_SIZE,  16 * KIB, PLAN_REDUCE_SCATTER_DOUBLING },
    { MESH_COMM_REDUCE_SCATTER, 8, ANY_SIZE, 512 * KIB, PLAN_REDUCE_SCATTER_FOLD },
    { MESH_COMM_REDUCE_SCATTER, 1, ANY_SIZE, ANY_BYTES, PLAN_REDUCE_SCATTER_PAIRWISE },
    { MESH_COMM_ALL_GATHER,     4, ANY_SIZE,  32 * KIB, PLAN_ALL_GATHER_BRUCK },
    { MESH_COMM_ALL_GATHER,     1, ANY_SIZE, ANY_BYTES, PLAN_ALL_GATHER_DIRECT },
    { MESH_COMM_ALL_TO_ALL,     1, ANY_SIZE, ANY_BYTES, PLAN_ALL_TO_ALL_DIRECT },
    { MESH_COMM_BROADCAST,      1, 2,        ANY_BYTES, PLAN_BROADCAST_FLAT },
    { MESH_COMM_BROADCAST,      3, 8,         64 * KIB, PLAN_BROADCAST_FLAT },
    { MESH_COMM_BROADCAST,      9, ANY_SIZE,  64 * KIB, PLAN_BROADCAST_TREE },
    { MESH_COMM_BROADCAST,      3, ANY_SIZE, ANY_BYTES, PLAN_BROADCAST_SCATTER },
    { MESH_COMM_BARRIER,        1, ANY_SIZE, ANY_BYTES, PLAN_BARRIER_DISSEMINATION },
    { MESH_COMM_REDUCE,         1, ANY_SIZE,  32 * KIB, PLAN_REDUCE_FLAT },
    { MESH_COMM_REDUCE,         1, ANY_SIZE, ANY_BYTES, PLAN_REDUCE_FOLD },
    { MESH_COMM_GATHER,         1, ANY_SIZE, ANY_BYTES, PLAN_GATHER_DIRECT },
    { MESH_COMM_SCATTER,        1, ANY_SIZE, ANY_BYTES, PLAN_SCATTER_DIRECT },
};

/* Of dtypes that are folded: only these keep every part whole until all are together. */
static const struct choice folding[] = {
    { MESH_COMM_ALL_REDUCE,     1, ANY_SIZE, ANY_BYTES, PLAN_ALL_REDUCE_FOLD },
    { MESH_COMM_REDUCE_SCATTER, 1, ANY_SIZE, ANY_BYTES, PLAN_REDUCE_SCATTER_FOLD },
};
/* clang-format on */

static enum plan_algorithm first_fit(const struct choice *rows, size_t n, const struct choice *call)
{
    for (size_t i = 0; i < n; i++) {
        const struct choice *c = &rows[i];
        if (c->kind == call->kind && call->min_size >= c->min_size &&
            (c->max_size == ANY_SIZE || call->min_size <= c->max_size) && call->max_bytes <= c->max_bytes) {
            return c->algorithm;
        }
    }
    return PLAN_NONE;
}

enum plan_algorithm plan_choose(mesh_comm_kind kind, mesh_dtype t, int size, uint64_t bytes)
{
    const struct choice call = { .kind = kind, .min_size = size, .max_bytes = bytes };
    enum plan_algorithm a = reduce_is_folded(t) ? first_fit(folding, ARRAY_SIZE(folding), &call) : PLAN_NONE;
    a = a != PLAN_NONE ? a : first_fit(choices, ARRAY_SIZE(choices), &call);
    CHECK(a != PLAN_NONE); /* every collective has a row for every size */
    return a;
}
