/* tests/world/test_mesh_ranks.c - meshes of given ranks, in any order, and ranks outside.  Ids are those of the case list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "dtensor/device_mesh.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...)    MESH_PLACEMENTS(__VA_ARGS__)
#define RANKS(...) ((const int[]){ __VA_ARGS__ })

static int ends_with(mesh_scope *s, int status, const char *says)
{
    REQUIRE(mesh_scope_end(s) == status);
    if (strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", mesh_last_error()->message, says);
    }
    return 0;
}

static float at(mesh_tensor *t, int64_t i)
{
    return ((float *)mesh_tensor_data(t))[i];
}

static bool is_nothing(mesh_dtensor *x)
{
    mesh_shape s = mesh_tensor_shape(mesh_to_local(x));
    return s.ndim == 1 && s.dim[0] == 0;
}

/* 167 mout */
static int outside(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    bool is_in = me % 2 == 0;
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", MESH_SHAPE(2), RANKS(0, 2), MESH_NAMES("tp"));
    mesh_tensor *local = mesh_tensor_new(MESH_SHAPE(1, 2), MESH_F32);
    REQUIRE(m != NULL && local != NULL && mesh_mesh_size(m, NULL) == 2);
    ((float *)mesh_tensor_data(local))[0] = ((float *)mesh_tensor_data(local))[1] = (float)(me + 1);
    REQUIRE(is_in ? mesh_get_coordinate(m)[0] == me / 2 : mesh_get_coordinate(m) == NULL);
    mesh_dtensor *x = mesh_from_local(local, m, ON(mesh_shard(0)));
    mesh_dtensor *y = mesh_add_scalar(x, 1);
    REQUIRE(y != NULL && mesh_shape_of(y).dim[0] == 2 && mesh_shape_of(y).dim[1] == 2);
    REQUIRE(is_in ? !is_nothing(y) && fabsf(at(mesh_to_local(y), 1) - (float)(me + 2)) < 1e-6F : is_nothing(y));
    mesh_tensor *full = mesh_full_tensor(y);
    REQUIRE(full != NULL && (is_in ? fabsf(at(full, 2) - 4) < 1e-6F : mesh_tensor_shape(full).dim[0] == 0));
    double total = mesh_item(mesh_sum(y));
    REQUIRE(is_in ? fabs(total - 12) < 1e-6 : isnan(total));
    if (!is_in) {
        mesh_scope *s = mesh_scope_begin();
        REQUIRE(mesh_get_group(m, "tp") == NULL);
        REQUIRE_OK(ends_with(s, MESH_ENOTMEMBER, "is not in mesh (tp=2)"));
        s = mesh_scope_begin();
        REQUIRE(mesh_get_local_rank(m, "tp") == MESH_ENOTMEMBER);
        REQUIRE_OK(ends_with(s, MESH_ENOTMEMBER, "is not in mesh"));
        mesh_shape shape, offset;
        REQUIRE(mesh_compute_local_shape_and_offset(MESH_SHAPE(4, 4), m, ON(mesh_shard(0)), NULL, &shape, &offset) ==
                0);
        REQUIRE(shape.ndim == 1 && shape.dim[0] == 0 && offset.ndim == 0);
    }
    return 0;
}

START_TEST(case_mout_a_rank_outside_the_mesh_makes_the_same_calls_and_holds_nothing)
{
    ranks_run(4, outside, NULL);
}
END_TEST

static int outside_learns(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", MESH_SHAPE(2, 1), RANKS(3, 1), MESH_NAMES("dp", "tp"));
    mesh_placements rows = ON(mesh_shard(0), mesh_replicate()), whole = ON(mesh_replicate(), mesh_replicate());
    mesh_dtensor *x = mesh_randn(MESH_SHAPE(5, 3), m, rows, .seed = 4);
    mesh_dtensor *w = mesh_randn(MESH_SHAPE(2, 3), m, whole, .seed = 6, .requires_grad = true);
    mesh_dtensor *target = mesh_zeros(MESH_SHAPE(5), m, rows, .dtype = MESH_I64);
    bool is_out = mesh_get_coordinate(m) == NULL;
    REQUIRE(x != NULL && w != NULL && mesh_device_mesh_of(x) == m);
    mesh_dtensor *y = mesh_linear(x, w, NULL);
    REQUIRE(mesh_backward(mesh_cross_entropy(y, target)) == 0);
    REQUIRE(mesh_grad(w) != NULL && mesh_shape_of(mesh_grad(w)).dim[1] == 3);
    REQUIRE(is_nothing(mesh_grad(w)) == is_out && is_nothing(mesh_redistribute(x, whole)) == is_out);
    mesh_device_mesh *dp = mesh_submesh(m, MESH_NAMES("dp"));
    REQUIRE(dp != NULL && (mesh_get_coordinate(dp) == NULL) == is_out);
    return mesh_scope_status(NULL);
}

