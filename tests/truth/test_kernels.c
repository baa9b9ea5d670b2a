/* tests/truth/test_kernels.c - kernels over many random shapes, larger and odder than the unit tests', against naive loops.
 *
 * A seed names a case: each prints with a failure, and the shapes follow from it alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "harness/tensors.h"

#define N_SEEDS 150

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t n)
{
    return rng_below((struct rng_key){ .seed = seed, .call = 77 }, i, n);
}

static int64_t draw_extent(uint64_t seed, uint64_t i)
{
    static const int64_t extents[] = { 0, 1, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17 };
    return extents[draw(seed, i, sizeof extents / sizeof extents[0])];
}

static mesh_shape draw_shape(uint64_t seed, uint64_t stream, int max_ndim)
{
    mesh_shape s = { .ndim = (int)draw(seed, stream, (uint64_t)max_ndim + 1) };
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d] = draw_extent(seed, stream + 1 + (uint64_t)d);
    }
    return s;
}

/* A shape that broadcasts to `to`: some dims become 1, some leading ones go. */
static mesh_shape draw_narrower(uint64_t seed, uint64_t stream, mesh_shape to)
{
    int gone = (int)draw(seed, stream, (uint64_t)to.ndim + 1);
    mesh_shape s = { .ndim = to.ndim - gone };
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d] = draw(seed, stream + 1 + (uint64_t)d, 3) == 0 ? 1 : to.dim[d + gone];
    }
    return s;
}

static mesh_dtype draw_dtype(uint64_t seed)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I32, MESH_I64, MESH_U8, MESH_I8 };
    return dtypes[draw(seed, 99, 6)];
}

START_TEST(binary_kernels_on_random_broadcasts)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = draw_dtype(seed);
    mesh_shape to = draw_shape(seed, 0, 5), sa = draw_narrower(seed, 20, to), sb = draw_narrower(seed, 40, to),
               out_shape;
    ck_assert_int_eq(shape_broadcast(sa, sb, "test", &out_shape), 0);
    struct mesh_tensor *a = test_tensor(sa, t, seed), *b = test_tensor(sb, t, seed + 1),
                       *out = test_tensor_empty(out_shape, t);
    run_kernel(k_mul, &(struct kernel_call){ .in = { a, b }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        assert_element(out, i, get(a, index_broadcast(sa, out_shape, i)) * get(b, index_broadcast(sb, out_shape, i)),
                       0);
    }
    tensors_unref(3, a, b, out);
}
END_TEST

START_TEST(sums_on_random_shapes_and_masks)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = draw_dtype(seed), t_out = t == MESH_U8 || t == MESH_I8 ? MESH_I64 : t;
    mesh_shape s = draw_shape(seed, 0, 6), so = s;
    uint32_t mask = (uint32_t)draw(seed, 50, UINT64_C(1) << s.ndim);
    for (int d = 0; d < s.ndim; d++) {
        so.dim[d] = mask >> d & 1 ? 1 : s.dim[d];
    }
    struct mesh_tensor *x = test_tensor(s, t, seed), *out = test_tensor_empty(so, t_out),
                       *want = tensor_new_zeroed(so, MESH_F64);
    struct op_attr attr = { .dims = mask };
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = index_broadcast(so, s, i);
        set(want, at, get(want, at) + get(x, i));
    }
    run_kernel(k_sum, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    assert_values(out, 0, want->data);
    tensors_unref(3, x, out, want);
}
END_TEST

START_TEST(expand_and_sum_to_are_adjoint_on_random_shapes)
{
    uint64_t seed = (uint64_t)_i;
    mesh_shape to = draw_shape(seed, 0, 5), from = draw_narrower(seed, 20, to);
    struct mesh_tensor *x = test_tensor(from, MESH_F64, seed), *wide = test_tensor_empty(to, MESH_F64);
    struct mesh_tensor *y = test_tensor(to, MESH_F64, seed + 1), *narrow = test_tensor_empty(from, MESH_F64);
    double left = 0, right = 0;
    run_kernel(k_expand, &(struct kernel_call){ .in = { x }, .out = { wide } });
    run_kernel(k_sum_to, &(struct kernel_call){ .in = { y }, .out = { narrow } });
    for (int64_t i = 0; i < wide->n; i++) { /* <expand x, y> = <x, sum_to y>, exactly: quarters */
        assert_element(wide, i, get(x, index_broadcast(from, to, i)), 0);
        left += get(wide, i) * get(y, i);
    }
    for (int64_t i = 0; i < x->n; i++) {
        right += get(x, i) * get(narrow, i);
    }
    ck_assert_double_eq(left, right);
    tensors_unref(4, x, wide, y, narrow);
}
END_TEST

