/* tests/unit/tensor/test_exponentials.c - softmax, its logarithm, logsumexp and cross entropy of lines that are hard on
 * sums of exponentials, against long double.
 *
 * Lines of lengths around where blocks end, as rows and as columns: the largest element comes first, last, or ever
 * larger ones come; there are infinities and NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>

#include "base/util.h"
#include "harness/tensors.h"

#define MOST 5000

typedef double (*number_fn)(int64_t i, int64_t n);

static double noise(int64_t i)
{
    return (double)(i * 7919 % 1013) / 256 - 2;
}

static double around_0(int64_t i, int64_t n)
{
    (void)n;
    return noise(i);
}

static double ever_larger(int64_t i, int64_t n) /* what was summed is scaled again and again */
{
    (void)n;
    return (double)(i / 50) * 45 + noise(i);
}

static double ever_smaller(int64_t i, int64_t n)
{
    (void)n;
    return (double)i * -0.75 + noise(i);
}

static double last_is_large(int64_t i, int64_t n)
{
    return i == n - 1 ? 30000 : -30000 + noise(i);
}

static double far_below(int64_t i, int64_t n)
{
    return i == n / 2 ? -50 : -90 + noise(i) / 64;
}

static double masked_at_first(int64_t i, int64_t n)
{
    return i < n - 1 - n / 8 ? -INFINITY : noise(i);
}

static double masked(int64_t i, int64_t n)
{
    (void)i, (void)n;
    return -INFINITY;
}

static double one_is_infinite(int64_t i, int64_t n)
{
    return i == n / 2 ? INFINITY : noise(i);
}

static double one_is_nan(int64_t i, int64_t n)
{
    return i == n / 3 ? NAN : noise(i);
}

static double infinite_then_nan(int64_t i, int64_t n)
{
    return i == 0 ? INFINITY : i == n - 1 ? NAN : noise(i);
}

static const number_fn numbers[] = {
    around_0,        ever_larger, ever_smaller,    last_is_large, far_below,
    masked_at_first, masked,      one_is_infinite, one_is_nan,    infinite_then_nan,
};
static const int64_t lengths[] = { 1, 2, 7, 8, 9, 63, 64, 65, 100, 511, 512, 513, 1030, 4096, 4097, MOST };

/* log sum exp(x); an infinite or NaN line is what its largest element is. */
static long double log_sum_exp(const double *x, int64_t n)
{
    long double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        most = isnan(most) || x[i] <= (double)most ? most : (long double)x[i];
    }
    for (int64_t i = 0; !isinf(most) && i < n; i++) {
        sum += expl((long double)x[i] - most);
    }
    return isinf(most) ? most : most + logl(sum);
}

enum { OTHERS = 3 }; /* lines in all; the last has the numbers, the others 1 */

static struct mesh_tensor *placed(bool is_row, mesh_dtype t, const double *line, int64_t n)
{
    struct mesh_tensor *x = test_tensor_empty(is_row ? MESH_SHAPE(OTHERS, n) : MESH_SHAPE(n, OTHERS), t);
    for (int64_t i = 0; i < x->n; i++) {
        bool is_line = is_row ? i / n == OTHERS - 1 : i % OTHERS == OTHERS - 1;
        set(x, i, is_line ? line[is_row ? i % n : i / OTHERS] : 1);
    }
    return x;
}

static int64_t place(bool is_row, int64_t i, int64_t n)
{
    return is_row ? (OTHERS - 1) * n + i : i * OTHERS + OTHERS - 1;
}

