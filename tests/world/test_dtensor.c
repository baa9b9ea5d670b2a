/* tests/world/test_dtensor.c - making DTensors and looking into them, on several ranks.  Ids are those of the case list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)
#define R       mesh_replicate()
#define S(d)    mesh_shard(d)
#define P(op)   mesh_partial(op)

static int failed_with(mesh_scope *s, int status, const char *says)
{
    int r = mesh_scope_end(s);
    if (r != status || strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%d \"%s\" is not %d with \"%s\"", r, mesh_last_error()->message,
                              status, says);
    }
    return 0;
}

static mesh_device_mesh *line_of(int n)
{
    return mesh_init_device_mesh("cpu", MESH_SHAPE(n), MESH_NAMES("tp"));
}

/* f32 filled with value, or with 0, 1, ... when value is NaN. */
static mesh_tensor *filled(mesh_shape s, double value)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    for (int64_t i = 0; t && i < n; i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)(isnan(value) ? (double)i : value);
    }
    return t;
}

static mesh_tensor *arange(mesh_shape s)
{
    return filled(s, NAN);
}

static int holds(mesh_tensor *t, mesh_shape s, const double *values)
{
    REQUIRE(t != NULL);
    mesh_shape got = mesh_tensor_shape(t);
    int64_t n = 1;
    REQUIRE(got.ndim == s.ndim);
    for (int d = 0; d < s.ndim; d++) {
        REQUIRE(got.dim[d] == s.dim[d]);
        n *= s.dim[d];
    }
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(t))[i], values[i], 1e-6);
    }
    return 0;
}

static int from_local_shapes(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = line_of(4);
    /* 26 infer: 3,3,3,1 rows are the chunks of 10 */
    mesh_dtensor *x = mesh_from_local(filled(MESH_SHAPE(me == 3 ? 1 : 3, 2), me), m, ON(S(0)));
    REQUIRE(x != NULL && mesh_shape_of(x).dim[0] == 10 && mesh_shape_of(x).dim[1] == 2);
    double want[20];
    for (int i = 0; i < 20; i++) {
        want[i] = i / 6;
    }
    REQUIRE_OK(holds(mesh_full_tensor(x), MESH_SHAPE(10, 2), want));
    /* 27 irreg */
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(!mesh_from_local(filled(MESH_SHAPE(2, 2 + me), 1), m, ON(S(1)), .shape = MESH_SHAPE(2, 14)));
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "rank 0 holds 2 along dim 1, the layout of [2,14] needs 4"));
    /* 28 incons */
    s = mesh_scope_begin();
    REQUIRE(!mesh_from_local(filled(MESH_SHAPE(2, me == 1 ? 6 : 5), 1), m, ON(S(0))));
    REQUIRE_OK(failed_with(s, MESH_EMISMATCH, "[2,5], [2,6], [2,5], [2,5]"));
    /* 29 rchk */
    s = mesh_scope_begin();
    REQUIRE(!mesh_from_local(filled(MESH_SHAPE(3), me), m, ON(R), .check_replicas = true));
    REQUIRE_OK(failed_with(s, MESH_EMISMATCH, "rank 1 holds other values than rank 0"));
    /* rows that no chunk rule makes */
    s = mesh_scope_begin();
    REQUIRE(!mesh_from_local(filled(MESH_SHAPE(1 + me, 2), 1), m, ON(S(0))));
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "rank 0 holds 1 along dim 0, the layout of [10,2] needs 3"));
    s = mesh_scope_begin();
    REQUIRE(!mesh_from_local(filled(MESH_SHAPE(3), 1), m, me == 2 ? ON(R) : ON(S(0))));
    REQUIRE_OK(failed_with(s, MESH_EMISMATCH, "rank 2 gave other placements"));
    return 0;
}

START_TEST(from_local_finds_the_global_shape_or_names_the_rank_that_does_not_fit)
{
    ranks_run(4, from_local_shapes, NULL);
}
END_TEST

