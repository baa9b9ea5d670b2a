/* tests/unit/autograd/test_values.c - public operators on small numbers that can be checked by hand, over sharded dims.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
}

static mesh_dtensor *numbers(mesh_device_mesh *m, mesh_shape s, const double *values, mesh_placement p)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F64);
    if (t != NULL) {
        int64_t n = 1;
        for (int d = 0; d < s.ndim; d++) {
            n *= s.dim[d];
        }
        memcpy(mesh_tensor_data(t), values, (size_t)n * sizeof *values);
    }
    return mesh_distribute_same(t, m, MESH_PLACEMENTS(p));
}

static mesh_dtensor *classes(mesh_device_mesh *m, int n, const int32_t *values)
{
    mesh_tensor *t = mesh_tensor_new(SHAPE(n), MESH_I32);
    memcpy(mesh_tensor_data(t), values, (size_t)n * sizeof *values);
    return mesh_distribute_same(t, m, MESH_PLACEMENTS(mesh_replicate()));
}

static int expect(mesh_dtensor *x, int n, const double *want, double tolerance)
{
    REQUIRE(x != NULL);
    mesh_tensor *full = mesh_full_tensor(x);
    REQUIRE(full != NULL);
    for (int i = 0; i < n; i++) {
        REQUIRE_NEAR(((const double *)mesh_tensor_data(full))[i], want[i], tolerance);
    }
    return 0;
}

static int product(void *arg)
{
    (void)arg;
    static const double ten[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, want[4] = { 60, 70, 160, 195 };
    mesh_device_mesh *m = line();
    mesh_dtensor *y =
        mesh_matmul(numbers(m, SHAPE(2, 5), ten, mesh_shard(1)), numbers(m, SHAPE(5, 2), ten, mesh_shard(0)));
    REQUIRE(y != NULL);
    REQUIRE(mesh_placements_of(y).at[0].kind == MESH_IS_PARTIAL);
    if (mesh_rank() == 3) {
        REQUIRE_NEAR(((const double *)mesh_tensor_data(mesh_to_local(y)))[0], 0, 0);
    }
    return expect(y, 4, want, 0);
}
START_TEST(a_product_over_a_sharded_dim_is_pending)
{
    ranks_run(4, product, NULL);
}
END_TEST

static int softmaxes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *a = numbers(m, SHAPE(4), (const double[]){ 0, log(2), log(3), log(4) }, mesh_shard(0));
    REQUIRE_OK(expect(mesh_softmax(a, 0), 4, (const double[]){ 0.1, 0.2, 0.3, 0.4 }, 1e-12));
    mesh_dtensor *b = numbers(m, SHAPE(3), (const double[]){ 1000, 1001, 999 }, mesh_shard(0));
    REQUIRE_OK(expect(mesh_softmax(b, -1), 3, (const double[]){ 0.2447285, 0.6652410, 0.0900306 }, 1e-7));
    mesh_dtensor *c = numbers(m, SHAPE(4), (const double[]){ -INFINITY, -INFINITY, 0, 0 }, mesh_shard(0));
    return expect(mesh_log_softmax(c, 0), 4, (const double[]){ -INFINITY, -INFINITY, -0.6931472, -0.6931472 }, 1e-7);
}
/* Five classes over four ranks, 2 2 1 0: with y = softmax(x) and dy = (1, 0, 0, 0, 0), dx_j = y_0 ((j = 0) - y_j). */
static int uneven_softmax(void *arg)
{
    (void)arg;
    static const double five[5] = { 0, 0.5, -1, 2, 1 }, first[5] = { 1, 0, 0, 0, 0 };
    mesh_device_mesh *m = line();
    double y[5], want[5], sum = 0;
    for (int j = 0; j < 5; j++) {
        sum += exp(five[j]);
    }
    for (int j = 0; j < 5; j++) {
        y[j] = exp(five[j]) / sum;
        want[j] = y[0] * ((j == 0 ? 1 : 0) - y[j]);
    }
    mesh_dtensor *x = mesh_requires_grad(numbers(m, SHAPE(1, 5), five, mesh_shard(1)), true), *p = mesh_softmax(x, 1);
    REQUIRE_OK(expect(p, 5, y, 1e-12));
    REQUIRE(mesh_backward_from(p, numbers(m, SHAPE(1, 5), first, mesh_shard(1))) == 0);
    REQUIRE(mesh_placements_of(mesh_grad(x)).at[0].kind == MESH_IS_SHARD);
    return expect(mesh_grad(x), 5, want, 1e-12);
}
START_TEST(softmax_and_its_gradient_over_five_classes_on_four_ranks)
{
    ranks_run(4, uneven_softmax, NULL);
}
END_TEST

START_TEST(softmax_over_a_sharded_dim_survives_large_and_infinite_numbers)
{
    ranks_run(2, softmaxes, NULL);
}
END_TEST

