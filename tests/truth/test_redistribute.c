/* tests/truth/test_redistribute.c - every layout to every layout, on every small mesh, against the logical value.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "dtensor/redistribute.h"
#include "harness/check_main.h"
#include "harness/placements.h"
#include "harness/ranks.h"
#include "tensor/shape.h"
#include "truth/parts.h"

#define TOLERANCE 1e-12 /* f64: a few additions */

struct job {
    mesh_shape mesh;
    mesh_dtype dtype;
    int n_kinds;    /* how many of kinds_of(): MAIN_KINDS, or all */
    int stride;     /* tries every stride-th pair of lists, a prime that no number of lists is a multiple of */
    bool is_turned; /* the mesh has its ranks backwards */
};

/* Even, uneven, empty and nested shards, and nothing at all. */
static const mesh_shape shapes[] = {
    { 2, { 16, 24 } }, { 2, { 5, 3 } }, { 2, { 0, 3 } }, { 1, { 2 } }, { 1, { 7 } }, { 0, { 0 } },
};

/* R, sum and the shards; then reductions and strides, which take the same ways. */
#define MAIN_KINDS 4
#define ALL_KINDS  10

/* Of R, S, sum, every pair of lists on every mesh up to three dims is tried.  Of the lists with other reductions and
 * strides every pair on one dim, and a sample on more: on (2,2,2) there are a million, and a mesh dim's move does not
 * see what the others hold but for the splits of its own tensor dim. */
static const struct job jobs[] = {
    { { 1, { 2 } }, MESH_F64, ALL_KINDS, 1, false },
    { { 1, { 3 } }, MESH_F64, ALL_KINDS, 1, false },
    { { 1, { 4 } }, MESH_F64, ALL_KINDS, 1, false },
    { { 1, { 4 } }, MESH_I64, ALL_KINDS, 1, true },
    { { 2, { 2, 2 } }, MESH_F64, MAIN_KINDS, 1, false },
    { { 2, { 2, 3 } }, MESH_F64, MAIN_KINDS, 1, true },
    { { 2, { 4, 2 } }, MESH_F64, MAIN_KINDS, 1, false },
    { { 2, { 1, 4 } }, MESH_F64, MAIN_KINDS, 1, false },
    { { 2, { 2, 2 } }, MESH_F64, ALL_KINDS, 7, false },
    { { 2, { 2, 3 } }, MESH_I32, ALL_KINDS, 11, false },
    { { 2, { 4, 2 } }, MESH_F64, ALL_KINDS, 13, true },
    { { 3, { 2, 2, 2 } }, MESH_F64, MAIN_KINDS, 1, false },
    { { 3, { 2, 1, 3 } }, MESH_F64, MAIN_KINDS, 3, true },
    { { 3, { 2, 2, 2 } }, MESH_F64, ALL_KINDS, 997, true },
    { { 4, { 2, 2, 2, 2 } }, MESH_F64, MAIN_KINDS, 197, false },
    { { 4, { 2, 1, 2, 2 } }, MESH_F64, ALL_KINDS, 99991, true },
};

/* Strides of 2 and 3 chunks: 3 leaves short ones. */
static int kinds_of(const struct job *j, mesh_shape s, mesh_placement *ret_kinds)
{
    static const mesh_reduce_op ops[] = { MESH_MAX, MESH_MIN, MESH_AVG };
    bool is_float = dtype_kind(j->dtype) == DTYPE_FLOAT;
    int n = 0;
    ret_kinds[n++] = mesh_replicate();
    ret_kinds[n++] = mesh_partial(MESH_SUM);
    for (int d = 0; d < s.ndim; d++) {
        ret_kinds[n++] = mesh_shard(d);
    }
    for (int k = 0; j->n_kinds == ALL_KINDS && k < (is_float ? 3 : 2); k++) {
        ret_kinds[n++] = mesh_partial(ops[k]);
    }
    for (int d = 0; j->n_kinds == ALL_KINDS && d < s.ndim; d++) {
        ret_kinds[n++] = mesh_strided_shard(d, 2 + d);
    }
    if (j->n_kinds == ALL_KINDS && s.ndim > 0) {
        ret_kinds[n++] = mesh_strided_shard(0, 3);
    }
    return n;
}

static mesh_placements list_numbered(const mesh_placement *kinds, int n_kinds, int ndim, int64_t number)
{
    mesh_placements p = { .n = ndim };
    for (int m = 0; m < ndim; m++, number /= n_kinds) {
        p.at[m] = kinds[number % n_kinds];
    }
    return p;
}

static struct cut cut_on(const mesh_device_mesh *m, const mesh_placements *p)
{
    struct cut c = { .ndim = m->ndim, .p = *p };
    memcpy(c.size, m->size, sizeof c.size);
    return c;
}

/* This rank's place on the mesh, row-major. */
static int place_on(const mesh_device_mesh *m)
{
    int place = 0;
    for (int i = 0; i < m->ndim; i++) {
        place = place * m->size[i] + m->coordinate[i];
    }
    return place;
}