START_TEST(gradients_pass_by_a_rank_outside)
{
    ranks_run(4, outside_learns, NULL);
}
END_TEST

/* 168 mdup */
static int refuse(void *arg)
{
    (void)arg;
    static const struct {
        mesh_shape shape;
        int ranks[6];
        const char *says;
    } cases[] = {
        { { .ndim = 1, .dim = { 4 } }, { 0, 0, 1, 2 }, "rank 0 stands at places 0 and 1" },
        { { .ndim = 1, .dim = { 2 } }, { 1, 4 }, "rank 4 at place 1 of the mesh: the job has ranks 0 to 3" },
        { { .ndim = 1, .dim = { 2 } }, { -1, 1 }, "rank -1" },
        { { .ndim = 2, .dim = { 2, 3 } }, { 0 }, "6 ranks but the job has 4" },
        { { .ndim = 2, .dim = { 2, 0 } }, { 0 }, "dim 1 has size 0" },
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        mesh_scope *s = mesh_scope_begin();
        REQUIRE(mesh_new_device_mesh("cpu", cases[k].shape, cases[k].ranks, NULL) == NULL);
        REQUIRE_OK(ends_with(s, MESH_EINVAL, cases[k].says));
    }
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_new_device_mesh("cpu", MESH_SHAPE(2), NULL, NULL) == NULL);
    return ends_with(s, MESH_EINVAL, "the ranks are NULL: 2 are needed");
}

START_TEST(case_mdup_ranks_that_do_not_exist_or_stand_twice_are_refused_everywhere)
{
    ranks_run(4, refuse, NULL);
}
END_TEST

/* 169 m23 */
static int half(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", MESH_SHAPE(2), RANKS(2, 3), NULL);
    int one = 1;
    REQUIRE(m != NULL && mesh_new_device_mesh("cpu", MESH_SHAPE(2), RANKS(2, 3), NULL) == m);
    if (mesh_rank() >= 2) {
        REQUIRE(mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, mesh_get_group(m, NULL)) == 0 && one == 2);
    }
    return 0;
}

START_TEST(case_m23_a_mesh_of_half_the_ranks_leaves_the_others_alone)
{
    ranks_run(4, half, NULL);
}
END_TEST

/* 170 mperm */
static int turned(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", MESH_SHAPE(4), RANKS(3, 2, 1, 0), NULL);
    mesh_tensor *t = mesh_tensor_new(MESH_SHAPE(8), MESH_F32);
    REQUIRE(m != NULL && t != NULL && mesh_get_local_rank(m, NULL) == 3 - me);
    for (int i = 0; i < 8; i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)i;
    }
    mesh_dtensor *x = mesh_distribute_tensor(t, m, ON(mesh_shard(0)));
    mesh_dtensor *y = mesh_redistribute(mesh_distribute_tensor(t, m, ON(mesh_replicate())), ON(mesh_shard(0)));
    REQUIRE(x != NULL && y != NULL);
    for (int i = 0; i < 2; i++) {
        REQUIRE_NEAR((double)at(mesh_to_local(x), i), 6 - 2 * me + i, 0);
        REQUIRE_NEAR((double)at(mesh_to_local(y), i), 6 - 2 * me + i, 0);
    }
    mesh_shape shape, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(MESH_SHAPE(8), m, ON(mesh_shard(0)), NULL, &shape, &offset) == 0);
    REQUIRE(offset.dim[0] == 6 - 2 * me);
    mesh_tensor *full = mesh_full_tensor(x);
    for (int i = 0; i < 8; i++) {
        REQUIRE_NEAR((double)at(full, i), i, 0);
    }
    return 0;
}

START_TEST(case_mperm_parts_follow_the_order_of_the_mesh_not_of_the_ranks)
{
    ranks_run(4, turned, NULL);
}
END_TEST

/* 171 mtr */
static int across(void *arg)
{
    (void)arg;
    int me = mesh_rank(), sum[2] = { me, me };
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", MESH_SHAPE(2, 2), RANKS(0, 2, 1, 3), MESH_NAMES("a", "b"));
    REQUIRE(m != NULL && mesh_get_rank(m, (int[]){ 0, 1 }) == 2);
    REQUIRE(mesh_get_coordinate(m)[0] == me % 2 && mesh_get_coordinate(m)[1] == me / 2);
    REQUIRE(mesh_all_reduce(&sum[0], 1, MESH_I32, MESH_SUM, mesh_get_group(m, "a")) == 0);
    REQUIRE(mesh_all_reduce(&sum[1], 1, MESH_I32, MESH_SUM, mesh_get_group(m, "b")) == 0);
    REQUIRE(sum[0] == me / 2 * 4 + 1 && sum[1] == me % 2 * 2 + 2); /* {0,1} {2,3}; {0,2} {1,3} */
    return 0;
}

