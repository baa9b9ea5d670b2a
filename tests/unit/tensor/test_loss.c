/* tests/unit/tensor/test_loss.c - cross entropy: known values, smoothing, ignored rows, bad targets, gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "harness/tensors.h"

#define IGNORED -100

static double tolerance_of(mesh_dtype t)
{
    return t == MESH_F32 ? 8 * FLT_EPSILON : 64 * DBL_EPSILON;
}

/* p[j] of row i: classes are `inner` apart. */
static double probability(const struct mesh_tensor *x, int64_t first, int64_t j)
{
    int class_dim = x->shape.ndim == 1 ? 0 : 1;
    int64_t c = x->shape.dim[class_dim], inner = shape_inner(x->shape, class_dim);
    double sum = 0;
    for (int64_t l = 0; l < c; l++) {
        sum += exp(get(x, first + l * inner));
    }
    return exp(get(x, first + j * inner)) / sum;
}

struct loss_case {
    mesh_shape logits, target;
    mesh_dtype dtype, target_dtype;
    double smoothing;
};

static int64_t first_of_row(mesh_shape s, int64_t i)
{
    int class_dim = s.ndim == 1 ? 0 : 1;
    int64_t c = s.dim[class_dim], inner = shape_inner(s, class_dim);
    return i / inner * c * inner + i % inner;
}

static double naive_loss(const struct mesh_tensor *x, int64_t i, int64_t t, double smoothing)
{
    int class_dim = x->shape.ndim == 1 ? 0 : 1;
    int64_t c = x->shape.dim[class_dim], first = first_of_row(x->shape, i);
    double even = 0;
    for (int64_t j = 0; j < c; j++) {
        even -= log(probability(x, first, j)) / (double)c;
    }
    return -(1 - smoothing) * log(probability(x, first, t)) + smoothing * even;
}

static struct mesh_tensor *targets(const struct loss_case *k)
{
    int64_t c = k->logits.dim[k->logits.ndim == 1 ? 0 : 1];
    struct mesh_tensor *t = test_tensor_empty(k->target, k->target_dtype);
    for (int64_t i = 0; i < t->n; i++) {
        set(t, i, i % 5 == 3 ? IGNORED : (double)(i * 2 % c));
    }
    return t;
}

static void check_grad(const struct loss_case *k, const struct mesh_tensor *x, const struct mesh_tensor *target,
                       bool per_row)
{
    int class_dim = x->shape.ndim == 1 ? 0 : 1;
    int64_t c = x->shape.dim[class_dim], inner = shape_inner(x->shape, class_dim);
    struct mesh_tensor *scale = test_tensor_rough(per_row ? k->target : MESH_SCALAR_SHAPE, k->dtype, 9);
    struct mesh_tensor *dx = test_tensor_empty(k->logits, k->dtype);
    struct op_attr attr = { .value = { k->smoothing, (double)c }, .index = { IGNORED } };
    run_kernel(k_cross_entropy_grad, &(struct kernel_call){ .in = { scale, x, target }, .out = { dx }, .attr = &attr });
    for (int64_t i = 0; i < target->n; i++) {
        for (int64_t j = 0; j < c; j++) {
            int64_t first = first_of_row(x->shape, i);
            double q = k->smoothing / (double)c + (j == (int64_t)get(target, i) ? 1 - k->smoothing : 0);
            double want = get(scale, per_row ? i : 0) * (probability(x, first, j) - q);
            assert_element(dx, first + j * inner, get(target, i) == IGNORED ? 0 : want, tolerance_of(k->dtype));
        }
    }
    tensors_unref(2, scale, dx);
}

static void check_case(const struct loss_case *k)
{
    struct mesh_tensor *x = test_tensor_rough(k->logits, k->dtype, 1), *target = targets(k);
    struct mesh_tensor *rows = test_tensor_empty(k->target, k->dtype),
                       *sum = test_tensor_empty(MESH_SCALAR_SHAPE, k->dtype);
    struct mesh_tensor *count = test_tensor_empty(MESH_SCALAR_SHAPE, k->dtype);
    struct op_attr attr = { .value = { k->smoothing }, .index = { IGNORED } };
    double total = 0, n = 0;
    run_kernel(k_cross_entropy_rows, &(struct kernel_call){ .in = { x, target }, .out = { rows }, .attr = &attr });
    for (int64_t i = 0; i < target->n; i++) {
        bool counts = get(target, i) != IGNORED;
        double want = counts ? naive_loss(x, i, (int64_t)get(target, i), k->smoothing) : 0;
        assert_element(rows, i, want, tolerance_of(k->dtype));
        total += want;
        n += counts;
    }
    run_kernel(k_cross_entropy_sum, &(struct kernel_call){ .in = { x, target }, .out = { sum, count }, .attr = &attr });
    assert_element(sum, 0, total, tolerance_of(k->dtype));
    assert_element(count, 0, n, 0);
    check_grad(k, x, target, false);
    check_grad(k, x, target, true);
    tensors_unref(5, x, target, rows, sum, count);
}