static void check_softmax(const struct mesh_tensor *x, bool is_row, const double *line, int64_t n)
{
    struct mesh_tensor *y = test_tensor_empty(x->shape, x->dtype), *z = test_tensor_empty(x->shape, x->dtype);
    struct op_attr attr = { .dim = { is_row ? 1 : 0 } };
    long double lse = log_sum_exp(line, n);
    const double tolerance = x->dtype == MESH_F32 ? 4e-7 : 3e-14;
    run_kernel(k_softmax, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    run_kernel(k_log_softmax, &(struct kernel_call){ .in = { x }, .out = { z }, .attr = &attr });
    for (int64_t i = 0; i < n; i++) {
        long double want = isfinite(lse) ? (long double)line[i] - lse : (long double)NAN;
        assert_element(y, place(is_row, i, n), (double)expl(want), tolerance);
        assert_element(z, place(is_row, i, n), (double)want, tolerance);
    }
    tensors_unref(2, y, z);
}

static void check_log_sum_exp(const struct mesh_tensor *x, bool is_row, const double *line, int64_t n)
{
    struct mesh_tensor *y = test_tensor_empty(MESH_SHAPE(OTHERS), x->dtype);
    struct op_attr attr = { .dims = is_row ? 2 : 1 };
    run_kernel(k_logsumexp, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    assert_element(y, OTHERS - 1, (double)log_sum_exp(line, n), x->dtype == MESH_F32 ? 3e-7 : 1e-14);
    tensors_unref(1, y);
}

/* Of the rows; the target of each is its last class, then the first. */
static void check_cross_entropy(const struct mesh_tensor *x, const double *line, int64_t n, double smoothing)
{
    struct mesh_tensor *target = test_tensor_empty(MESH_SHAPE(OTHERS), MESH_I64);
    struct mesh_tensor *loss = test_tensor_empty(MESH_SHAPE(OTHERS), x->dtype);
    struct mesh_tensor *dx = test_tensor_empty(x->shape, x->dtype),
                       *scale = test_tensor_empty(MESH_SCALAR_SHAPE, x->dtype);
    struct op_attr attr = { .value = { smoothing, (double)n }, .index = { -100 } };
    long double lse = log_sum_exp(line, n), sum = 0;
    const double tolerance = x->dtype == MESH_F32 ? 1e-6 : 1e-13;
    for (int64_t i = 0; i < OTHERS; i++) {
        set(target, i, (double)(n - 1));
    }
    set(scale, 0, 0.5);
    run_kernel(k_cross_entropy_rows, &(struct kernel_call){ .in = { x, target }, .out = { loss }, .attr = &attr });
    run_kernel(k_cross_entropy_grad, &(struct kernel_call){ .in = { scale, x, target }, .out = { dx }, .attr = &attr });
    for (int64_t i = 0; i < n; i++) {
        long double p = expl((long double)line[i] - lse), share = (long double)smoothing / (long double)n;
        sum += share > 0 ? (lse - (long double)line[i]) * share : 0;
        assert_element(dx, place(true, i, n),
                       (double)(0.5L * (p - share - (i == n - 1 ? 1 - (long double)smoothing : 0))), tolerance);
    }
    assert_element(loss, OTHERS - 1, (double)((1 - (long double)smoothing) * (lse - (long double)line[n - 1]) + sum),
                   tolerance);
    tensors_unref(4, target, loss, dx, scale);
}

START_TEST(exponentials_of_any_line)
{
    static double line[MOST];
    for (size_t k = 0; k < ARRAY_SIZE(lengths) * 4; k++) {
        const int64_t n = lengths[k / 4];
        const bool is_row = k % 2 == 0;
        for (int64_t i = 0; i < n; i++) {
            line[i] = numbers[_i](i, n);
        }
        struct mesh_tensor *x = placed(is_row, k % 4 < 2 ? MESH_F32 : MESH_F64, line, n);
        for (int64_t i = 0; i < n; i++) { /* as the dtype has it */
            line[i] = get(x, place(is_row, i, n));
        }
        check_softmax(x, is_row, line, n);
        check_log_sum_exp(x, is_row, line, n);
        if (is_row && isfinite(log_sum_exp(line, n))) {
            check_cross_entropy(x, line, n, 0);
        }
        tensors_unref(1, x);
    }
}
END_TEST

/* Shares that lie far apart, each right in its own digits: the largest comes when smaller ones have been summed. */
START_TEST(shares_far_apart_keep_their_digits)
{
    static double line[MOST];
    static const double largest[] = { 41, 79, 95, 110 };
    const int64_t n = _i % 2 == 0 ? 1024 : MOST;
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(n), MESH_F32), *y = test_tensor_empty(x->shape, MESH_F32);
    struct op_attr attr = { .dim = { 0 } };
    for (int64_t i = 0; i < n; i++) {
        line[i] = i == 100 ? 40 : i == 512 ? largest[_i / 2] : noise(i);
        set(x, i, line[i]);
    }
    run_kernel(k_softmax, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    for (int64_t i = 0; i < n; i++) {
        double want = (double)expl((long double)line[i] - log_sum_exp(line, n));
        ck_assert_msg(want < 1e-37 || fabs(get(y, i) - want) <= 4e-7 * want, "[%lld] is %g, not %g", (long long)i,
                      get(y, i), want);
    }
    tensors_unref(2, x, y);
}
END_TEST

/* The target is far above the other classes: the loss is small, with digits of its own, and never below 0. */
START_TEST(loss_of_a_sure_row_is_small)
{
    static double line[MOST];
    const int64_t n = MOST, at[] = { 0, 64, 511, 512, 4000, MOST - 1 };
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(1, n), MESH_F32),
                       *target = test_tensor_empty(MESH_SHAPE(1), MESH_I64),
                       *loss = test_tensor_empty(MESH_SHAPE(1), MESH_F32), *dx = test_tensor_empty(x->shape, MESH_F32),
                       *scale = test_tensor_of(MESH_SCALAR_SHAPE, MESH_F32, (double[]){ 1 });
    struct op_attr attr = { .value = { 0, (double)n }, .index = { -100 } };
    for (int64_t i = 0; i < n; i++) {
        set(x, i, i == at[_i] ? 37.77 : noise(i) / 3);
        line[i] = get(x, i);
    }
    set(target, 0, (double)at[_i]);
    run_kernel(k_cross_entropy_rows, &(struct kernel_call){ .in = { x, target }, .out = { loss }, .attr = &attr });
    run_kernel(k_cross_entropy_grad, &(struct kernel_call){ .in = { scale, x, target }, .out = { dx }, .attr = &attr });
    const double want = (double)(log_sum_exp(line, n) - (long double)line[at[_i]]); /* near 1e-13 */
    ck_assert_msg(fabs(get(loss, 0) - want) <= 2e-14, "the loss is %g, not %g", get(loss, 0), want);
    ck_assert_msg(fabs(get(dx, at[_i]) + want) <= 2e-14, "the slope is %g, not %g", get(dx, at[_i]), -want);
    tensors_unref(5, x, target, loss, dx, scale);
}
END_TEST

/* A column that grows slowly moves its center again and again. */
START_TEST(columns_that_grow_keep_their_digits)
{
    static double line[40000];
    const int64_t n = 40000;
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(n, 2), MESH_F32),
                       *y = test_tensor_empty(MESH_SHAPE(2), MESH_F32);
    struct op_attr attr = { .dims = 1 };
    for (int64_t i = 0; i < n; i++) {
        set(x, 2 * i, (double)i * 3e-5 - 1);
        set(x, 2 * i + 1, (double)i * 3e-5 - 1);
        line[i] = get(x, 2 * i);
    }
    run_kernel(k_logsumexp, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    assert_element(y, 0, (double)log_sum_exp(line, n), 1e-7);
    assert_element(y, 1, (double)log_sum_exp(line, n), 1e-7);
    tensors_unref(2, x, y);
}
END_TEST

/* Results of 4 MiB and more are written past the caches. */
START_TEST(large_results_are_as_small_ones)
{
    static double line[MOST];
    const int64_t n = 1024, rows = 1040;
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(rows, n), MESH_F32),
                       *y = test_tensor_empty(x->shape, MESH_F32);
    struct op_attr attr = { .dim = { _i } };
    for (int64_t i = 0; i < x->n; i++) {
        set(x, i, noise(i % n * (i / n + 1)));
    }
    run_kernel(k_softmax, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    const int64_t length = _i == 1 ? n : rows, step = _i == 1 ? 1 : n;
    for (int64_t i = 0; i < x->n / length; i += 103) {
        int64_t begin = _i == 1 ? i * n : i;
        for (int64_t j = 0; j < length; j++) {
            line[j] = get(x, begin + j * step);
        }
        long double lse = log_sum_exp(line, length);
        for (int64_t j = 0; j < length; j++) {
            assert_element(y, begin + j * step, (double)expl((long double)line[j] - lse), 1e-7);
        }
    }
    tensors_unref(2, x, y);
}
END_TEST

/* Both zeros, infinities and NaN go where they go one by one; forwards, backwards, and past the caches. */
static void check_running_sums(mesh_shape s, int dim, bool is_backward, double odd)
{
    struct mesh_tensor *x = test_tensor(s, MESH_F32, 7), *y = test_tensor_empty(s, MESH_F32);
    struct op_attr attr = { .dim = { dim }, .mode = is_backward };
    const int64_t n = s.dim[dim], step = dim == 0 ? s.dim[1] : 1;
    set(x, (n / 2) * step, odd);
    run_kernel(k_cumsum, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    for (int64_t line = 0; line < 2; line++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = (is_backward ? n - 1 - i : i) * step + (dim == 0 ? line : line * n);
            sum += get(x, at);
            assert_element(y, at, sum, 0);
        }
    }
    tensors_unref(2, x, y);
}

START_TEST(running_sums_of_long_lines)
{
    static const double odd[] = { 0.25, -0.0, INFINITY, NAN };
    static const int64_t ns[] = { 1, 7, 8, 9, 511, 512, 513, 520, 1030 };
    for (size_t k = 0; k < ARRAY_SIZE(ns) * 4; k++) {
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
            mesh_shape s = k % 2 == 0 ? MESH_SHAPE(5, ns[k / 4]) : MESH_SHAPE(ns[k / 4], 5);
            check_running_sums(s, k % 2 == 0 ? 1 : 0, k % 4 >= 2, odd[i]);
        }
    }
    for (int k = 0; k < 4; k++) {
        check_running_sums(MESH_SHAPE(1030, 1024), k % 2, k >= 2, INFINITY);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("exponentials");
    TCase *t = tcase_create("exponentials");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, exponentials_of_any_line, 0, (int)ARRAY_SIZE(numbers));
    tcase_add_loop_test(t, shares_far_apart_keep_their_digits, 0, 8);
    tcase_add_loop_test(t, loss_of_a_sure_row_is_small, 0, 6);
    tcase_add_test(t, columns_that_grow_keep_their_digits);
    tcase_add_loop_test(t, large_results_are_as_small_ones, 0, 2);
    tcase_add_test(t, running_sums_of_long_lines);
    suite_add_tcase(s, t);
    return s;
}
