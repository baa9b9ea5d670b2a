/* tests/unit/autograd/test_border.c - gradients where values come in from plain tensors, change layout, or leave.
 *
 * The numbers in the names are closed forms: each case is small enough to follow by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)
#define ON(p)      MESH_PLACEMENTS(p)
#define WHOLE      ON(mesh_replicate())
#define ROWS       ON(mesh_shard(0))
#define PENDING    ON(mesh_partial(MESH_SUM))

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
}

static mesh_tensor *local_of(int n, const float *values)
{
    mesh_tensor *t = mesh_tensor_new(SHAPE(n), MESH_F32);
    if (t != NULL && n > 0) {
        memcpy(mesh_tensor_data(t), values, (size_t)n * sizeof values[0]);
    }
    return t;
}

/* A leaf of n numbers start, start + step, ... laid out as p says. */
static mesh_dtensor *leaf(mesh_device_mesh *m, int n, float start, float by, mesh_placements p)
{
    float values[16];
    for (int i = 0; i < n; i++) {
        values[i] = start + (float)i * by;
    }
    return mesh_requires_grad(mesh_distribute_same(local_of(n, values), m, p), true);
}

static int expect_local(mesh_dtensor *x, int n, const float *want)
{
    REQUIRE(x != NULL);
    mesh_tensor *t = mesh_to_local(x);
    REQUIRE(t != NULL && mesh_tensor_shape(t).dim[0] == n);
    for (int i = 0; i < n; i++) {
        REQUIRE_NEAR((double)((const float *)mesh_tensor_data(t))[i], (double)want[i], 1e-6);
    }
    return 0;
}

/* x S(0) -> R, then each rank works on the whole value by itself: the gradient is a sum over ranks. */
static int hinted(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *x = leaf(m, 4, 1, 0, ROWS), *y = mesh_redistribute(x, WHOLE);
    mesh_dtensor *g = mesh_from_local(local_of(4, (const float[]){ 1, 1, 1, 1 }), m, PENDING);
    REQUIRE(mesh_backward_from(y, g) == 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x)), ROWS));
    return expect_local(mesh_grad(x), 2, (const float[]){ 2, 2 });
}
START_TEST(a_pending_gradient_of_a_gathered_tensor_is_summed_over_ranks)
{
    ranks_run(2, hinted, NULL);
}
END_TEST

static int unhinted(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    float k = (float)mesh_rank() + 1;
    mesh_dtensor *x = leaf(m, 4, 1, 0, ROWS), *y = mesh_redistribute(x, WHOLE);
    mesh_dtensor *g = mesh_from_local(local_of(4, (const float[]){ k, k, k, k }), m, WHOLE);
    REQUIRE(mesh_backward_from(y, g) == 0);
    REQUIRE_OK(expect_local(mesh_grad(x), 2, (const float[]){ k, k }));
    mesh_scope *scope = mesh_scope_begin(); /* asked to, the border finds the divergence */
    REQUIRE(mesh_from_local(local_of(1, &k), m, WHOLE, .check_replicas = true) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EMISMATCH);
    return 0;
}
START_TEST(a_gradient_called_replicated_is_taken_at_its_word)
{
    ranks_run(2, unhinted, NULL);
}
END_TEST

static int pending_part(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *x = mesh_from_local(local_of(1, (const float[]){ 1 }), m, PENDING);
    mesh_requires_grad(x, true);
    mesh_dtensor *y = mesh_redistribute(x, WHOLE);
    REQUIRE_OK(expect_local(y, 1, (const float[]){ 4 }));
    mesh_dtensor *g = leaf(m, 1, 1, 0, WHOLE);
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(y, g) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    return expect_local(mesh_grad(x), 1, (const float[]){ 1 });
}
START_TEST(the_gradient_of_a_part_of_a_sum_is_that_of_the_sum_without_traffic)
{
    ranks_run(4, pending_part, NULL);
}
END_TEST

static int parts_wanted(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    float mine = (float)mesh_rank() + 1;
    mesh_dtensor *x = mesh_from_local(local_of(1, (const float[]){ 5 }), m, WHOLE, .grad = PENDING);
    mesh_requires_grad(x, true);
    mesh_dtensor *y = mesh_mul_scalar(x, 2);
    mesh_dtensor *g = mesh_from_local(local_of(1, &mine), m, PENDING);
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(y, g) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x)), PENDING));
    REQUIRE_OK(expect_local(mesh_grad(x), 1, (const float[]){ 2 * mine }));

    mesh_dtensor *part = mesh_from_local(local_of(1, &mine), m, PENDING, .grad = PENDING);
    mesh_requires_grad(part, true);
    mesh_dtensor *whole = mesh_redistribute(part, WHOLE);
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(whole, g) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    return expect_local(mesh_grad(part), 1, &mine);
}
START_TEST(asked_for_in_parts_a_gradient_stays_in_parts)
{
    ranks_run(4, parts_wanted, NULL);
}
END_TEST