static int from_local_traffic(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_tensor *local = filled(MESH_SHAPE(2, 2), 1);
    mesh_comm_reset();
    mesh_dtensor *x = mesh_from_local(local, m, ON(S(0)), .unchecked = true);
    REQUIRE(x != NULL && mesh_shape_of(x).dim[0] == 8 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    REQUIRE(mesh_tensor_data(mesh_to_local(x)) == mesh_tensor_data(local)); /* no copy */
    REQUIRE(mesh_from_local(local, m, ON(S(0))) != NULL && mesh_comm_count(MESH_COMM_ALL_GATHER) == 1);
    /* 31 pones, 36 pavg, 37 pmax */
    double me = mesh_rank(), four[5] = { 4, 4, 4, 4, 4 };
    REQUIRE_OK(
        holds(mesh_full_tensor(mesh_from_local(filled(MESH_SHAPE(3), 1), m, ON(P(MESH_SUM)))), MESH_SHAPE(3), four));
    mesh_dtensor *avg = mesh_from_local(filled(MESH_SHAPE(5), me), m, ON(P(MESH_AVG)));
    REQUIRE_OK(holds(mesh_full_tensor(avg), MESH_SHAPE(5), (double[]){ 1.5, 1.5, 1.5, 1.5, 1.5 }));
    mesh_shape part = MESH_SHAPE(me < 2 ? 2 : me < 3 ? 1 : 0);
    REQUIRE_OK(holds(mesh_to_local(mesh_redistribute(avg, ON(S(0)))), part, (double[]){ 1.5, 1.5 }));
    mesh_tensor *own = mesh_tensor_new(MESH_SHAPE(5), MESH_F32);
    memcpy(mesh_tensor_data(own), (float[]){ (float)me, (float)-me, (float)(5 - me), (float)(me * me), 1 }, 20);
    mesh_dtensor *max = mesh_redistribute(mesh_from_local(own, m, ON(P(MESH_MAX))), ON(S(0)));
    static const double rows[4][2] = { { 3, 0 }, { 5, 9 }, { 1, 0 }, { 0, 0 } };
    REQUIRE_OK(holds(mesh_to_local(max), part, rows[mesh_rank()]));
    return 0;
}

START_TEST(from_local_moves_nothing_and_parts_reduce)
{
    ranks_run(4, from_local_traffic, NULL);
}
END_TEST

static int distribute(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = line_of(4);
    mesh_device_mesh *grid = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    /* 25 src0: the data of rank 0 win, or each rank's own */
    mesh_dtensor *x = mesh_distribute_tensor(filled(MESH_SHAPE(4), me), m, ON(S(0)));
    REQUIRE_OK(holds(mesh_full_tensor(x), MESH_SHAPE(4), (double[]){ 0, 0, 0, 0 }));
    mesh_comm_reset();
    mesh_dtensor *same = mesh_distribute_same(filled(MESH_SHAPE(4), me), m, ON(S(0)));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_TO_ALL) + mesh_comm_count(MESH_COMM_BROADCAST) == 0);
    REQUIRE_OK(holds(mesh_full_tensor(same), MESH_SHAPE(4), (double[]){ 0, 1, 2, 3 }));
    /* 9 neg: S(-1) of (3,7) */
    mesh_dtensor *neg = mesh_distribute_tensor(arange(MESH_SHAPE(3, 7)), m, ON(S(-1)));
    REQUIRE(mesh_placements_of(neg).at[0].dim == 1);
    REQUIRE(me != 3 || holds(mesh_to_local(neg), MESH_SHAPE(3, 1), (double[]){ 6, 13, 20 }) == 0);
    /* every kind of placement from rank 0 alone: the others pass rubbish */
    const mesh_placements lists[] = {
        ON(R, R),
        ON(S(0), S(0)),
        ON(S(0), S(1)),
        ON(S(1), R),
        ON(R, S(1)),
        ON(P(MESH_SUM), S(0)),
        ON(S(1), P(MESH_MAX)),
        ON(P(MESH_AVG), R),
        ON(P(MESH_PROD), P(MESH_PROD)),
    };
    double want[15];
    for (int i = 0; i < 15; i++) {
        want[i] = i;
    }
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        mesh_tensor *t = me == 0 ? arange(MESH_SHAPE(5, 3)) : filled(MESH_SHAPE(5, 3), -1);
        REQUIRE_OK(holds(mesh_full_tensor(mesh_distribute_tensor(t, grid, lists[k])), MESH_SHAPE(5, 3), want));
        t = arange(MESH_SHAPE(5, 3));
        REQUIRE_OK(holds(mesh_full_tensor(mesh_distribute_same(t, grid, lists[k])), MESH_SHAPE(5, 3), want));
        REQUIRE_OK(holds(t, MESH_SHAPE(5, 3), want)); /* unchanged */
    }
    return 0;
}

START_TEST(the_data_of_the_origin_win_whatever_the_placements)
{
    ranks_run(4, distribute, NULL);
}
END_TEST

static int item(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    REQUIRE_NEAR(mesh_item(mesh_full(MESH_SCALAR_SHAPE, 2.5, m, ON(P(MESH_SUM)))), 2.5, 0);
    REQUIRE_NEAR(mesh_item(mesh_full(MESH_SHAPE(1, 1), 3, m, ON(S(0)), .dtype = MESH_I64)), 3, 0);
    mesh_tensor *one = filled(MESH_SCALAR_SHAPE, mesh_rank() + 1);
    REQUIRE_NEAR(mesh_item(mesh_from_local(one, m, ON(P(MESH_SUM)))), 10, 0);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(isnan(mesh_item(mesh_zeros(MESH_SHAPE(2), m, ON(S(0))))));
    REQUIRE_OK(failed_with(s, MESH_ESHAPE, "has 2 elements, not one"));
    return 0;
}

