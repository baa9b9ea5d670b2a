/* tests/truth/test_kernels_reduce.c - kernels of reductions, scans and sorts, over many random shapes, against naive
 * loops.
 *
 * A seed names a case: shape, dims, dtype follow from it alone.  One case in four has a NaN somewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/util.h"
#include "harness/tensors.h"

#define N_SEEDS  200
#define MAX_LINE 4096

struct setting {
    struct mesh_tensor *x;
    uint32_t dims;
    mesh_shape kept; /* x's shape with extent 1 where dims go */
    struct op_attr attr;
};

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t n)
{
    return rng_below((struct rng_key){ .seed = seed, .call = 79 }, i, n);
}

static bool is_float(mesh_dtype t)
{
    return dtype_kind(t) == DTYPE_FLOAT;
}

static struct setting setting_of(uint64_t seed, int least_ndim, bool floats_only)
{
    static const int64_t extents[] = { 0, 1, 1, 2, 3, 3, 5, 7, 8 };
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I32, MESH_I64, MESH_U8, MESH_I8 };
    struct setting g = { .kept = { .ndim = least_ndim + (int)draw(seed, 0, (uint64_t)(5 - least_ndim)) } };
    mesh_shape s = g.kept;
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d] = extents[draw(seed, 1 + (uint64_t)d, ARRAY_SIZE(extents))];
    }
    g.x = test_tensor(s, dtypes[draw(seed, 99, floats_only ? 2 : 6)], seed);
    if (is_float(g.x->dtype) && g.x->n > 0 && seed % 4 == 0) {
        set(g.x, (int64_t)draw(seed, 98, (uint64_t)g.x->n), NAN);
    }
    g.dims = (uint32_t)draw(seed, 97, UINT64_C(1) << s.ndim);
    for (int d = 0; d < s.ndim; d++) {
        g.kept.dim[d] = (g.dims >> d & 1U) != 0 ? 1 : s.dim[d];
    }
    g.attr = (struct op_attr){ .dims = g.dims, .keepdim = 1, .shape = s };
    return g;
}

/* The elements that go into result `out`, in order; returns how many. */
static int64_t elements(const struct setting *g, int64_t out, double *ret_x)
{
    int64_t n = 0;
    for (int64_t i = 0; i < g->x->n; i++) {
        if (index_broadcast(g->kept, g->x->shape, i) == out) {
            ck_assert_int_lt(n, MAX_LINE);
            ret_x[n++] = get(g->x, i);
        }
    }
    return n;
}

typedef double (*naive_fn)(const double *x, int64_t n, const struct setting *g);

static double extreme(const double *x, int64_t n, double sign)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        best = isnan(best) || isnan(x[i]) ? NAN : fmax(best, sign * x[i]);
    }
    return sign * best;
}

static double amax(const double *x, int64_t n, const struct setting *g)
{
    (void)g;
    return extreme(x, n, 1);
}

static double amin(const double *x, int64_t n, const struct setting *g)
{
    (void)g;
    return extreme(x, n, -1);
}

static double prod(const double *x, int64_t n, const struct setting *g)
{
    double p = 1;
    (void)g;
    for (int64_t i = 0; i < n; i++) {
        p *= x[i];
    }
    return p;
}

static double all(const double *x, int64_t n, const struct setting *g)
{
    (void)g;
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] != 0)) {
            return 0;
        }
    }
    return 1;
}

static double any(const double *x, int64_t n, const struct setting *g)
{
    (void)g;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != 0) {
            return 1;
        }
    }
    return 0;
}

static double power_sum(const double *x, int64_t n, const struct setting *g)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] != 0 ? pow(fabs(x[i]), g->attr.value[0]) : 0;
    }
    return sum;
}

static double var(const double *x, int64_t n, const struct setting *g)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += x[i] * g->attr.value[0];
    }
    for (int64_t i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }
    return sum * g->attr.value[1];
}