static int losses(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    double logits[4] = { 0, log(2), log(3), log(4) };
    mesh_dtensor *x = mesh_requires_grad(numbers(m, SHAPE(1, 4), logits, mesh_shard(1)), true);
    mesh_dtensor *t = classes(m, 1, (const int32_t[]){ 2 });
    mesh_dtensor *loss = mesh_cross_entropy(x, t);
    REQUIRE_NEAR(mesh_item(loss), 1.2039728, 1e-7);
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE_OK(expect(mesh_grad(x), 4, (const double[]){ 0.1, 0.2, -0.7, 0.4 }, 1e-9));
    REQUIRE_NEAR(mesh_item(mesh_cross_entropy(x, t, .label_smoothing = 0.1)), 1.2343827, 1e-7);
    int64_t ignore = 2;
    REQUIRE(isnan(mesh_item(mesh_cross_entropy(x, t, .ignore_index = &ignore))));
    REQUIRE_NEAR(mesh_item(mesh_cross_entropy(x, t, .ignore_index = &ignore, .reduction = MESH_REDUCTION_SUM)), 0, 0);
    mesh_dtensor *five = numbers(m, SHAPE(1, 5), (const double[]){ 0, 1, 2, 3, 4 }, mesh_shard(1));
    REQUIRE_NEAR(mesh_item(mesh_cross_entropy(five, classes(m, 1, (const int32_t[]){ 4 }))), 0.4519144, 1e-7);
    return 0;
}
START_TEST(cross_entropy_over_sharded_classes_has_its_closed_form)
{
    ranks_run(_i, losses, NULL);
}
END_TEST

/* 7 rows over the ranks, the second ignored, the others of different loss: the mean is over 6, wherever they lie. */
static int uneven_mean(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    double logits[14], sum = 0;
    for (int i = 0; i < 7; i++) {
        logits[2 * i] = i;
        logits[2 * i + 1] = 0;
        sum += i == 1 ? 0 : log(1 + exp(-i));
    }
    static const int32_t target[7] = { 0, -100, 0, 0, 0, 0, 0 };
    mesh_dtensor *x = numbers(m, SHAPE(7, 2), logits, mesh_shard(0)), *t = classes(m, 7, target);
    mesh_comm_reset();
    mesh_dtensor *loss = mesh_cross_entropy(x, t);
    REQUIRE_NEAR(mesh_item(loss), sum / 6, 1e-12);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == (mesh_world_size() > 1 ? 1 : 0));
    return 0;
}
START_TEST(a_mean_over_uneven_rows_with_ignored_ones_is_exact_and_costs_one_all_reduce)
{
    ranks_run(_i, uneven_mean, NULL);
}
END_TEST

static int bad_class(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *x = numbers(m, SHAPE(1, 4), (const double[]){ 0, 1, 2, 3 }, mesh_replicate());
    REQUIRE(mesh_cross_entropy(x, classes(m, 1, (const int32_t[]){ 4 })) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(a_class_out_of_range_is_an_error)
{
    ranks_run(1, bad_class, NULL);
}
END_TEST

static int shapes(void *arg)
{
    (void)arg;
    static const double six[6] = { 1, 2, 3, 4, 5, 6 };
    mesh_device_mesh *m = line();
    mesh_dtensor *x = numbers(m, SHAPE(2, 3), six, mesh_shard(0));
    REQUIRE_OK(expect(mesh_transpose(x, 0, -1), 6, (const double[]){ 1, 4, 2, 5, 3, 6 }, 0));
    REQUIRE_OK(expect(mesh_reshape(x, SHAPE(-1, 2)), 6, six, 0));
    REQUIRE(mesh_shape_of(mesh_reshape(x, SHAPE(-1, 2))).dim[0] == 3);
    REQUIRE_NEAR(mesh_item(mesh_mean(x)), 3.5, 0);
    REQUIRE_OK(expect(mesh_sum(x, .dims = SHAPE(1)), 2, (const double[]){ 6, 15 }, 0));
    REQUIRE(mesh_shape_of(mesh_sum(x, .dims = SHAPE(1), .keepdim = true)).ndim == 2);
    static const mesh_shape wrong[] = { { .ndim = 2, .dim = { -1, -1 } },
                                        { .ndim = 2, .dim = { 4, -1 } },
                                        { .ndim = 1, .dim = { 7 } } };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_reshape(x, wrong[i]) == NULL);
        REQUIRE(mesh_scope_end(scope) == MESH_ESHAPE);
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_sum(x, .dims = SHAPE(1, -1)) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(shapes_and_dims_are_normalised_and_checked)
{
    ranks_run(2, shapes, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("values");
    TCase *t = tcase_create("values");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_product_over_a_sharded_dim_is_pending);
    tcase_add_test(t, softmax_and_its_gradient_over_five_classes_on_four_ranks);
    tcase_add_test(t, softmax_over_a_sharded_dim_survives_large_and_infinite_numbers);
    tcase_add_loop_test(t, cross_entropy_over_sharded_classes_has_its_closed_form, 1, 5);
    tcase_add_loop_test(t, a_mean_over_uneven_rows_with_ignored_ones_is_exact_and_costs_one_all_reduce, 1, 5);
    tcase_add_test(t, a_class_out_of_range_is_an_error);
    tcase_add_test(t, shapes_and_dims_are_normalised_and_checked);
    suite_add_tcase(s, t);
    return s;
}
