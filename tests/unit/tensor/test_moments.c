/* tests/unit/tensor/test_moments.c - variances, and rows scaled by them, of numbers that are hard to take the variance
 * of; against two passes in long double.
 *
 * Each line is tried as a tensor of its own, as the rows and as the columns of a matrix: the centers about which
 * squares are summed change at other places in each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "harness/tensors.h"

#define MOST 5000

typedef double (*number_fn)(int64_t i, int64_t n);

static double noise(int64_t i)
{
    return (double)(i * 7919 % 1013) / 1024 - 0.5;
}

static double far_away(int64_t i, int64_t n)
{
    (void)n;
    return 1e8 + noise(i);
}

static double rising(int64_t i, int64_t n)
{
    (void)n;
    return (double)i * 1000 + noise(i);
}

static double first_is_huge(int64_t i, int64_t n)
{
    (void)n;
    return i == 0 ? 1e9 : noise(i);
}

static double last_is_huge(int64_t i, int64_t n)
{
    return i == n - 1 ? -1e9 : noise(i);
}

static double jumps_half_way(int64_t i, int64_t n)
{
    return i < n / 2 ? noise(i) : 1e6 + noise(i);
}

static double always_the_same(int64_t i, int64_t n)
{
    (void)i, (void)n;
    return 12345.6789;
}

static const number_fn numbers[] = {
    far_away, rising, first_is_huge, last_is_huge, jumps_half_way, always_the_same,
};
/* Around where sums are joined and centers change. */
static const int64_t lengths[] = { 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 511, 512, 513, 4096, 4097, MOST };

static double variance(const double *x, int64_t n)
{
    long double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += (long double)x[i] / (long double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += ((long double)x[i] - mean) * ((long double)x[i] - mean);
    }
    return (double)(sum / (long double)n);
}

/* The line as column (dim 0) or row (dim 1) number 2 of 5, or alone. */
enum { COLUMN, ROW, ALONE, N_PLACES };

static struct mesh_tensor *placed(int place, mesh_dtype t, const double *line, int64_t n)
{
    mesh_shape s = place == COLUMN ? MESH_SHAPE(n, 5) : place == ROW ? MESH_SHAPE(5, n) : MESH_SHAPE(n);
    struct mesh_tensor *x = test_tensor_empty(s, t);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t of_line = place == COLUMN ? i / 5 : i % n, other = place == COLUMN ? i % 5 : i / n;
        set(x, i, line[of_line] + (place != ALONE && other != 2 ? (double)other : 0));
    }
    return x;
}

static struct mesh_tensor *variance_of(int place, const struct mesh_tensor *x, int64_t n)
{
    struct mesh_tensor *out = test_tensor_empty(place == ALONE ? MESH_SCALAR_SHAPE : MESH_SHAPE(5), x->dtype);
    struct op_attr attr = { .dims = place == ROW ? 2 : 1, .value = { 1 / (double)n, 1 / (double)n } };
    run_kernel(k_var, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    return out;
}

static void check_line(number_fn number, int64_t n, int place, mesh_dtype t)
{
    static double line[MOST];
    for (int64_t i = 0; i < n; i++) {
        line[i] = number(i, n);
    }
    struct mesh_tensor *x = placed(place, t, line, n);
    for (int64_t i = 0; i < n; i++) { /* as the dtype has it */
        line[i] = get(x, place == COLUMN ? i * 5 + 2 : place == ROW ? 2 * n + i : i);
    }
    struct mesh_tensor *out = variance_of(place, x, n);
    double got = get(out, place == ALONE ? 0 : 2), want = variance(line, n);
    double mean_square = line[0] * line[0] * 0x1p-100; /* what remains of numbers that are all the same */
    ck_assert_msg(fabs(got - want) <= (t == MESH_F32 ? 1e-7 : 1e-13) * want + mean_square,
                  "%lld numbers, place %d: %.17g instead of %.17g", (long long)n, place, got, want);
    tensors_unref(2, x, out);
}

START_TEST(variance_keeps_its_digits)
{
    for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
        for (int place = 0; place < N_PLACES; place++) {
            check_line(numbers[_i], lengths[k], place, MESH_F64);
            check_line(numbers[_i], lengths[k], place, MESH_F32);
        }
    }
}
END_TEST