static mesh_dtensor *from_parts(const struct mesh_tensor *whole, mesh_device_mesh *m, const mesh_placements *p)
{
    struct cut c = cut_on(m, p);
    return dtensor_new(m, whole->shape, whole->dtype, p, cut_part(whole, &c, place_on(m), SPLIT_UNEVEN));
}

static bool is_pending(const mesh_placements *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind == MESH_IS_PARTIAL) {
            return true;
        }
    }
    return false;
}

/* Without pending reductions this rank's part is a slice of the value; else the whole must come out again. */
static int check_result(const struct mesh_tensor *whole, mesh_dtensor *y, const char *what)
{
    struct cut c = cut_on(y->mesh, &y->placements);
    bool pending = is_pending(&y->placements);
    struct mesh_tensor *got = pending ? dtensor_full(y) : tensor_ref(y->local);
    struct mesh_tensor *want =
        pending ? tensor_ref((struct mesh_tensor *)whole) : cut_part(whole, &c, place_on(y->mesh), SPLIT_UNEVEN);
    bool is_right = got && tensors_are_near(got, want, TOLERANCE) &&
                    shape_equal(y->local->shape, layout_local_shape(whole->shape, c.size, y->mesh->coordinate, &c.p));
    tensor_unref(got);
    tensor_unref(want);
    return is_right ? 0 : ranks_complain(__FILE__, __LINE__, "%s: wrong; %s", what, mesh_last_error()->message);
}

static int try_pair(const struct mesh_tensor *whole, mesh_device_mesh *m, const mesh_placements *from,
                    const mesh_placements *to)
{
    char what[300], a[96], b[96], shape[SHAPE_TEXT_BYTES], mesh[MESH_TEXT_BYTES];
    mesh_dtensor *x = from_parts(whole, m, from);
    mesh_dtensor *y = x ? dtensor_redistribute(x, to) : NULL;
    snprintf(what, sizeof what, "%s on %s: %s -> %s", shape_text(whole->shape, shape, sizeof shape),
             mesh_text(m, mesh, sizeof mesh), mesh_placements_text(*from, a, sizeof a),
             mesh_placements_text(*to, b, sizeof b));
    if (!y) {
        return ranks_complain(__FILE__, __LINE__, "%s: %s", what, mesh_last_error()->message);
    }
    return check_result(whole, y, what);
}

static int try_shape(const struct job *j, mesh_device_mesh *m, mesh_shape shape)
{
    mesh_placement kinds[ALL_KINDS];
    struct mesh_tensor *whole = sample_tensor(shape, j->dtype, 3);
    mesh_scope *scope = mesh_scope_begin();
    int n_kinds = kinds_of(j, shape, kinds), r = 0;
    int64_t n = 1;
    for (int i = 0; i < m->ndim; i++) {
        n *= n_kinds;
    }
    for (int64_t k = 0; r == 0 && k < n * n; k += j->stride) {
        mesh_placements from = list_numbered(kinds, n_kinds, m->ndim, k / n);
        mesh_placements to = list_numbered(kinds, n_kinds, m->ndim, k % n);
        if (!placements_mix_reductions(&from) && !placements_mix_reductions(&to)) {
            r = mesh_scope_next(scope) ? try_pair(whole, m, &from, &to) : -1;
        }
    }
    int end = mesh_scope_end(scope);
    tensor_unref(whole);
    return r < 0 ? r : end;
}

static mesh_device_mesh *mesh_of(const struct job *j)
{
    int ranks[PARTS_MAX_RANKS], n = mesh_world_size();
    for (int i = 0; i < n; i++) {
        ranks[i] = n - 1 - i;
    }
    return j->is_turned ? mesh_new_device_mesh("cpu", j->mesh, ranks, NULL)
                        : mesh_init_device_mesh("cpu", j->mesh, NULL);
}

static int try_job(void *arg)
{
    const struct job *j = arg;
    mesh_device_mesh *m = mesh_of(j);
    REQUIRE(m != NULL);
    for (size_t k = 0; k < ARRAY_SIZE(shapes); k++) {
        REQUIRE_OK(try_shape(j, m, shapes[k]));
    }
    return 0;
}

START_TEST(every_layout_becomes_every_other)
{
    struct job j = jobs[_i];
    int n = 1;
    for (int i = 0; i < j.mesh.ndim; i++) {
        n *= (int)j.mesh.dim[i];
    }
    ranks_run(n, try_job, &j);
}
END_TEST

/* --- what it costs ------------------------------------------------------------------------------------------------ */

struct price {
    mesh_shape mesh, shape;
    mesh_placements from, to;
    mesh_comm_kind kind; /* 0: nothing is sent */
    int64_t bytes;       /* f64, all ranks together; -1: not stated */
};