static double logsumexp(const double *x, int64_t n, const struct setting *g)
{
    double sum = 0;
    (void)g;
    for (int64_t i = 0; i < n; i++) {
        sum += exp(x[i]);
    }
    return log(sum);
}

static double argmax(const double *x, int64_t n, const struct setting *g)
{
    int64_t best = 0;
    (void)g;
    for (int64_t i = 1; i < n; i++) {
        best = x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])) ? i : best;
    }
    return (double)best;
}

static double argmin(const double *x, int64_t n, const struct setting *g)
{
    int64_t best = 0;
    (void)g;
    for (int64_t i = 1; i < n; i++) {
        best = x[i] < x[best] || (isnan(x[i]) && !isnan(x[best])) ? i : best;
    }
    return (double)best;
}

static const struct reduction {
    kernel_fn kernel;
    naive_fn naive;
    mesh_dtype out; /* 0: like x; MESH_I64 for products: of integers alone */
    bool floats_only, needs_some;
} reductions[] = {
    { k_amax, amax, .needs_some = true },
    { k_amin, amin, .needs_some = true },
    { k_prod, prod, MESH_I64 },
    { k_all, all, MESH_BOOL },
    { k_any, any, MESH_BOOL },
    { k_power_sum, power_sum, .floats_only = true },
    { k_var, var, .floats_only = true },
    { k_logsumexp, logsumexp, .floats_only = true },
    { k_argmax, argmax, MESH_I64, .needs_some = true },
    { k_argmin, argmin, MESH_I64, .needs_some = true },
};

static mesh_dtype out_dtype(const struct reduction *r, mesh_dtype x)
{
    return r->out == 0 || (r->kernel == k_prod && is_float(x)) ? x : r->out;
}

static void check_reduction(const struct reduction *r, uint64_t seed)
{
    static double line[MAX_LINE];
    struct setting g = setting_of(seed, 0, r->floats_only);
    struct mesh_tensor *out = test_tensor_empty(g.kept, out_dtype(r, g.x->dtype));
    double n = out->n > 0 ? (double)(g.x->n / out->n) : 0;
    g.attr.value[0] = r->kernel == k_var ? 1 / n : (double)draw(seed, 50, 4);
    g.attr.value[1] = 1 / n;
    if (!(r->needs_some && n == 0)) {
        run_kernel(r->kernel, &(struct kernel_call){ .in = { g.x }, .out = { out }, .attr = &g.attr });
        for (int64_t i = 0; i < out->n; i++) {
            double want = r->naive(line, elements(&g, i, line), &g);
            if (fabs(want) < 1e9 || !isfinite(want)) { /* else integers wrap */
                assert_element(out, i, want, out->dtype == MESH_F32 ? 1e-6 : 1e-12);
            }
        }
    }
    tensors_unref(2, g.x, out);
}

START_TEST(reductions_over_any_dims)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        check_reduction(&reductions[_i], seed);
    }
}
END_TEST

/* Element j of the line that element `at` of x lies on, along dim d. */
static int64_t along(const struct mesh_tensor *x, int d, int64_t at, int64_t j)
{
    int64_t index[MESH_MAX_NDIM];
    index_of(x->shape, at, index);
    index[d] = j;
    return index_at(x->shape, index);
}

static bool comes_first(double a, double b, bool descending)
{
    if (isnan(a) || isnan(b)) { /* NaN is the largest, also beside an infinity */
        return descending ? isnan(a) && !isnan(b) : isnan(b) && !isnan(a);
    }
    return descending ? a > b : a < b;
}

/* How many elements of the line come before element i of it: where a stable sort puts it. */
static int64_t place_of(const struct mesh_tensor *x, int d, int64_t at, bool descending)
{
    int64_t place = 0, index[MESH_MAX_NDIM];
    index_of(x->shape, at, index);
    for (int64_t j = 0; j < x->shape.dim[d]; j++) {
        double other = get(x, along(x, d, at, j)), mine = get(x, at);
        bool is_tie = !comes_first(other, mine, descending) && !comes_first(mine, other, descending);
        place += comes_first(other, mine, descending) || (is_tie && j < index[d]);
    }
    return place;
}

