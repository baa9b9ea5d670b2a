/* tests/unit/tensor/test_unary.c - functions of one number, comparisons, choices, casts and triangles, value by value.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>

#include "harness/tensors.h"

#define N         9
#define ARRAY_(a) ((int)(sizeof(a) / sizeof(a)[0]))

static const double points[N] = { -INFINITY, -30, -1.5, -0.25, 0, 0.5, 2.5, 30, INFINITY };

static double reciprocal(double x)
{
    return 1 / x;
}
static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double softplus(double x)
{
    return x > 20 ? x : log(1 + exp(x));
}
static double square(double x)
{
    return x * x;
}
static double cube(double x)
{
    return x * x * x;
}
static double leaky(double x)
{
    return x > 0 ? x : 0.125 * x;
}
static double clamped(double x)
{
    return fmin(fmax(x, -1.5), 2);
}

static const struct {
    kernel_fn kernel;
    double (*formula)(double);
    double value[2];
} functions[] = {
    { k_abs, fabs, { 0 } },
    { k_ceil, ceil, { 0 } },
    { k_clamp, clamped, { -1.5, 2 } },
    { k_cos, cos, { 0 } },
    { k_erf, erf, { 0 } },
    { k_exp, exp, { 0 } },
    { k_expm1, expm1, { 0 } },
    { k_floor, floor, { 0 } },
    { k_leaky_relu, leaky, { 0.125 } },
    { k_log, log, { 0 } },
    { k_log1p, log1p, { 0 } },
    { k_pow_scalar, cube, { 3 } },
    { k_reciprocal, reciprocal, { 0 } },
    { k_round, rint, { 0 } },
    { k_rsqrt, rsqrt, { 0 } },
    { k_sigmoid, sigmoid, { 0 } },
    { k_sign, sign, { 0 } },
    { k_silu, silu, { 0 } },
    { k_sin, sin, { 0 } },
    { k_softplus, softplus, { 0 } },
    { k_sqrt, sqrt, { 0 } },
    { k_square, square, { 0 } },
};

START_TEST(functions_agree_with_the_c_library_at_infinities_and_0_too)
{
    struct op_attr attr = { .value = { functions[_i].value[0], functions[_i].value[1] } };
    for (int f64 = 0; f64 < 2; f64++) {
        mesh_dtype t = f64 ? MESH_F64 : MESH_F32;
        struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(N), t, points), *y = test_tensor_empty(MESH_SHAPE(N), t);
        run_kernel(functions[_i].kernel, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
        for (int i = 0; i < N; i++) {
            double want = functions[_i].formula(points[i]);
            assert_element(y, i, f64 ? want : (double)(float)want, f64 ? 4 * DBL_EPSILON : 4 * FLT_EPSILON);
        }
        tensors_unref(2, x, y);
    }
}
END_TEST

/* sign(NaN) is 0, as PyTorch has it. */
START_TEST(nan_stays_nan)
{
    struct op_attr attr = { .value = { functions[_i].value[0], functions[_i].value[1] } };
    struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(1), MESH_F64, (double[]){ NAN });
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(1), MESH_F64);
    run_kernel(functions[_i].kernel, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    assert_element(y, 0, functions[_i].kernel == k_sign ? 0 : NAN, 0);
    tensors_unref(2, x, y);
}
END_TEST

static void check_ints(kernel_fn kernel, const double *value, mesh_dtype t, const double *in, const double *want)
{
    struct op_attr attr = { .value = { value[0], value[1] } };
    struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(4), t, in), *y = test_tensor_empty(MESH_SHAPE(4), t);
    run_kernel(kernel, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    assert_values(y, 0, want);
    tensors_unref(2, x, y);
}

START_TEST(integers_have_the_functions_that_are_whole_and_wrap)
{
    const double x[4] = { -3, 0, 2, 5 }, none[2] = { 0 };
    check_ints(k_abs, none, MESH_I64, x, (double[]){ 3, 0, 2, 5 });
    check_ints(k_sign, none, MESH_I32, x, (double[]){ -1, 0, 1, 1 });
    check_ints(k_square, none, MESH_I32, x, (double[]){ 9, 0, 4, 25 });
    check_ints(k_floor, none, MESH_I64, x, x);
    check_ints(k_pow_scalar, (double[2]){ 3 }, MESH_I64, x, (double[]){ -27, 0, 8, 125 });
    check_ints(k_clamp, (double[2]){ -INFINITY, 2 }, MESH_I64, x, (double[]){ -3, 0, 2, 2 });
    check_ints(k_clamp, (double[2]){ 1, INFINITY }, MESH_I8, x, (double[]){ 1, 1, 2, 5 });
    check_ints(k_square, none, MESH_U8, (double[]){ 15, 16, 17, 0 }, (double[]){ 225, 0, 33, 0 });
    check_ints(k_abs, none, MESH_I8, (double[]){ -128, -127, 127, 0 }, (double[]){ -128, 127, 127, 0 });
}
END_TEST