static int whole_weight(void *arg)
{
    (void)arg;
    static const float want[4][2] = { { 2, 2 }, { 2, 2 }, { 2 }, { 0 } };
    static const int size[4] = { 2, 2, 1, 0 };
    mesh_device_mesh *m = line();
    mesh_dtensor *x = leaf(m, 5, 0, 1, ROWS), *w = leaf(m, 1, 2, 0, WHOLE);
    mesh_dtensor *loss = mesh_sum(mesh_mul(w, x));
    mesh_comm_reset();
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1);
    REQUIRE_OK(expect_local(mesh_grad(w), 1, (const float[]){ 10 }));
    return expect_local(mesh_grad(x), size[mesh_rank()], want[mesh_rank()]);
}
START_TEST(a_replicated_weight_over_uneven_rows_gets_10_by_one_all_reduce)
{
    ranks_run(4, whole_weight, NULL);
}
END_TEST

static int used_thrice(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *x = mesh_detach(leaf(m, 5, 0, 1, ROWS)), *w = leaf(m, 1, 2, 0, WHOLE);
    mesh_dtensor *y = mesh_mul(w, mesh_mul(w, mesh_mul(w, x)));
    mesh_dtensor *loss = mesh_sum(y);
    mesh_comm_reset();
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1);
    return expect_local(mesh_grad(w), 1, (const float[]){ 3 * 4 * 10 });
}
START_TEST(a_weight_used_three_times_is_reduced_once)
{
    ranks_run(4, used_thrice, NULL);
}
END_TEST

static int gathered(void *arg)
{
    (void)arg;
    static const float want[4][2] = { { 1, 2 }, { 3, 4 }, { 5 }, { 0 } };
    static const int size[4] = { 2, 2, 1, 0 };
    mesh_device_mesh *m = line();
    mesh_dtensor *x = leaf(m, 5, 1, 0, ROWS), *k = mesh_detach(leaf(m, 5, 1, 1, WHOLE));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(mesh_redistribute(x, WHOLE), k))) == 0);
    return expect_local(mesh_grad(x), size[mesh_rank()], want[mesh_rank()]);
}
START_TEST(the_gradient_of_uneven_gathered_rows_is_1_2_3_4_5)
{
    ranks_run(4, gathered, NULL);
}
END_TEST

static int mean_and_extremes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *g = leaf(m, 2, 12, 12, WHOLE);
    float r = (float)mesh_rank();
    mesh_dtensor *avg = mesh_from_local(local_of(2, (const float[]){ r, 1 }), m, ON(mesh_partial(MESH_AVG)));
    mesh_requires_grad(avg, true);
    REQUIRE(mesh_backward_from(mesh_redistribute(avg, WHOLE), g) == 0);
    REQUIRE_OK(expect_local(mesh_grad(avg), 2, (const float[]){ 3, 6 }));

    /* element 0: rank 3 alone is greatest; element 1: ranks 1 and 2 tie */
    float tie = mesh_rank() == 1 || mesh_rank() == 2 ? 9 : r;
    mesh_dtensor *max = mesh_from_local(local_of(2, (const float[]){ r, tie }), m, ON(mesh_partial(MESH_MAX)));
    mesh_requires_grad(max, true);
    REQUIRE(mesh_backward_from(mesh_redistribute(max, WHOLE), g) == 0);
    REQUIRE_OK(expect_local(mesh_grad(max), 2, (const float[]){ mesh_rank() == 3 ? 12 : 0, tie == 9 ? 12 : 0 }));

    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *product = mesh_from_local(local_of(1, &r), m, ON(mesh_partial(MESH_PROD)));
    REQUIRE(product != NULL && mesh_requires_grad(product, true) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EUNSUPPORTED);
    return 0;
}
START_TEST(parts_of_a_mean_get_a_quarter_and_of_a_maximum_what_they_attain)
{
    ranks_run(4, mean_and_extremes, NULL);
}
END_TEST

static int borrowed(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    float mine[2] = { 3, 4 };
    mesh_dtensor *x = leaf(m, 2, 1, 1, WHOLE);
    mesh_dtensor *g = mesh_from_local(mesh_tensor_view(mine, SHAPE(2), MESH_F32), m, WHOLE);
    REQUIRE(mesh_backward_from(mesh_add_scalar(x, 1), g) == 0);
    mine[0] = -1; /* the caller's memory is the caller's again */
    REQUIRE_OK(expect_local(mesh_grad(x), 2, (const float[]){ 3, 4 }));
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_backward_from(mesh_add_scalar(x, 1), leaf(m, 3, 1, 1, WHOLE)) == MESH_ESHAPE);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(a_gradient_handed_in_is_copied_and_checked)
{
    ranks_run(1, borrowed, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("border");
    TCase *t = tcase_create("border");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_pending_gradient_of_a_gathered_tensor_is_summed_over_ranks);
    tcase_add_test(t, a_gradient_called_replicated_is_taken_at_its_word);
    tcase_add_test(t, the_gradient_of_a_part_of_a_sum_is_that_of_the_sum_without_traffic);
    tcase_add_test(t, asked_for_in_parts_a_gradient_stays_in_parts);
    tcase_add_test(t, a_replicated_weight_over_uneven_rows_gets_10_by_one_all_reduce);
    tcase_add_test(t, a_weight_used_three_times_is_reduced_once);
    tcase_add_test(t, the_gradient_of_uneven_gathered_rows_is_1_2_3_4_5);
    tcase_add_test(t, parts_of_a_mean_get_a_quarter_and_of_a_maximum_what_they_attain);
    tcase_add_test(t, a_gradient_handed_in_is_copied_and_checked);
    suite_add_tcase(s, t);
    return s;
}
