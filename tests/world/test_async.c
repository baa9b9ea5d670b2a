/* tests/world/test_async.c - layouts that change in the background: the first use waits, a dropped result harms nobody.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)
#define R       mesh_replicate()
#define S(d)    mesh_shard(d)
#define P       mesh_partial(MESH_SUM)

static mesh_dtensor *iota(mesh_device_mesh *m, mesh_shape s, mesh_placements p)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    for (int64_t i = 0; t != NULL && i < n; i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)i;
    }
    return mesh_distribute_tensor(t, m, p);
}

static int counts_up(mesh_tensor *t, int64_t n)
{
    REQUIRE(t != NULL);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(t))[i], (double)i, 0);
    }
    return 0;
}

/* Every pair of layouts; every way to touch the result. */
static int all_pairs(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    const mesh_placement each[] = { R, S(0), S(1), P };
    for (int k = 0; k < 256; k++) {
        mesh_scope *s = mesh_scope_begin();
        mesh_placements from = ON(each[k % 4], each[k / 4 % 4]), to = ON(each[k / 16 % 4], each[k / 64]);
        mesh_dtensor *x = mesh_redistribute_async(iota(m, MESH_SHAPE(3, 5), from), to);
        REQUIRE(x != NULL && mesh_placements_equal(mesh_placements_of(x), to));
        switch (k % 5) {
        case 0:
            REQUIRE_OK(counts_up(mesh_full_tensor(x), 15));
            break;
        case 1:
            REQUIRE_OK(counts_up(mesh_full_tensor(mesh_add_scalar(x, 0)), 15));
            break;
        case 2:
            REQUIRE_OK(counts_up(mesh_full_tensor(mesh_redistribute_async(x, from)), 15));
            break;
        case 3:
            REQUIRE_NEAR(mesh_item(mesh_sum(x)), 105, 0);
            break;
        default:
            REQUIRE(mesh_to_local(x) != NULL);
            break;
        }
        REQUIRE(mesh_scope_end(s) == 0);
    }
    return 0;
}

START_TEST(every_first_use_waits_for_the_elements)
{
    ranks_run(4, all_pairs, NULL);
}
END_TEST

/* 51 adrop */
static int dropped(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_dtensor *x = iota(m, MESH_SHAPE(8), ON(S(0)));
    mesh_dtensor *y = mesh_redistribute_async(x, ON(R));
    REQUIRE(y != NULL);
    mesh_release(y);
    mesh_release(x);
    int one = 1;
    REQUIRE(mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, mesh_get_group(m, NULL)) == 0 && one == 4);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_redistribute_async(iota(m, MESH_SHAPE(5, 4), ON(P)), ON(S(1))) != NULL);
    REQUIRE(mesh_scope_end(s) == 0);
    return 0;
}

START_TEST(a_dropped_result_leaks_nothing_and_disturbs_nobody)
{
    ranks_run(4, dropped, NULL);
}
END_TEST

static int kept(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(3), NULL);
    mesh_scope *s = mesh_scope_begin();
    mesh_dtensor *y = mesh_keep(mesh_redistribute_async(iota(m, MESH_SHAPE(4, 4), ON(S(1))), ON(S(0))));
    mesh_dtensor *z = mesh_keep(mesh_detach(mesh_redistribute_async(iota(m, MESH_SHAPE(4, 4), ON(S(1))), ON(R))));
    REQUIRE(mesh_scope_end(s) == 0 && y != NULL && z != NULL);
    REQUIRE_OK(counts_up(mesh_full_tensor(y), 16));
    return counts_up(mesh_full_tensor(z), 16);
}

START_TEST(a_result_kept_beyond_its_scope_has_its_elements)
{
    ranks_run(3, kept, NULL);
}
END_TEST

static int source_changes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_dtensor *x = iota(m, MESH_SHAPE(6, 2), ON(P));
    mesh_dtensor *y = mesh_redistribute_async(x, ON(R));
    mesh_tensor *local = mesh_to_local(x);
    memset(mesh_tensor_data(local), 0, 12 * sizeof(float)); /* a sum is taken from a copy */
    return counts_up(mesh_full_tensor(y), 12);
}