static void check_order(const struct mesh_tensor *x, int d, bool descending, const struct mesh_tensor *values,
                        const struct mesh_tensor *found)
{
    for (int64_t i = 0; i < x->n; i++) {
        int64_t index[MESH_MAX_NDIM], place = place_of(x, d, i, descending);
        index_of(x->shape, i, index);
        int64_t j = index[d];
        index[d] = place;
        if (place < values->shape.dim[d]) {
            assert_element(values, index_at(values->shape, index), get(x, i), 0);
            assert_element(found, index_at(found->shape, index), (double)j, 0);
        }
    }
}

START_TEST(sorts_keep_equal_elements_in_order)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct setting g = setting_of(seed, 1, false);
        int d = (int)draw(seed, 20, (uint64_t)g.x->shape.ndim);
        mesh_shape some = g.x->shape;
        g.attr.dim[0] = d;
        g.attr.mode = (int32_t)draw(seed, 21, 2);
        struct mesh_tensor *v = test_tensor_empty(g.x->shape, g.x->dtype), *f = test_tensor_empty(g.x->shape, MESH_I64);
        run_kernel(k_sort, &(struct kernel_call){ .in = { g.x }, .out = { v, f }, .attr = &g.attr });
        check_order(g.x, d, g.attr.mode != 0, v, f);
        some.dim[d] = (int64_t)draw(seed, 22, (uint64_t)some.dim[d] + 1);
        g.attr.index[0] = some.dim[d];
        struct mesh_tensor *best = test_tensor_empty(some, g.x->dtype), *where = test_tensor_empty(some, MESH_I64);
        run_kernel(k_topk, &(struct kernel_call){ .in = { g.x }, .out = { best, where }, .attr = &g.attr });
        check_order(g.x, d, true, best, where);
        tensors_unref(5, g.x, v, f, best, where);
    }
}
END_TEST

/* Lines long enough that topk selects: many equal elements, a NaN and an infinity. */
START_TEST(a_selection_is_the_front_of_a_sort)
{
    static const int64_t counts[] = { 0, 1, 2, 7, 24, 25, 60, 100 };
    for (uint64_t seed = 0; seed < 2 * ARRAY_SIZE(counts); seed++) {
        int d = (int)(seed % 2);
        mesh_shape s = d == 0 ? MESH_SHAPE(100, 3) : MESH_SHAPE(3, 100), some = s;
        struct mesh_tensor *x = test_tensor_empty(s, seed % 3 == 0 ? MESH_F32 : MESH_F64);
        some.dim[d] = counts[seed / 2];
        for (int64_t i = 0; i < x->n; i++) {
            set(x, i, (double)draw(seed, (uint64_t)i, seed < 8 ? 3 : 1000));
        }
        set(x, (int64_t)draw(seed, 1000, 300), NAN);
        set(x, (int64_t)draw(seed, 1001, 300), -INFINITY);
        struct mesh_tensor *best = test_tensor_empty(some, x->dtype), *where = test_tensor_empty(some, MESH_I64);
        struct op_attr attr = { .dim = { d }, .index = { some.dim[d] } };
        run_kernel(k_topk, &(struct kernel_call){ .in = { x }, .out = { best, where }, .attr = &attr });
        check_order(x, d, true, best, where);
        tensors_unref(3, x, best, where);
    }
}
END_TEST

/* Lines long enough for the radix sort, of every dtype: many equal elements, both zeros, NaN of both signs,
 * infinities. */