START_TEST(case_mtr_lines_of_a_turned_mesh_are_its_columns_and_rows)
{
    ranks_run(4, across, NULL);
}
END_TEST

/* 175 m1 */
static int alone(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1, 4), NULL);
    mesh_group *g = mesh_get_group(m, "0");
    float x[2] = { 1, 2 }, y[2] = { 0, 0 };
    mesh_comm_reset();
    REQUIRE(mesh_all_reduce(x, 2, MESH_F32, MESH_SUM, g) == 0 && mesh_all_gather(y, x, 2, MESH_F32, g) == 0);
    REQUIRE(mesh_barrier(g) == 0 && memcmp(x, y, sizeof x) == 0);
    REQUIRE_NEAR((double)y[1], 2, 0);
    for (mesh_comm_kind k = MESH_COMM_ALL_REDUCE; k <= MESH_COMM_BARRIER; k++) {
        REQUIRE(mesh_comm_count(k) == 0 && mesh_comm_bytes(k) == 0);
    }
    return 0;
}

START_TEST(case_m1_a_line_of_one_rank_moves_nothing)
{
    ranks_run(4, alone, NULL);
}
END_TEST

/* 176 mcost: nobody is waited for, since half of the ranks never make it. */
static int cheap(void *arg)
{
    (void)arg;
    int ranks[16];
    for (int i = 0; i < 16; i++) {
        ranks[i] = i;
    }
    if (mesh_rank() % 2 == 0) {
        mesh_comm_reset();
        REQUIRE(mesh_new_device_mesh("cpu", MESH_SHAPE(4, 4), ranks, MESH_NAMES("a", "b")) != NULL);
        for (mesh_comm_kind k = MESH_COMM_ALL_REDUCE; k <= MESH_COMM_BARRIER; k++) {
            REQUIRE(mesh_comm_count(k) == 0);
        }
    }
    return 0;
}

START_TEST(case_mcost_a_mesh_of_given_ranks_is_made_without_a_message)
{
    ranks_run(16, cheap, NULL);
}
END_TEST

static int flat(void *arg)
{
    (void)arg;
    int me = mesh_rank(), sum = me;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2, 2), MESH_NAMES("dp", "cp", "tp"));
    mesh_device_mesh *f = mesh_flatten(m, MESH_NAMES("dp", "cp"), NULL);
    REQUIRE(f != NULL && f == mesh_flatten(m, MESH_NAMES("dp", "cp"), "dp_cp") && mesh_mesh_ndim(f) == 1);
    REQUIRE(mesh_mesh_size(f, "dp_cp") == 4 && mesh_get_local_rank(f, NULL) == me / 2);
    REQUIRE(mesh_get_rank(f, (int[]){ 3 }) == 6 + me % 2);
    REQUIRE(mesh_all_reduce(&sum, 1, MESH_I32, MESH_SUM, mesh_get_group(f, NULL)) == 0 && sum == 12 + 4 * (me % 2));
    REQUIRE(mesh_flatten(m, MESH_NAMES("tp"), NULL) == mesh_submesh(m, MESH_NAMES("tp")));
    mesh_tensor *full = mesh_full_tensor(mesh_ones(MESH_SHAPE(6), f, ON(mesh_shard(0))));
    REQUIRE(full != NULL && mesh_tensor_shape(full).dim[0] == 6);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_flatten(m, MESH_NAMES("dp"), "0") == NULL);
    return ends_with(s, MESH_EINVAL, "begin with a letter");
}

START_TEST(some_dims_flatten_to_one)
{
    ranks_run(8, flat, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("meshes of given ranks");
    TCase *t = tcase_create("meshes of given ranks");
    tcase_add_test(t, case_mout_a_rank_outside_the_mesh_makes_the_same_calls_and_holds_nothing);
    tcase_add_test(t, gradients_pass_by_a_rank_outside);
    tcase_add_test(t, case_mdup_ranks_that_do_not_exist_or_stand_twice_are_refused_everywhere);
    tcase_add_test(t, case_m23_a_mesh_of_half_the_ranks_leaves_the_others_alone);
    tcase_add_test(t, case_mperm_parts_follow_the_order_of_the_mesh_not_of_the_ranks);
    tcase_add_test(t, case_mtr_lines_of_a_turned_mesh_are_its_columns_and_rows);
    tcase_add_test(t, case_m1_a_line_of_one_rank_moves_nothing);
    tcase_add_test(t, case_mcost_a_mesh_of_given_ranks_is_made_without_a_message);
    tcase_add_test(t, some_dims_flatten_to_one);
    suite_add_tcase(s, t);
    return s;
}
