/* tests/unit/tensor/test_pointwise.c - pointwise kernels against one obvious formula per element, in double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "harness/tensors.h"

/* A few roundings of values up to about 16. */
#define F32_TOLERANCE (16 * FLT_EPSILON)

static const mesh_dtype numbers[] = { MESH_F32, MESH_F64, MESH_I8, MESH_U8, MESH_I32, MESH_I64 };
#define N_NUMBERS ((int)(sizeof numbers / sizeof numbers[0]))

static const struct {
    mesh_shape a, b;
} pairs[] = {
    { { 2, { 5, 3 } }, { 2, { 5, 3 } } },
    { { 2, { 5, 1 } }, { 2, { 1, 3 } } },
    { { 0, { 0 } }, { 2, { 5, 3 } } },
    { { 3, { 4, 6, 2 } }, { 1, { 2 } } },
    { { 3, { 1, 6, 1 } }, { 3, { 4, 1, 7 } } },
    { { 2, { 0, 3 } }, { 1, { 3 } } },
    { { 0, { 0 } }, { 0, { 0 } } },
    { { 4, { 2, 1, 3, 1 } }, { 3, { 5, 1, 7 } } },
    { { 1, { 1 } }, { 2, { 3, 0 } } },
    { { 2, { 2, 13 } }, { 2, { 2, 1 } } },
};
#define N_PAIRS ((int)(sizeof pairs / sizeof pairs[0]))

static double plus(double a, double b)
{
    return a + b;
}
static double minus(double a, double b)
{
    return a - b;
}
static double times(double a, double b)
{
    return a * b;
}
static const struct {
    kernel_fn kernel;
    double (*formula)(double, double);
} binaries[] = { { k_add, plus }, { k_sub, minus }, { k_mul, times } };

static void check_binary(int op, mesh_dtype dtype, mesh_shape sa, mesh_shape sb)
{
    mesh_shape out_shape;
    ck_assert_int_eq(shape_broadcast(sa, sb, "test", &out_shape), 0);
    struct mesh_tensor *a = test_tensor(sa, dtype, 1), *b = test_tensor(sb, dtype, 2);
    struct mesh_tensor *out = test_tensor_empty(out_shape, dtype);
    run_kernel(binaries[op].kernel, &(struct kernel_call){ .in = { a, b }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        double x = get(a, index_broadcast(sa, out_shape, i)), y = get(b, index_broadcast(sb, out_shape, i));
        double want = binaries[op].formula(x, y);
        assert_element(out, i, dtype == MESH_U8 && want < 0 ? want + 256 : want,
                       0); /* exact: quarters and small numbers */
    }
    tensors_unref(3, a, b, out);
}

START_TEST(add_sub_mul_broadcast_for_every_dtype)
{
    for (int op = 0; op < 3; op++) {
        for (int d = 0; d < N_NUMBERS; d++) {
            for (int p = 0; p < N_PAIRS; p++) {
                check_binary(op, numbers[d], pairs[p].a, pairs[p].b);
                check_binary(op, numbers[d], pairs[p].b, pairs[p].a);
            }
        }
    }
}
END_TEST

START_TEST(integers_wrap_around)
{
    struct mesh_tensor *a = tensor_new(MESH_SHAPE(1), MESH_I64), *out = tensor_new(MESH_SHAPE(1), MESH_I64);
    ((int64_t *)a->data)[0] = INT64_MAX;
    run_kernel(k_add, &(struct kernel_call){ .in = { a, a }, .out = { out } });
    ck_assert_int_eq(((int64_t *)out->data)[0], -2);
    run_kernel(k_mul, &(struct kernel_call){ .in = { a, a }, .out = { out } });
    ck_assert_int_eq(((int64_t *)out->data)[0], 1);
    run_kernel(k_neg, &(struct kernel_call){ .in = { a }, .out = { out } });
    ck_assert_int_eq(((int64_t *)out->data)[0], -INT64_MAX);
    tensors_unref(2, a, out);
}
END_TEST

START_TEST(division_is_for_floats_and_follows_ieee)
{
    double x[] = { 1, -3, 0, 5 }, y[] = { 4, 0, 0, -2 }, want[] = { 0.25, -INFINITY, NAN, -2.5 };
    struct mesh_tensor *a = test_tensor_of(MESH_SHAPE(4), MESH_F32, x), *b = test_tensor_of(MESH_SHAPE(4), MESH_F32, y);
    struct mesh_tensor *out = test_tensor_empty(MESH_SHAPE(4), MESH_F32);
    run_kernel(k_div, &(struct kernel_call){ .in = { a, b }, .out = { out } });
    assert_values(out, 0, want);
    tensors_unref(3, a, b, out);
    a = test_tensor(MESH_SHAPE(4), MESH_I32, 1);
    ck_assert_int_eq(k_div(&(struct kernel_call){ .in = { a, a }, .out = { a } }), MESH_EUNSUPPORTED);
    ck_assert_str_eq(mesh_last_error()->message, "div does not work on tensors of dtype i32");
    tensor_unref(a);
}
END_TEST

START_TEST(scalars_apply_to_every_dtype_that_can_hold_them)
{
    for (int d = 0; d < N_NUMBERS; d++) {
        mesh_dtype t = numbers[d];
        double v = t == MESH_F32 || t == MESH_F64 ? -1.5 : 3;
        struct mesh_tensor *x = test_tensor(MESH_SHAPE(3, 7), t, 3), *out = test_tensor_empty(MESH_SHAPE(3, 7), t);
        struct kernel_call c = { .in = { x }, .out = { out }, .attr = &(struct op_attr){ .value = { v } } };
        run_kernel(k_mul_scalar, &c);
        for (int64_t i = 0; i < x->n; i++) {
            assert_element(out, i, get(x, i) * v, 0);
        }
        run_kernel(k_add_scalar, &c);
        for (int64_t i = 0; i < x->n; i++) {
            assert_element(out, i, get(x, i) + v, 0);
        }
        tensors_unref(2, x, out);
    }
}
END_TEST

START_TEST(integer_times_a_fraction_or_too_large_a_number_is_refused)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3), MESH_U8, 3);
    struct op_attr attr = { .value = { 0.5 } };
    struct kernel_call c = { .in = { x }, .out = { x }, .attr = &attr };
    ck_assert_int_eq(k_mul_scalar(&c), MESH_EINVAL);
    attr.value[0] = 256;
    ck_assert_int_eq(k_add_scalar(&c), MESH_EINVAL);
    attr.value[0] = -1;
    ck_assert_int_eq(k_add_scalar(&c), MESH_EINVAL);
    attr.value[0] = NAN;
    ck_assert_int_eq(k_add_scalar(&c), MESH_EINVAL);
    tensor_unref(x);
}
END_TEST