START_TEST(transposes_on_random_shapes)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = draw_dtype(seed);
    mesh_shape s = draw_shape(seed, 0, 5);
    if (s.ndim == 0) {
        return;
    }
    int d0 = (int)draw(seed, 30, (uint64_t)s.ndim), d1 = (int)draw(seed, 31, (uint64_t)s.ndim);
    mesh_shape so = s;
    so.dim[d0] = s.dim[d1];
    so.dim[d1] = s.dim[d0];
    struct mesh_tensor *x = test_tensor(s, t, seed), *out = test_tensor_empty(so, t);
    struct op_attr attr = { .dim = { d0, d1 } };
    run_kernel(k_transpose, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    for (int64_t i = 0; i < out->n; i++) {
        int64_t index[MESH_MAX_NDIM];
        index_of(so, i, index);
        int64_t swapped = index[d0];
        index[d0] = index[d1];
        index[d1] = swapped;
        assert_element(out, i, get(x, index_at(s, index)), 0);
    }
    tensors_unref(2, x, out);
}
END_TEST

START_TEST(boxes_on_random_shapes)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = draw_dtype(seed);
    mesh_shape s = draw_shape(seed, 0, 5), part = { .ndim = s.ndim };
    struct box b = { .ndim = s.ndim };
    for (int d = 0; d < s.ndim; d++) {
        b.offset[d] = (int64_t)draw(seed, 60 + (uint64_t)d, (uint64_t)s.dim[d] + 1);
        b.extent[d] = (int64_t)draw(seed, 70 + (uint64_t)d, (uint64_t)(s.dim[d] - b.offset[d]) + 1);
        part.dim[d] = b.extent[d];
    }
    struct mesh_tensor *x = test_tensor(s, t, seed), *packed = test_tensor_empty(part, t),
                       *back = tensor_new_zeroed(s, t);
    box_pack(packed->data, x->data, s, &b, dtype_size(t));
    box_unpack(back->data, s, packed->data, &b, dtype_size(t));
    for (int64_t i = 0; i < x->n; i++) {
        int64_t index[MESH_MAX_NDIM];
        bool is_inside = true;
        index_of(s, i, index);
        for (int d = 0; d < s.ndim; d++) {
            index[d] -= b.offset[d];
            is_inside = is_inside && index[d] >= 0 && index[d] < b.extent[d];
        }
        assert_element(back, i, is_inside ? get(x, i) : 0, 0);
        if (is_inside) {
            assert_element(packed, index_at(part, index), get(x, i), 0);
        }
    }
    tensors_unref(3, x, packed, back);
}
END_TEST

/* k products of numbers below 2, summed in f32 in any order; f64 leaves nothing. */
static double product_tolerance(mesh_dtype t, int64_t k)
{
    return t == MESH_F32 ? 4 * (double)(k + 1) * FLT_EPSILON : 1e-13 * (double)(k + 1);
}

START_TEST(linear_of_rough_numbers_on_random_sizes)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = seed % 2 == 0 ? MESH_F32 : MESH_F64;
    int64_t m = (int64_t)draw(seed, 0, 70), n = (int64_t)draw(seed, 1, 70), k = (int64_t)draw(seed, 2, 70);
    struct mesh_tensor *x = test_tensor_rough(MESH_SHAPE(m, k), t, seed),
                       *w = test_tensor_rough(MESH_SHAPE(n, k), t, seed + 1);
    struct mesh_tensor *bias = test_tensor_rough(MESH_SHAPE(n), t, seed + 2),
                       *out = test_tensor_empty(MESH_SHAPE(m, n), t);
    run_kernel(k_linear, &(struct kernel_call){ .in = { x, w, bias }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        double want = get(bias, i % n);
        for (int64_t l = 0; l < k; l++) {
            want += get(x, i / n * k + l) * get(w, i % n * k + l);
        }
        assert_element(out, i, want, product_tolerance(t, k));
    }
    tensors_unref(4, x, w, bias, out);
}
END_TEST