static const struct price prices[] = {
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { S_(0) } }, { 1, { R_ } }, MESH_COMM_ALL_GATHER, 3 * 1024 },
    { { 1, { 4 } }, { 2, { 5, 3 } }, { 1, { S_(0) } }, { 1, { R_ } }, MESH_COMM_ALL_GATHER, 3 * 120 }, /* no padding */
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { S_(0) } }, { 1, { S_(1) } }, MESH_COMM_ALL_TO_ALL, 768 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { P_ } }, { 1, { S_(1) } }, MESH_COMM_REDUCE_SCATTER, -1 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { P_ } }, { 1, { R_ } }, MESH_COMM_ALL_REDUCE, -1 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { R_ } }, { 1, { S_(0) } }, 0, 0 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { S_(1) } }, { 1, { P_ } }, 0, 0 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { R_ } }, { 1, { P_ } }, 0, 0 },
    { { 1, { 4 } }, { 2, { 0, 8 } }, { 1, { S_(0) } }, { 1, { R_ } }, 0, 0 },
    { { 2, { 4, 1 } }, { 2, { 16, 8 } }, { 2, { S_(0), S_(1) } }, { 2, { S_(0), R_ } }, 0, 0 },
    { { 2, { 4, 1 } }, { 2, { 16, 8 } }, { 2, { S_(0), P_ } }, { 2, { S_(0), S_(0) } }, 0, 0 },
    { { 2, { 2, 2 } }, { 2, { 16, 8 } }, { 2, { S_(0), S_(1) } }, { 2, { S_(0), R_ } }, MESH_COMM_ALL_GATHER, 1024 },
    /* never by way of the whole */
    { { 2, { 2, 2 } }, { 2, { 16, 8 } }, { 2, { S_(0), S_(0) } }, { 2, { R_, S_(0) } }, MESH_COMM_ALL_TO_ALL, 1536 },
    { { 2, { 2, 2 } }, { 2, { 16, 8 } }, { 2, { S_(0), S_(1) } }, { 2, { S_(1), S_(0) } }, MESH_COMM_ALL_TO_ALL, 512 },
    { { 2, { 2, 2 } }, { 2, { 16, 8 } }, { 2, { S_(1), S_(1) } }, { 2, { S_(1), S_(0) } }, MESH_COMM_ALL_TO_ALL, 512 },
    { { 2, { 2, 2 } }, { 2, { 16, 8 } }, { 2, { S_(0), P_ } }, { 2, { S_(0), S_(0) } }, MESH_COMM_REDUCE_SCATTER, -1 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { S_(0) } }, { 1, { SS_(0, 2) } }, MESH_COMM_ALL_TO_ALL, 768 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { SS_(0, 2) } }, { 1, { S_(1) } }, MESH_COMM_ALL_TO_ALL, 768 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { SS_(0, 2) } }, { 1, { SS_(0, 4) } }, MESH_COMM_ALL_TO_ALL, -1 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { SS_(0, 2) } }, { 1, { R_ } }, MESH_COMM_ALL_GATHER, 3 * 1024 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { P_ } }, { 1, { SS_(1, 2) } }, MESH_COMM_REDUCE_SCATTER, -1 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { R_ } }, { 1, { SS_(0, 2) } }, 0, 0 },
    { { 1, { 4 } }, { 2, { 16, 8 } }, { 1, { SS_(0, 2) } }, { 1, { P_ } }, 0, 0 },
    /* the other order of nesting, and back */
    { { 2, { 2, 2 } },
      { 2, { 16, 8 } },
      { 2, { SS_(0, 2), S_(0) } },
      { 2, { S_(0), S_(0) } },
      MESH_COMM_ALL_TO_ALL,
      512 },
    { { 2, { 2, 2 } },
      { 2, { 16, 8 } },
      { 2, { SS_(0, 2), S_(0) } },
      { 2, { R_, S_(0) } },
      MESH_COMM_ALL_TO_ALL,
      1024 },
};

static int pay(void *arg)
{
    const struct price *p = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", p->mesh, NULL);
    struct mesh_tensor *whole = sample_tensor(p->shape, MESH_F64, 1);
    REQUIRE(m != NULL);
    mesh_dtensor *x = from_parts(whole, m, &p->from);
    mesh_comm_reset();
    mesh_dtensor *y = dtensor_redistribute(x, &p->to);
    int64_t bytes = 0;
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        uint64_t count = mesh_comm_count((mesh_comm_kind)kind);
        REQUIRE(count == (p->kind != 0 && kind == (int)p->kind));
        bytes += (int64_t)mesh_comm_bytes((mesh_comm_kind)kind);
    }
    REQUIRE_OK(check_result(whole, y, "priced"));
    REQUIRE_OK(mesh_all_reduce(&bytes, 1, MESH_I64, MESH_SUM, mesh_world()));
    REQUIRE(p->bytes < 0 || bytes == p->bytes);
    tensor_unref(whole);
    return 0;
}

START_TEST(a_redistribution_sends_what_the_table_says_and_no_more)
{
    struct price p = prices[_i];
    ranks_run(4, pay, &p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("redistribute");
    TCase *t = tcase_create("redistribute");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_layout_becomes_every_other, 0, (int)ARRAY_SIZE(jobs));
    tcase_add_loop_test(t, a_redistribution_sends_what_the_table_says_and_no_more, 0, (int)ARRAY_SIZE(prices));
    suite_add_tcase(s, t);
    return s;
}