/* Whatever stands before and after: an infinite number has no variance, and squares that overflow are infinite. */
START_TEST(variance_of_infinite_and_huge_numbers)
{
    static const double odd[] = { INFINITY, -INFINITY, NAN, 1e200 };
    static const int64_t ns[] = { 2, 9, 65, 600 };
    for (size_t k = 0; k < ARRAY_SIZE(odd) * ARRAY_SIZE(ns); k++) {
        int64_t n = ns[k / ARRAY_SIZE(odd)];
        for (int64_t at = 0; at < n; at += n < 20 ? 1 : 37) {
            for (int place = 0; place < N_PLACES; place++) {
                double *line = calloc((size_t)n, sizeof *line), v = odd[k % ARRAY_SIZE(odd)];
                line[at] = v;
                struct mesh_tensor *x = placed(place, MESH_F64, line, n), *out = variance_of(place, x, n);
                assert_element(out, place == ALONE ? 0 : 2, isfinite(v) ? INFINITY : NAN, 0);
                tensors_unref(2, x, out);
                free(line);
            }
        }
    }
}
END_TEST

/* Rows whose numbers are far from 0, as far as f32 tells them apart; large enough in all to be written past the
 * caches. */
enum { N_ROWS = 3 };

static long double deviation(const struct mesh_tensor *x, int64_t row, int64_t n, long double *ret_mean)
{
    long double mean = 0, square = 0;
    for (int64_t j = 0; j < n; j++) {
        mean += (long double)get(x, row * n + j) / (long double)n;
    }
    for (int64_t j = 0; j < n; j++) {
        long double v = (long double)get(x, row * n + j) - mean;
        square += v * v;
    }
    *ret_mean = mean;
    return sqrtl(square / (long double)n + 1e-5L);
}

static void check_normalized(const struct mesh_tensor *x, const struct mesh_tensor *w, const struct mesh_tensor *y,
                             int64_t n)
{
    for (int64_t i = 0; i < N_ROWS; i++) {
        long double mean, size = deviation(x, i, n, &mean);
        for (int64_t j = 0; j<n; j += n> MOST ? 997 : 1) {
            long double h = ((long double)get(x, i * n + j) - mean) / size;
            assert_element(y, i * n + j, (double)(h * get(w, j)), x->dtype == MESH_F32 ? 4e-7 : 4e-12);
        }
    }
}

static void check_slopes(const struct mesh_tensor *x, const struct mesh_tensor *w, const struct mesh_tensor *dx,
                         int64_t n)
{
    for (int64_t i = 0; i < N_ROWS; i++) { /* dy is w too */
        long double mean, size = deviation(x, i, n, &mean), g_mean = 0, gh_mean = 0;
        for (int64_t j = 0; j < n; j++) {
            long double g = (long double)get(w, j) * get(w, j);
            g_mean += g / (long double)n;
            gh_mean += g * ((long double)get(x, i * n + j) - mean) / size / (long double)n;
        }
        for (int64_t j = 0; j<n; j += n> MOST ? 997 : 1) {
            long double g = (long double)get(w, j) * get(w, j), h = ((long double)get(x, i * n + j) - mean) / size;
            double tolerance = (double)(1 / size) * (x->dtype == MESH_F32 ? 4e-6 : 4e-12);
            assert_element(dx, i * n + j, (double)((g - g_mean - h * gh_mean) / size), tolerance);
        }
    }
}

static void check_rows(int64_t n, mesh_dtype t)
{
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(N_ROWS, n), t), *w = test_tensor_rough(MESH_SHAPE(n), t, 5);
    struct mesh_tensor *y = test_tensor_empty(x->shape, t), *dy = test_tensor_empty(x->shape, t);
    struct op_attr attr = { .value = { 1e-5 }, .index = { 1 } };
    for (int64_t i = 0; i < x->n; i++) {
        set(x, i, (double)(i / n * 4000) + noise(i));
        set(dy, i, get(w, i % n));
    }
    run_kernel(k_layer_norm, &(struct kernel_call){ .in = { x, w }, .out = { y }, .attr = &attr });
    check_normalized(x, w, y, n);
    run_kernel(k_normalize_grad_input, &(struct kernel_call){ .in = { dy, x, w }, .out = { y }, .attr = &attr });
    check_slopes(x, w, y, n);
    tensors_unref(4, x, w, y, dy);
}