START_TEST(matmul_of_batches_on_random_sizes)
{
    uint64_t seed = (uint64_t)_i;
    mesh_dtype t = seed % 2 == 0 ? MESH_F32 : MESH_I64;
    int64_t m = draw_extent(seed, 0), n = draw_extent(seed, 1), k = draw_extent(seed, 2);
    mesh_shape batch = draw_shape(seed, 10, 3), sa = draw_narrower(seed, 20, batch),
               sb = draw_narrower(seed, 30, batch);
    mesh_shape ba = sa, bb = sb, bo;
    ck_assert_int_eq(shape_broadcast(sa, sb, "test", &bo), 0);
    mesh_shape so = bo;
    sa.dim[sa.ndim++] = m;
    sa.dim[sa.ndim++] = k;
    sb.dim[sb.ndim++] = k;
    sb.dim[sb.ndim++] = n;
    so.dim[so.ndim++] = m;
    so.dim[so.ndim++] = n;
    struct mesh_tensor *a = test_tensor(sa, t, seed), *b = test_tensor(sb, t, seed + 1),
                       *out = test_tensor_empty(so, t);
    run_kernel(k_matmul, &(struct kernel_call){ .in = { a, b }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        int64_t at_a = index_broadcast(ba, bo, i / (m * n)) * m * k + i / n % m * k;
        int64_t at_b = index_broadcast(bb, bo, i / (m * n)) * k * n + i % n;
        double want = 0;
        for (int64_t l = 0; l < k; l++) {
            want += get(a, at_a + l) * get(b, at_b + l * n);
        }
        assert_element(out, i, want, 0);
    }
    tensors_unref(3, a, b, out);
}
END_TEST

/* The derivative of sum(y w) by x[i], by central differences in f64. */
static double slope(kernel_fn kernel, struct kernel_call c, struct mesh_tensor *x, const struct mesh_tensor *w,
                    int64_t i)
{
    double h = 1e-5, at = get(x, i), side[2];
    for (int s = 0; s < 2; s++) {
        side[s] = 0;
        set(x, i, s == 0 ? at - h : at + h);
        run_kernel(kernel, &c);
        for (int64_t j = 0; j < w->n; j++) {
            side[s] += get(c.out[0], j) * get(w, j);
        }
    }
    set(x, i, at);
    return (side[1] - side[0]) / (2 * h);
}

static const struct {
    kernel_fn forward, backward;
    bool takes_y; /* backward's second input is the result, not x */
    int mode;
} derivatives[] = {
    { k_gelu, k_gelu_backward, false, 0 },
    { k_gelu, k_gelu_backward, false, 1 },
    { k_tanh, k_tanh_backward, true, 0 },
    { k_softmax, k_softmax_backward, true, 0 },
    { k_log_softmax, k_log_softmax_backward, true, 0 },
};

START_TEST(backward_kernels_agree_with_finite_differences)
{
    mesh_shape s = MESH_SHAPE(3, 5, 2);
    struct mesh_tensor *x = test_tensor_rough(s, MESH_F64, 1), *y = test_tensor_empty(s, MESH_F64);
    struct mesh_tensor *dy = test_tensor_rough(s, MESH_F64, 2), *dx = test_tensor_empty(s, MESH_F64);
    struct mesh_tensor *scratch = test_tensor_empty(s, MESH_F64);
    struct op_attr attr = { .dim = { 1 }, .mode = derivatives[_i].mode };
    run_kernel(derivatives[_i].forward, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &attr });
    struct kernel_call back = { .in = { dy, derivatives[_i].takes_y ? y : x }, .out = { dx }, .attr = &attr };
    run_kernel(derivatives[_i].backward, &back);
    for (int64_t i = 0; i < x->n; i++) { /* errors of h^2 and of eps / h */
        struct kernel_call c = { .in = { x }, .out = { scratch }, .attr = &attr };
        assert_element(dx, i, slope(derivatives[_i].forward, c, x, dy, i), 1e-8);
    }
    tensors_unref(5, x, y, dy, dx, scratch);
}
END_TEST

START_TEST(cross_entropy_gradient_agrees_with_finite_differences)
{
    struct mesh_tensor *x = test_tensor_rough(MESH_SHAPE(4, 3), MESH_F64, 1),
                       *dx = test_tensor_empty(MESH_SHAPE(4, 3), MESH_F64);
    struct mesh_tensor *target = test_tensor_of(MESH_SHAPE(4), MESH_I64, (double[]){ 2, -100, 0, 1 });
    struct mesh_tensor *scale = test_tensor_rough(MESH_SHAPE(4), MESH_F64, 3),
                       *rows = test_tensor_empty(MESH_SHAPE(4), MESH_F64);
    struct op_attr attr = { .value = { _i * 0.15 }, .index = { -100 } };
    run_kernel(k_cross_entropy_grad, &(struct kernel_call){ .in = { scale, x, target }, .out = { dx }, .attr = &attr });
    for (int64_t i = 0; i < x->n; i++) {
        struct kernel_call c = { .in = { x, target }, .out = { rows }, .attr = &attr };
        assert_element(dx, i, slope(k_cross_entropy_rows, c, x, scale, i), 1e-8);
    }
    tensors_unref(5, x, dx, target, scale, rows);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, binary_kernels_on_random_broadcasts, 0, N_SEEDS);
    tcase_add_loop_test(t, sums_on_random_shapes_and_masks, 0, N_SEEDS);
    tcase_add_loop_test(t, expand_and_sum_to_are_adjoint_on_random_shapes, 0, N_SEEDS);
    tcase_add_loop_test(t, transposes_on_random_shapes, 0, N_SEEDS);
    tcase_add_loop_test(t, boxes_on_random_shapes, 0, N_SEEDS);
    tcase_add_loop_test(t, linear_of_rough_numbers_on_random_sizes, 0, N_SEEDS);
    tcase_add_loop_test(t, matmul_of_batches_on_random_sizes, 0, N_SEEDS);
    tcase_add_loop_test(t, backward_kernels_agree_with_finite_differences, 0,
                        (int)(sizeof derivatives / sizeof derivatives[0]));
    tcase_add_loop_test(t, cross_entropy_gradient_agrees_with_finite_differences, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