START_TEST(item_reduces_and_fetches_and_refuses_many)
{
    ranks_run(4, item, NULL);
}
END_TEST

static int same_bits(mesh_tensor *a, mesh_tensor *b, size_t bytes)
{
    REQUIRE(a != NULL && b != NULL);
    REQUIRE(memcmp(mesh_tensor_data(a), mesh_tensor_data(b), bytes) == 0);
    return 0;
}

static int draw(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_device_mesh *grid = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_shape s = MESH_SHAPE(5, 4);
    mesh_tensor *whole = mesh_full_tensor(mesh_rand(s, m, ON(R), .seed = 7));
    /* 155 rnd: the same bits under every layout, mesh and world */
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_rand(s, m, ON(S(0)), .seed = 7)), whole, 80));
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_rand(s, m, ON(S(1)), .seed = 7)), whole, 80));
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_rand(s, m, ON(P(MESH_SUM)), .seed = 7)), whole, 80));
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_rand(s, grid, ON(S(0), S(0)), .seed = 7)), whole, 80));
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_rand(s, grid, ON(S(1), S(0)), .seed = 7)), whole, 80));
    /* 156 rnd2: the stream goes on alike, whatever was drawn before */
    mesh_manual_seed(3);
    (void)mesh_rand(MESH_SHAPE(5), m, ON(S(0)));
    mesh_tensor *second = mesh_full_tensor(mesh_randn(MESH_SHAPE(3), m, ON(R)));
    mesh_manual_seed(3);
    (void)mesh_rand(MESH_SHAPE(2, 2), grid, ON(S(0), S(1)));
    REQUIRE_OK(same_bits(mesh_full_tensor(mesh_randn(MESH_SHAPE(3), grid, ON(S(0), R))), second, 12));
    mesh_tensor *third = mesh_full_tensor(mesh_randn(MESH_SHAPE(3), m, ON(R)));
    REQUIRE(memcmp(mesh_tensor_data(third), mesh_tensor_data(second), 12) != 0);
    /* 160 full */
    int me = mesh_rank();
    REQUIRE_OK(
        holds(mesh_to_local(mesh_full(MESH_SHAPE(2, 3), 7, m, ON(S(1)))), MESH_SHAPE(2, me < 3), (double[]){ 7, 7 }));
    mesh_dtensor *g = mesh_ones(MESH_SHAPE(8), m, ON(P(MESH_PROD)), .requires_grad = true);
    REQUIRE_OK(holds(mesh_full_tensor(g), MESH_SHAPE(8), (double[]){ 1, 1, 1, 1, 1, 1, 1, 1 }));
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(!mesh_rand(MESH_SHAPE(3), m, ON(R), .dtype = MESH_I64));
    REQUIRE_OK(failed_with(scope, MESH_EUNSUPPORTED, "i64"));
    scope = mesh_scope_begin(); /* 10 bad */
    REQUIRE(!mesh_zeros(MESH_SHAPE(2, 2), m, ON(S(2))));
    REQUIRE_OK(failed_with(scope, MESH_EINVAL, "S(2)"));
    return 0;
}

START_TEST(factories_make_the_same_tensor_under_every_layout)
{
    ranks_run(4, draw, NULL);
}
END_TEST

static int scopes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(2);
    mesh_scope *outer = mesh_scope_begin();
    mesh_scope *inner = mesh_scope_begin();
    mesh_dtensor *x = mesh_keep(mesh_ones(MESH_SHAPE(4), m, ON(S(0))));
    (void)mesh_zeros(MESH_SHAPE(4), m, ON(S(0)));
    REQUIRE(mesh_scope_end(inner) == 0);
    REQUIRE(mesh_shape_of(x).dim[0] == 4 && mesh_dtype_of(x) == MESH_F32 && mesh_device_mesh_of(x) == m);
    REQUIRE(mesh_release(x) == NULL && mesh_release(NULL) == NULL);
    mesh_shape local, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(MESH_SHAPE(5), m, ON(S(0)), NULL, &local, &offset) == 0);
    REQUIRE(local.dim[0] == (mesh_rank() == 0 ? 3 : 2) && offset.dim[0] == 3 * mesh_rank());
    REQUIRE(mesh_scope_end(outer) == 0);
    return 0;
}

START_TEST(tensors_live_as_long_as_their_scope)
{
    ranks_run(2, scopes, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("dtensor");
    TCase *t = tcase_create("dtensor");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, from_local_finds_the_global_shape_or_names_the_rank_that_does_not_fit);
    tcase_add_test(t, from_local_moves_nothing_and_parts_reduce);
    tcase_add_test(t, the_data_of_the_origin_win_whatever_the_placements);
    tcase_add_test(t, item_reduces_and_fetches_and_refuses_many);
    tcase_add_test(t, factories_make_the_same_tensor_under_every_layout);
    tcase_add_test(t, tensors_live_as_long_as_their_scope);
    suite_add_tcase(s, t);
    return s;
}