START_TEST(rows_far_from_0_are_normalized)
{
    static const int64_t large = 350208; /* 3 rows of f32 have 4 MiB */
    for (size_t k = 3; k < ARRAY_SIZE(lengths); k++) {
        check_rows(lengths[k], MESH_F32);
        check_rows(lengths[k], MESH_F64);
    }
    check_rows(large, MESH_F32);
    check_rows(large + 8, MESH_F32); /* whose second row begins at no line of the cache */
}
END_TEST

/* Sums over rows: four of them together, the fifth by itself. */
static void check_weight_slopes(int64_t n, mesh_dtype t)
{
    const int64_t n_rows = 5;
    struct mesh_tensor *x = test_tensor_empty(MESH_SHAPE(n_rows, n), t), *dy = test_tensor_rough(x->shape, t, 6);
    struct mesh_tensor *dw = test_tensor_empty(MESH_SHAPE(n), t);
    struct op_attr attr = { .value = { 1e-5 }, .index = { 1 } };
    long double mean[5], size[5];
    for (int64_t i = 0; i < x->n; i++) {
        set(x, i, (double)(i / n * 4000) + noise(i));
    }
    for (int64_t i = 0; i < n_rows; i++) {
        size[i] = deviation(x, i, n, &mean[i]);
    }
    run_kernel(k_normalize_grad_weight, &(struct kernel_call){ .in = { dy, x }, .out = { dw }, .attr = &attr });
    for (int64_t j = 0; j < n; j++) {
        long double want = 0;
        for (int64_t i = 0; i < n_rows; i++) {
            want += (long double)get(dy, i * n + j) * ((long double)get(x, i * n + j) - mean[i]) / size[i];
        }
        assert_element(dw, j, (double)want, t == MESH_F32 ? 2e-6 : 2e-11);
    }
    tensors_unref(3, x, dy, dw);
}

START_TEST(slopes_of_weights_of_rows_far_from_0)
{
    for (size_t k = 3; k < ARRAY_SIZE(lengths); k++) {
        check_weight_slopes(lengths[k], MESH_F32);
        check_weight_slopes(lengths[k], MESH_F64);
    }
}
END_TEST

/* Without eps the slopes of 2^-k x are 2^k times those of x, also where the square of that is beyond f32. */
START_TEST(slopes_of_rows_near_0_are_those_of_larger_ones)
{
    enum { N = 96, K = 66 };
    struct mesh_tensor *dy = test_tensor_rough(MESH_SHAPE(N), MESH_F32, 7);
    struct mesh_tensor *x[2], *dx[2];
    for (int k = 0; k < 2; k++) {
        x[k] = test_tensor_empty(dy->shape, MESH_F32);
        dx[k] = test_tensor_empty(dy->shape, MESH_F32);
        for (int64_t i = 0; i < N; i++) {
            set(x[k], i, ldexp(noise(i), -k * K));
        }
        struct op_attr attr = { .index = { 1 } };
        run_kernel(k_normalize_grad_input,
                   &(struct kernel_call){ .in = { dy, x[k] }, .out = { dx[k] }, .attr = &attr });
    }
    for (int64_t i = 0; i < N; i++) {
        assert_element(dx[1], i, ldexp(get(dx[0], i), K), ldexp(1e-6, K));
    }
    tensors_unref(5, dy, x[0], x[1], dx[0], dx[1]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("moments");
    TCase *t = tcase_create("moments");
    tcase_add_loop_test(t, variance_keeps_its_digits, 0, (int)ARRAY_SIZE(numbers));
    tcase_add_test(t, variance_of_infinite_and_huge_numbers);
    tcase_add_test(t, rows_far_from_0_are_normalized);
    tcase_add_test(t, slopes_of_weights_of_rows_far_from_0);
    tcase_add_test(t, slopes_of_rows_near_0_are_those_of_larger_ones);
    suite_add_tcase(s, t);
    return s;
}