START_TEST(a_pending_sum_is_taken_before_its_source_changes)
{
    ranks_run(2, source_changes, NULL);
}
END_TEST

static int gradients(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_dtensor *x = mesh_requires_grad(iota(m, MESH_SHAPE(5), ON(S(0))), true);
    mesh_dtensor *y = mesh_redistribute_async(x, ON(R));
    mesh_dtensor *w = iota(m, MESH_SHAPE(5), ON(R));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, w))) == 0);
    REQUIRE_OK(counts_up(mesh_full_tensor(mesh_grad(x)), 5));
    mesh_dtensor *v = mesh_requires_grad(mesh_ones(MESH_SHAPE(6), m, ON(S(0)), .dtype = MESH_F64), true);
    mesh_dtensor *u = mesh_redistribute_with(v, ON(R), .forward_dtype = MESH_F32, .async = true);
    REQUIRE(u != NULL && mesh_dtype_of(u) == MESH_F32);
    REQUIRE(mesh_backward_from(u, mesh_redistribute_async(mesh_ones(MESH_SHAPE(6), m, ON(S(0))), ON(R))) == 0);
    REQUIRE(mesh_dtype_of(mesh_grad(v)) == MESH_F64);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_grad(v))), 6, 0);
    return 0;
}

/* The gradient of a shard made whole travels in 16 bits, and comes out in 32, rounded on its way. */
static int short_gradients(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_dtensor *x = mesh_requires_grad(mesh_ones(MESH_SHAPE(64), m, ON(R)), true);
    mesh_dtensor *y = mesh_redistribute_with(x, ON(S(0)), .backward_dtype = MESH_BF16);
    REQUIRE(y != NULL && mesh_dtype_of(y) == MESH_F32);
    mesh_dtensor *dy = mesh_full(MESH_SHAPE(64), 1 + 0x1p-7 + 0x1p-12, m, ON(S(0)));
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(y, dy) == 0);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_GATHER) == 32 * 2);
    REQUIRE(mesh_dtype_of(mesh_grad(x)) == MESH_F32);
    mesh_tensor *g = mesh_full_tensor(mesh_grad(x));
    for (int i = 0; i < 64; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(g))[i], 1 + 0x1p-7, 0);
    }
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_redistribute_with(x, ON(S(0)), .backward_dtype = MESH_I32) == NULL);
    REQUIRE(mesh_scope_end(s) == MESH_EINVAL);
    return 0;
}

START_TEST(gradients_travel_in_their_own_dtype)
{
    ranks_run(2, short_gradients, NULL);
}
END_TEST

START_TEST(gradients_flow_back_through_it)
{
    ranks_run(4, gradients, NULL);
}
END_TEST

static int is_async(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_dtensor *y = mesh_redistribute_async(iota(m, MESH_SHAPE(4), ON(S(0))), ON(R));
    REQUIRE(y != NULL && y->local->pending != NULL);
    REQUIRE_OK(counts_up(mesh_full_tensor(y), 4));
    REQUIRE(y->local->pending == NULL);
    return 0;
}

START_TEST(nothing_is_waited_for_before_the_first_use)
{
    ranks_run(2, is_async, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("async");
    TCase *t = tcase_create("async");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_first_use_waits_for_the_elements);
    tcase_add_test(t, a_dropped_result_leaks_nothing_and_disturbs_nobody);
    tcase_add_test(t, a_result_kept_beyond_its_scope_has_its_elements);
    tcase_add_test(t, a_pending_sum_is_taken_before_its_source_changes);
    tcase_add_test(t, gradients_flow_back_through_it);
    tcase_add_test(t, gradients_travel_in_their_own_dtype);
    tcase_add_test(t, nothing_is_waited_for_before_the_first_use);
    suite_add_tcase(s, t);
    return s;
}