START_TEST(long_lines_sort_like_short_ones)
{
    static const mesh_dtype types[] = { MESH_F32, MESH_F64, MESH_I8, MESH_U8, MESH_I32, MESH_I64 };
    static const double odd[] = { NAN, -NAN, -0.0, 0, INFINITY, -INFINITY, -1e-40, 3e38, -3e38 };
    for (uint64_t seed = 0; seed < 4 * ARRAY_SIZE(types); seed++) {
        mesh_dtype t = types[seed / 4];
        int d = (int)(seed % 2);
        struct mesh_tensor *x = test_tensor(d == 0 ? MESH_SHAPE(300, 2) : MESH_SHAPE(2, 300), t, seed);
        for (size_t i = 0; is_float(t) && i < 4 * ARRAY_SIZE(odd); i++) {
            set(x, (int64_t)draw(seed, i, 600), odd[i % ARRAY_SIZE(odd)]);
        }
        for (int64_t i = 0; t == MESH_I32 && i < x->n; i += 3) {
            set(x, i, get(x, i) * 500000000);
        }
        struct mesh_tensor *v = test_tensor_empty(x->shape, t), *f = test_tensor_empty(x->shape, MESH_I64);
        struct op_attr attr = { .dim = { d }, .mode = (int32_t)(seed / 2 % 2) };
        run_kernel(k_sort, &(struct kernel_call){ .in = { x }, .out = { v, f }, .attr = &attr });
        check_order(x, d, attr.mode != 0, v, f);
        tensors_unref(3, x, v, f);
    }
}
END_TEST

START_TEST(running_sums_both_ways)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct setting g = setting_of(seed, 1, false);
        int d = (int)draw(seed, 20, (uint64_t)g.x->shape.ndim);
        struct mesh_tensor *out = test_tensor_empty(g.x->shape, is_float(g.x->dtype) ? g.x->dtype : MESH_I64);
        g.attr.dim[0] = d;
        g.attr.mode = (int32_t)draw(seed, 21, 2);
        run_kernel(k_cumsum, &(struct kernel_call){ .in = { g.x }, .out = { out }, .attr = &g.attr });
        for (int64_t i = 0; i < out->n; i++) {
            int64_t index[MESH_MAX_NDIM], n = g.x->shape.dim[d];
            double sum = 0;
            index_of(g.x->shape, i, index);
            for (int64_t j = 0; j < n; j++) {
                bool counts = g.attr.mode ? j >= index[d] : j <= index[d];
                sum += counts ? get(g.x, along(g.x, d, i, j)) : 0;
            }
            assert_element(out, i, sum, 0); /* quarters: exact */
        }
        tensors_unref(2, g.x, out);
    }
}
END_TEST

START_TEST(no_memory_is_a_status)
{
    static const kernel_fn kernels[] = { k_power_sum, k_prod, k_var, k_logsumexp, k_argmax, k_sort, k_nonzero_prod };
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(4), MESH_F64, 1), *out = test_tensor_empty(MESH_SHAPE(4), MESH_F64);
    struct mesh_tensor *found = test_tensor_empty(MESH_SHAPE(4), MESH_I64);
    struct op_attr attr = { .dims = 0 };
    bool is_index = kernels[_i] == k_argmax;
    struct kernel_call c = { .in = { x }, .out = { is_index ? found : out, found }, .attr = &attr };
    fault_arm(FAULT_ALLOC, 1, 0);
    int r = kernels[_i](&c);
    fault_disarm(FAULT_ALLOC);
    ck_assert_int_eq(r, MESH_ENOMEM);
    tensors_unref(3, x, out, found);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("kernels of reductions");
    TCase *t = tcase_create("against naive loops");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, reductions_over_any_dims, 0, (int)ARRAY_SIZE(reductions));
    tcase_add_test(t, sorts_keep_equal_elements_in_order);
    tcase_add_test(t, a_selection_is_the_front_of_a_sort);
    tcase_add_test(t, long_lines_sort_like_short_ones);
    tcase_add_test(t, running_sums_both_ways);
    tcase_add_loop_test(t, no_memory_is_a_status, 0, 7);
    suite_add_tcase(s, t);
    return s;
}