START_TEST(losses_and_gradients_match_the_formula)
{
    static const struct {
        mesh_shape logits, target;
    } shapes[] = { { { 2, { 7, 5 } }, { 1, { 7 } } },
                   { { 1, { 5 } }, { 0, { 0 } } },
                   { { 2, { 0, 5 } }, { 1, { 0 } } },
                   { { 2, { 4, 1 } }, { 1, { 4 } } },
                   { { 3, { 2, 5, 3 } }, { 2, { 2, 3 } } } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int bits = 0; bits < 8; bits++) {
            check_case(&(struct loss_case){ .logits = shapes[i].logits,
                                            .target = shapes[i].target,
                                            .dtype = bits & 1 ? MESH_F64 : MESH_F32,
                                            .target_dtype = bits & 2 ? MESH_I64 : MESH_I32,
                                            .smoothing = bits & 4 ? 0.1 : 0 });
        }
    }
}
END_TEST

static double one_row(double smoothing, int n_classes, const double *logits, double target)
{
    struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(1, n_classes), MESH_F64, logits);
    struct mesh_tensor *t = test_tensor_of(MESH_SHAPE(1), MESH_I64, &target);
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(1), MESH_F64);
    struct op_attr attr = { .value = { smoothing }, .index = { IGNORED } };
    run_kernel(k_cross_entropy_rows, &(struct kernel_call){ .in = { x, t }, .out = { y }, .attr = &attr });
    double loss = get(y, 0);
    tensors_unref(3, x, t, y);
    return loss;
}

START_TEST(known_losses)
{
    double logs[] = { 0, log(2), log(3), log(4) };
    ck_assert_double_eq_tol(one_row(0, 4, logs, 2), 1.2039728, 1e-7);
    ck_assert_double_eq_tol(one_row(0, 5, (double[]){ 0, 1, 2, 3, 4 }, 4), 0.4519144, 1e-7);
    ck_assert_double_eq_tol(one_row(0.1, 4, logs, 2), 1.2343827, 1e-7);
    ck_assert_double_eq(one_row(0, 4, logs, IGNORED), 0);
    ck_assert_double_eq_tol(one_row(0, 3, (double[]){ 0, -INFINITY, 0 }, 0), log(2), 1e-12);
    ck_assert_double_eq_tol(one_row(0, 2, (double[]){ 2000, 0 }, 1), 2000, 1e-9);
}
END_TEST

START_TEST(target_that_is_no_class_is_a_local_error_naming_row_and_value)
{
    static const double bad[] = { 4, -1, -101 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double t[2] = { 1, bad[i] };
        struct mesh_tensor *x = test_tensor(MESH_SHAPE(2, 4), MESH_F32, 1),
                           *target = test_tensor_of(MESH_SHAPE(2), MESH_I64, t);
        struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(2), MESH_F32);
        struct op_attr attr = { .index = { IGNORED } };
        struct kernel_call c = { .in = { x, target }, .out = { y, y }, .attr = &attr, .offset = { 10 } };
        ck_assert_int_eq(k_cross_entropy_rows(&c), MESH_EINVAL);
        ck_assert(err_is_local());
        ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "row 11"));
        ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "4 classes"));
        ck_assert_int_eq(k_cross_entropy_sum(&c), MESH_EINVAL);
        tensors_unref(3, x, target, y);
    }
}
END_TEST

START_TEST(other_dtypes_are_refused)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(2, 4), MESH_F32, 1),
                       *target = test_tensor(MESH_SHAPE(2), MESH_F32, 1);
    struct op_attr attr = { .index = { IGNORED } };
    ck_assert_int_eq(
        k_cross_entropy_rows(&(struct kernel_call){ .in = { x, target }, .out = { target }, .attr = &attr }),
        MESH_EUNSUPPORTED);
    tensors_unref(2, x, target);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("loss");
    TCase *t = tcase_create("loss");
    tcase_add_test(t, losses_and_gradients_match_the_formula);
    tcase_add_test(t, known_losses);
    tcase_add_test(t, target_that_is_no_class_is_a_local_error_naming_row_and_value);
    tcase_add_test(t, other_dtypes_are_refused);
    suite_add_tcase(s, t);
    return s;
}