START_TEST(an_inverted_clamp_gives_the_upper_bound)
{
    check_ints(k_clamp, (double[2]){ 3, 1 }, MESH_F64, (double[]){ -5, 2, 1, 9 }, (double[]){ 1, 1, 1, 1 });
}
END_TEST

/* --- two numbers --------------------------------------------------------------------------------------------------- */

static void check_pair(kernel_fn kernel, mesh_dtype t_out, const double *want)
{
    struct mesh_tensor *a = test_tensor_of(MESH_SHAPE(5), MESH_F64, (double[]){ 1, 2, 2, NAN, 0 });
    struct mesh_tensor *b = test_tensor_of(MESH_SHAPE(5), MESH_F64, (double[]){ 2, 1, 2, 0, NAN });
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(5), t_out);
    run_kernel(kernel, &(struct kernel_call){ .in = { a, b }, .out = { y } });
    for (int i = 0; i < 5; i++) {
        double got = t_out == MESH_BOOL ? ((const uint8_t *)y->data)[i] : get(y, i);
        ck_assert_msg((isnan(got) && isnan(want[i])) || got == want[i], "element %d: %g, not %g", i, got, want[i]);
    }
    tensors_unref(3, a, b, y);
}

START_TEST(comparisons_with_nan_are_false_but_for_ne)
{
    check_pair(k_eq, MESH_BOOL, (double[]){ 0, 0, 1, 0, 0 });
    check_pair(k_ne, MESH_BOOL, (double[]){ 1, 1, 0, 1, 1 });
    check_pair(k_lt, MESH_BOOL, (double[]){ 1, 0, 0, 0, 0 });
    check_pair(k_le, MESH_BOOL, (double[]){ 1, 0, 1, 0, 0 });
    check_pair(k_gt, MESH_BOOL, (double[]){ 0, 1, 0, 0, 0 });
    check_pair(k_ge, MESH_BOOL, (double[]){ 0, 1, 1, 0, 0 });
    check_pair(k_logical_and, MESH_BOOL, (double[]){ 1, 1, 1, 0, 0 });
    check_pair(k_logical_or, MESH_BOOL, (double[]){ 1, 1, 1, 1, 1 });
}
END_TEST

START_TEST(extremes_propagate_nan)
{
    check_pair(k_maximum, MESH_F64, (double[]){ 2, 2, 2, NAN, NAN });
    check_pair(k_minimum, MESH_F64, (double[]){ 1, 1, 2, NAN, NAN });
}
END_TEST

START_TEST(whole_powers_of_whole_numbers)
{
    struct mesh_tensor *a = test_tensor_of(MESH_SHAPE(6), MESH_I64, (double[]){ 2, -3, 1, -1, -1, 5 });
    struct mesh_tensor *b = test_tensor_of(MESH_SHAPE(6), MESH_I64, (double[]){ 10, 3, -7, -2, -3, -1 });
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(6), MESH_I64);
    run_kernel(k_pow, &(struct kernel_call){ .in = { a, b }, .out = { y } });
    assert_values(y, 0, (double[]){ 1024, -27, 1, 1, -1, 0 });
    tensors_unref(3, a, b, y);
}
END_TEST

static struct mesh_tensor *truths(mesh_shape s, const uint8_t *values)
{
    struct mesh_tensor *t = tensor_new(s, MESH_BOOL);
    ck_assert_ptr_nonnull(t);
    for (int64_t i = 0; i < t->n; i++) {
        ((uint8_t *)t->data)[i] = values[i];
    }
    return t;
}

START_TEST(bits_of_integers_and_of_truth)
{
    struct mesh_tensor *a = test_tensor_of(MESH_SHAPE(4), MESH_I32, (double[]){ 12, -1, 0, 5 });
    struct mesh_tensor *b = test_tensor_of(MESH_SHAPE(4), MESH_I32, (double[]){ 10, 7, 3, 5 });
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(4), MESH_I32);
    struct kernel_call c = { .in = { a, b }, .out = { y } };
    run_kernel(k_bitwise_and, &c);
    assert_values(y, 0, (double[]){ 8, 7, 0, 5 });
    run_kernel(k_bitwise_or, &c);
    assert_values(y, 0, (double[]){ 14, -1, 3, 5 });
    run_kernel(k_bitwise_xor, &c);
    assert_values(y, 0, (double[]){ 6, -8, 3, 0 });
    run_kernel(k_bitwise_not, &(struct kernel_call){ .in = { a }, .out = { y } });
    assert_values(y, 0, (double[]){ -13, 0, -1, -6 });
    struct mesh_tensor *yes = truths(MESH_SHAPE(2), (uint8_t[]){ 1, 0 }),
                       *no = test_tensor_empty(yes->shape, MESH_BOOL);
    run_kernel(k_bitwise_not, &(struct kernel_call){ .in = { yes }, .out = { no } });
    ck_assert(((const uint8_t *)no->data)[0] == 0 && ((const uint8_t *)no->data)[1] == 1);
    tensors_unref(5, a, b, y, yes, no);
}
END_TEST