static double gelu_erf(double x)
{
    return x * 0.5 * (1 + erf(x / sqrt(2)));
}
static double gelu_erf_slope(double x)
{
    return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(2 * acos(-1));
}
static double gelu_tanh_u(double x)
{
    return sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
}
static double gelu_tanh(double x)
{
    return x * 0.5 * (1 + tanh(gelu_tanh_u(x)));
}
static double gelu_tanh_slope(double x)
{
    double t = tanh(gelu_tanh_u(x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * x * x);
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double relu_slope(double x)
{
    return x > 0 ? 1 : 0;
}
static double tanh_slope_of_y(double y)
{
    return 1 - y * y;
}
static const struct {
    kernel_fn forward, backward; /* backward: dy times slope(second input) */
    double (*formula)(double);
    double (*slope)(double);
    int mode;
} activations[] = { { k_relu, k_relu_backward, relu, relu_slope, 0 },
                    { k_tanh, k_tanh_backward, tanh, tanh_slope_of_y, 0 },
                    { k_gelu, k_gelu_backward, gelu_erf, gelu_erf_slope, 0 },
                    { k_gelu, k_gelu_backward, gelu_tanh, gelu_tanh_slope, 1 } };

START_TEST(activations_and_their_slopes_match_the_formulas)
{
    for (int k = 0; k < 4; k++) {
        for (int d = 0; d < 2; d++) {
            double tolerance = numbers[d] == MESH_F32 ? F32_TOLERANCE : 16 * DBL_EPSILON;
            mesh_shape s = MESH_SHAPE(7, 31);
            struct mesh_tensor *x = test_tensor_rough(s, numbers[d], 4), *dy = test_tensor_rough(s, numbers[d], 5);
            struct mesh_tensor *out = test_tensor_empty(s, numbers[d]);
            struct op_attr attr = { .mode = activations[k].mode };
            run_kernel(activations[k].forward, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
            for (int64_t i = 0; i < x->n; i++) {
                assert_element(out, i, activations[k].formula(get(x, i)), tolerance);
            }
            run_kernel(activations[k].backward,
                       &(struct kernel_call){ .in = { dy, x }, .out = { out }, .attr = &attr });
            for (int64_t i = 0; i < x->n; i++) {
                assert_element(out, i, get(dy, i) * activations[k].slope(get(x, i)), tolerance);
            }
            tensors_unref(3, x, dy, out);
        }
    }
}
END_TEST

START_TEST(activations_keep_nan_and_saturate)
{
    double v[] = { NAN, 40, -40, 0 };
    struct mesh_tensor *x = test_tensor_of(MESH_SHAPE(4), MESH_F32, v),
                       *out = test_tensor_empty(MESH_SHAPE(4), MESH_F32);
    for (int mode = 0; mode < 2; mode++) {
        struct op_attr attr = { .mode = mode };
        run_kernel(k_gelu, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
        assert_values(out, 0, (double[]){ NAN, 40, 0, 0 });
    }
    run_kernel(k_relu, &(struct kernel_call){ .in = { x }, .out = { out } });
    assert_values(out, 0, (double[]){ NAN, 40, 0, 0 });
    run_kernel(k_tanh, &(struct kernel_call){ .in = { x }, .out = { out } });
    assert_values(out, 0, (double[]){ NAN, 1, -1, 0 });
    tensors_unref(2, x, out);
}
END_TEST

static struct mesh_tensor *half_tensor(mesh_shape shape, mesh_dtype dtype, uint64_t seed)
{
    struct mesh_tensor *wide = test_tensor(shape, MESH_F32, seed), *t = test_tensor_empty(shape, dtype);
    run_kernel(k_cast, &(struct kernel_call){ .in = { wide }, .out = { t } });
    tensors_unref(1, wide);
    return t;
}

/* k_add of halves a and b, against the f32 sum rounded once. */
static void check_half_sum(mesh_dtype dtype, mesh_shape shape_a, mesh_shape shape_b, mesh_shape shape)
{
    struct mesh_tensor *a = half_tensor(shape_a, dtype, 1), *b = half_tensor(shape_b, dtype, 2);
    struct mesh_tensor *out = test_tensor_empty(shape, dtype);
    struct mesh_tensor *wide_a = test_tensor_empty(shape_a, MESH_F32), *wide_b = test_tensor_empty(shape_b, MESH_F32);
    struct mesh_tensor *sum = test_tensor_empty(shape, MESH_F32), *want = test_tensor_empty(shape, dtype);
    run_kernel(k_cast, &(struct kernel_call){ .in = { a }, .out = { wide_a } });
    run_kernel(k_cast, &(struct kernel_call){ .in = { b }, .out = { wide_b } });
    run_kernel(k_add, &(struct kernel_call){ .in = { wide_a, wide_b }, .out = { sum } });
    run_kernel(k_cast, &(struct kernel_call){ .in = { sum }, .out = { want } });
    ck_assert_int_eq(kernel_run(k_add, &(struct kernel_call){ .in = { a, b }, .out = { out } }), 0);
    ck_assert(memcmp(out->data, want->data, tensor_bytes(out)) == 0);
    tensors_unref(7, a, b, out, wide_a, wide_b, sum, want);
}

START_TEST(large_tensors_of_16_bits_go_by_parts_and_are_rounded_once)
{
    const mesh_dtype halves[] = { MESH_F16, MESH_BF16 };
    for (int i = 0; i < 2; i++) {
        check_half_sum(halves[i], MESH_SHAPE(40001), MESH_SHAPE(40001), MESH_SHAPE(40001));
        check_half_sum(halves[i], MESH_SHAPE(3, 20000), MESH_SHAPE(3, 20000), MESH_SHAPE(3, 20000));
        check_half_sum(halves[i], MESH_SHAPE(300, 201), MESH_SHAPE(201), MESH_SHAPE(300, 201));
        check_half_sum(halves[i], MESH_SHAPE(300, 1), MESH_SHAPE(1, 201), MESH_SHAPE(300, 201));
        check_half_sum(halves[i], MESH_SHAPE(2, 1, 9000), MESH_SHAPE(3, 1), MESH_SHAPE(2, 3, 9000));
        check_half_sum(halves[i], (mesh_shape){ .ndim = 0 }, MESH_SHAPE(5, 7000), MESH_SHAPE(5, 7000));
    }
}
END_TEST

START_TEST(copy_moves_the_bytes_of_any_dtype)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3, 4), MESH_BOOL, 6),
                       *out = test_tensor_empty(MESH_SHAPE(2, 6), MESH_BOOL);
    run_kernel(k_copy, &(struct kernel_call){ .in = { x }, .out = { out } });
    for (int64_t i = 0; i < x->n; i++) {
        assert_element(out, i, get(x, i), 0);
    }
    tensors_unref(2, x, out);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pointwise");
    TCase *t = tcase_create("pointwise");
    tcase_add_test(t, add_sub_mul_broadcast_for_every_dtype);
    tcase_add_test(t, integers_wrap_around);
    tcase_add_test(t, division_is_for_floats_and_follows_ieee);
    tcase_add_test(t, scalars_apply_to_every_dtype_that_can_hold_them);
    tcase_add_test(t, integer_times_a_fraction_or_too_large_a_number_is_refused);
    tcase_add_test(t, activations_and_their_slopes_match_the_formulas);
    tcase_add_test(t, activations_keep_nan_and_saturate);
    tcase_add_test(t, large_tensors_of_16_bits_go_by_parts_and_are_rounded_once);
    tcase_add_test(t, copy_moves_the_bytes_of_any_dtype);
    suite_add_tcase(s, t);
    return s;
}
