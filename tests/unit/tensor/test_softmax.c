/* tests/unit/tensor/test_softmax.c - softmax, log_softmax and their gradients, also where naive code overflows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>

#include "harness/tensors.h"

static double tolerance_of(mesh_dtype t)
{
    return t == MESH_F32 ? 8 * FLT_EPSILON : 64 * DBL_EPSILON; /* an exponential, a sum, a division */
}

/* Element i's line along dim: the sum over it of f(element). */
static double line_sum(const struct mesh_tensor *x, int dim, int64_t i, double (*f)(double))
{
    int64_t inner = shape_inner(x->shape, dim), n = x->shape.dim[dim];
    int64_t first = i / (n * inner) * n * inner + i % inner;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        sum += f(get(x, first + j * inner));
    }
    return sum;
}

static double itself(double x)
{
    return x;
}

static void check_forward(mesh_dtype t, mesh_shape s, int dim)
{
    struct mesh_tensor *x = test_tensor_rough(s, t, 1), *y = test_tensor_empty(s, t);
    struct op_attr attr = { .dim = { dim } };
    struct kernel_call c = { .in = { x }, .out = { y }, .attr = &attr };
    run_kernel(k_softmax, &c);
    for (int64_t i = 0; i < x->n; i++) {
        assert_element(y, i, exp(get(x, i)) / line_sum(x, dim, i, exp), tolerance_of(t));
    }
    run_kernel(k_log_softmax, &c);
    for (int64_t i = 0; i < x->n; i++) {
        assert_element(y, i, get(x, i) - log(line_sum(x, dim, i, exp)), tolerance_of(t));
    }
    tensors_unref(2, x, y);
}

/* The gradients take y as an ordinary input, so any y will do: products of dy and y by hand. */
static void check_backward(mesh_dtype t, mesh_shape s, int dim)
{
    struct mesh_tensor *dy = test_tensor_rough(s, t, 1), *y = test_tensor_rough(s, t, 2), *dx = test_tensor_empty(s, t);
    struct mesh_tensor *dyy = test_tensor_empty(s, MESH_F64);
    struct op_attr attr = { .dim = { dim } };
    struct kernel_call c = { .in = { dy, y }, .out = { dx }, .attr = &attr };
    for (int64_t i = 0; i < dy->n; i++) {
        set(dyy, i, get(dy, i) * get(y, i));
    }
    run_kernel(k_softmax_backward, &c);
    for (int64_t i = 0; i < dy->n; i++) {
        assert_element(dx, i, get(y, i) * (get(dy, i) - line_sum(dyy, dim, i, itself)), tolerance_of(t));
    }
    run_kernel(k_log_softmax_backward, &c);
    for (int64_t i = 0; i < dy->n; i++) {
        assert_element(dx, i, get(dy, i) - exp(get(y, i)) * line_sum(dy, dim, i, itself), 8 * tolerance_of(t));
    }
    tensors_unref(4, dy, y, dx, dyy);
}

START_TEST(softmax_family_along_every_dimension)
{
    static const mesh_shape shapes[] = { { 1, { 5 } },    { 2, { 5, 3 } }, { 3, { 4, 6, 2 } },
                                         { 2, { 0, 3 } }, { 2, { 3, 0 } }, { 2, { 3, 1 } } };
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64 };
    for (int d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            for (int dim = 0; dim < shapes[i].ndim; dim++) {
                check_forward(dtypes[d], shapes[i], dim);
                check_backward(dtypes[d], shapes[i], dim);
            }
        }
    }
}
END_TEST

static void check_line(kernel_fn kernel, int n, const double *x, const double *want)
{
    struct mesh_tensor *in = test_tensor_of(MESH_SHAPE(n), MESH_F32, x),
                       *out = test_tensor_empty(MESH_SHAPE(n), MESH_F32);
    struct op_attr attr = { .dim = { 0 } };
    run_kernel(kernel, &(struct kernel_call){ .in = { in }, .out = { out }, .attr = &attr });
    assert_values(out, 8 * FLT_EPSILON, want);
    tensors_unref(2, in, out);
}

START_TEST(known_values_large_logits_and_minus_infinity)
{
    check_line(k_softmax, 4, (double[]){ 0, log(2), log(3), log(4) }, (double[]){ .1, .2, .3, .4 });
    check_line(k_softmax, 3, (double[]){ 1000, 1001, 999 }, (double[]){ 0.24472847105, 0.66524095577, 0.09003057317 });
    check_line(k_log_softmax, 4, (double[]){ -INFINITY, -INFINITY, 0, 0 },
               (double[]){ -INFINITY, -INFINITY, -log(2), -log(2) });
    check_line(k_softmax, 3, (double[]){ -INFINITY, 5, -INFINITY }, (double[]){ 0, 1, 0 });
}
END_TEST

START_TEST(nan_in_a_line_and_lines_of_minus_infinity_are_nan)
{
    check_line(k_softmax, 3, (double[]){ 1, NAN, 2 }, (double[]){ NAN, NAN, NAN });
    check_line(k_log_softmax, 3, (double[]){ NAN, 1, 2 }, (double[]){ NAN, NAN, NAN });
    check_line(k_softmax, 2, (double[]){ -INFINITY, -INFINITY }, (double[]){ NAN, NAN });
}
END_TEST

START_TEST(scalar_is_a_line_of_one)
{
    struct mesh_tensor *x = test_tensor_of(MESH_SCALAR_SHAPE, MESH_F64, (double[]){ 3 });
    struct mesh_tensor *y = test_tensor_empty(MESH_SCALAR_SHAPE, MESH_F64);
    struct op_attr attr = { .dim = { 0 } };
    run_kernel(k_softmax, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    assert_element(y, 0, 1, 0);
    tensors_unref(2, x, y);
}
END_TEST

START_TEST(integers_are_refused)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3), MESH_I64, 1);
    struct op_attr attr = { .dim = { 0 } };
    ck_assert_int_eq(k_softmax(&(struct kernel_call){ .in = { x }, .out = { x }, .attr = &attr }), MESH_EUNSUPPORTED);
    tensor_unref(x);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("softmax");
    TCase *t = tcase_create("softmax");
    tcase_add_test(t, softmax_family_along_every_dimension);
    tcase_add_test(t, known_values_large_logits_and_minus_infinity);
    tcase_add_test(t, nan_in_a_line_and_lines_of_minus_infinity_are_nan);
    tcase_add_test(t, scalar_is_a_line_of_one);
    tcase_add_test(t, integers_are_refused);
    suite_add_tcase(s, t);
    return s;
}