START_TEST(where_takes_from_three_broadcast_inputs)
{
    struct mesh_tensor *c = truths(MESH_SHAPE(2, 1), (uint8_t[]){ 1, 0 });
    struct mesh_tensor *a = test_tensor_of(MESH_SHAPE(3), MESH_F32, (double[]){ 1, 2, 3 });
    struct mesh_tensor *b = test_tensor_of(MESH_SHAPE(2, 3), MESH_F32, (double[]){ 10, 20, 30, 40, 50, 60 });
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(2, 3), MESH_F32);
    run_kernel(k_where, &(struct kernel_call){ .in = { c, a, b }, .out = { y } });
    assert_values(y, 0, (double[]){ 1, 2, 3, 40, 50, 60 });
    tensors_unref(4, c, a, b, y);
}
END_TEST

/* --- casts and triangles ------------------------------------------------------------------------------------------- */

static const struct {
    mesh_dtype from, to;
    double in[4], out[4];
} casts[] = {
    { MESH_F64, MESH_I32, { -1.75, NAN, 1e30, 2.5 }, { -1, 0, INT32_MAX, 2 } },
    { MESH_F32, MESH_U8, { -1, 300, 255, 0.9F }, { 0, 255, 255, 0 } },
    { MESH_I64, MESH_F32, { -3, 0, 7, 16777216 }, { -3, 0, 7, 16777216 } },
    { MESH_F64, MESH_F32, { -0.5, INFINITY, NAN, 3 }, { -0.5, INFINITY, NAN, 3 } },
    { MESH_I32, MESH_I8, { 1, 127, 128, -1 }, { 1, 127, -128, -1 } },
    { MESH_U8, MESH_I64, { 0, 1, 255, 7 }, { 0, 1, 255, 7 } },
};

START_TEST(casts_round_towards_0_and_stay_in_range)
{
    struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(4), casts[_i].from, casts[_i].in);
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(4), casts[_i].to);
    run_kernel(k_cast, &(struct kernel_call){ .in = { x }, .out = { y } });
    assert_values(y, 0, casts[_i].out);
    tensors_unref(2, x, y);
}
END_TEST

START_TEST(casts_of_more_than_a_block_and_of_truth)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(1300), MESH_F32, 3), *y = test_tensor_empty(x->shape, MESH_BF16);
    struct mesh_tensor *back = test_tensor_empty(x->shape, MESH_F64), *truth = test_tensor_empty(x->shape, MESH_BOOL);
    run_kernel(k_cast, &(struct kernel_call){ .in = { x }, .out = { y } });
    run_kernel(k_cast, &(struct kernel_call){ .in = { y }, .out = { back } });
    run_kernel(k_cast, &(struct kernel_call){ .in = { x }, .out = { truth } });
    for (int64_t i = 0; i < x->n; i++) {
        assert_element(back, i, get(x, i), 0); /* quarters below 2 */
        ck_assert_int_eq(((const uint8_t *)truth->data)[i], get(x, i) != 0);
    }
    tensors_unref(4, x, y, back, truth);
}
END_TEST

START_TEST(triangles_of_a_part_follow_global_indices)
{
    struct op_attr attr = { .index = { _i - 4 } };
    struct kernel_call c = { .attr = &attr, .offset = { 0, 2, 1 } };
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(2, 3, 4), MESH_F32, 1);
    for (int is_upper = 0; is_upper < 2; is_upper++) {
        struct mesh_tensor *y = test_tensor_empty(x->shape, MESH_F32);
        c.in[0] = x;
        c.out[0] = y;
        run_kernel(is_upper ? k_triu : k_tril, &c);
        for (int64_t i = 0; i < y->n; i++) {
            int64_t above = (i % 4 + 1) - (i / 4 % 3 + 2) - attr.index[0];
            bool is_kept = is_upper ? above >= 0 : above <= 0;
            assert_element(y, i, is_kept ? get(x, i) : 0, 0);
        }
        tensors_unref(1, y);
    }
    tensors_unref(1, x);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("unary");
    TCase *t = tcase_create("unary");
    tcase_add_loop_test(t, functions_agree_with_the_c_library_at_infinities_and_0_too, 0, ARRAY_(functions));
    tcase_add_loop_test(t, nan_stays_nan, 0, ARRAY_(functions));
    tcase_add_test(t, integers_have_the_functions_that_are_whole_and_wrap);
    tcase_add_test(t, an_inverted_clamp_gives_the_upper_bound);
    tcase_add_test(t, comparisons_with_nan_are_false_but_for_ne);
    tcase_add_test(t, extremes_propagate_nan);
    tcase_add_test(t, whole_powers_of_whole_numbers);
    tcase_add_test(t, bits_of_integers_and_of_truth);
    tcase_add_test(t, where_takes_from_three_broadcast_inputs);
    tcase_add_loop_test(t, casts_round_towards_0_and_stay_in_range, 0, ARRAY_(casts));
    tcase_add_test(t, casts_of_more_than_a_block_and_of_truth);
    tcase_add_loop_test(t, triangles_of_a_part_follow_global_indices, 0, 9);
    suite_add_tcase(s, t);
    return s;
}
