/* tests/unit/tensor/test_matmul.c - matrix products against three loops, for vectors, batches and empty extents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/tensors.h"

static const mesh_dtype numbers[] = { MESH_F32, MESH_F64, MESH_I32, MESH_I64 };
#define N_NUMBERS ((int)(sizeof numbers / sizeof numbers[0]))

/* Without the last two dimensions; a vector counts as a matrix. */
static mesh_shape batch_of(mesh_shape s)
{
    s.ndim = s.ndim > 2 ? s.ndim - 2 : 0;
    return s;
}

/* a[.., i, l] b[.., l, j] summed over l, for batch entry `batch` of `batches`; quarters: exact in f32. */
static double naive(const struct mesh_tensor *a, const struct mesh_tensor *b, mesh_shape batches, const int64_t ijk[3])
{
    int64_t k = a->shape.dim[a->shape.ndim - 1], n = b->shape.ndim == 1 ? 1 : b->shape.dim[b->shape.ndim - 1];
    int64_t m = a->shape.ndim == 1 ? 1 : a->shape.dim[a->shape.ndim - 2];
    int64_t at_a = index_broadcast(batch_of(a->shape), batches, ijk[0]) * m * k;
    int64_t at_b = index_broadcast(batch_of(b->shape), batches, ijk[0]) * k * n;
    double sum = 0;
    for (int64_t l = 0; l < k; l++) {
        sum += get(a, at_a + ijk[1] * k + l) * get(b, at_b + l * n + ijk[2]);
    }
    return sum;
}

static void check_matmul(mesh_dtype dtype, mesh_shape sa, mesh_shape sb)
{
    mesh_shape batches, out_shape;
    ck_assert_int_eq(shape_broadcast(batch_of(sa), batch_of(sb), "test", &batches), 0);
    int64_t m = sa.ndim == 1 ? 1 : sa.dim[sa.ndim - 2], n = sb.ndim == 1 ? 1 : sb.dim[sb.ndim - 1];
    out_shape = batches;
    if (sa.ndim > 1) {
        out_shape.dim[out_shape.ndim++] = m;
    }
    if (sb.ndim > 1) {
        out_shape.dim[out_shape.ndim++] = n;
    }
    struct mesh_tensor *a = test_tensor(sa, dtype, 1), *b = test_tensor(sb, dtype, 2);
    struct mesh_tensor *out = test_tensor_empty(out_shape, dtype);
    run_kernel(k_matmul, &(struct kernel_call){ .in = { a, b }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        assert_element(out, i, naive(a, b, batches, (int64_t[]){ i / (m * n), i / n % m, i % n }), 0);
    }
    tensors_unref(3, a, b, out);
}

START_TEST(matmul_equals_three_loops_for_all_ranks_of_operands)
{
    static const struct {
        mesh_shape a, b;
    } cases[] = {
        { { 2, { 5, 3 } }, { 2, { 3, 7 } } },
        { { 1, { 3 } }, { 1, { 3 } } },
        { { 1, { 3 } }, { 2, { 3, 7 } } },
        { { 2, { 5, 3 } }, { 1, { 3 } } },
        { { 3, { 2, 5, 3 } }, { 2, { 3, 7 } } },
        { { 3, { 2, 5, 3 } }, { 1, { 3 } } },
        { { 2, { 5, 3 } }, { 3, { 4, 3, 7 } } },
        { { 1, { 3 } }, { 3, { 4, 3, 7 } } },
        { { 3, { 4, 5, 3 } }, { 3, { 4, 3, 7 } } },
        { { 4, { 2, 1, 5, 3 } }, { 3, { 4, 3, 7 } } },
        { { 4, { 2, 1, 5, 3 } }, { 4, { 1, 3, 3, 2 } } },
        { { 2, { 0, 3 } }, { 2, { 3, 7 } } },
        { { 2, { 5, 0 } }, { 2, { 0, 7 } } },
        { { 2, { 5, 3 } }, { 2, { 3, 0 } } },
        { { 3, { 0, 5, 3 } }, { 2, { 3, 7 } } },
        { { 1, { 0 } }, { 1, { 0 } } },
        { { 2, { 1, 1 } }, { 2, { 1, 1 } } },
        { { 3, { 1, 5, 3 } }, { 3, { 0, 3, 2 } } },
        { { 2, { 67, 31 } }, { 2, { 31, 71 } } },
    };
    for (int d = 0; d < N_NUMBERS; d++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_matmul(numbers[d], cases[i].a, cases[i].b);
        }
    }
}
END_TEST

static void check_linear(mesh_dtype dtype, mesh_shape sx, int64_t n, bool has_bias)
{
    int64_t k = sx.dim[sx.ndim - 1];
    mesh_shape so = sx;
    so.dim[so.ndim - 1] = n;
    struct mesh_tensor *x = test_tensor(sx, dtype, 1), *w = test_tensor(MESH_SHAPE(n, k), dtype, 2);
    struct mesh_tensor *bias = has_bias ? test_tensor(MESH_SHAPE(n), dtype, 3) : NULL,
                       *out = test_tensor_empty(so, dtype);
    run_kernel(k_linear, &(struct kernel_call){ .in = { x, w, bias }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        double sum = has_bias ? get(bias, i % n) : 0;
        for (int64_t l = 0; l < k; l++) {
            sum += get(x, i / n * k + l) * get(w, i % n * k + l);
        }
        assert_element(out, i, sum, 0);
    }
    tensors_unref(4, x, w, bias, out);
}

static void check_linear_gradients(mesh_dtype dtype, mesh_shape sx, int64_t n)
{
    int64_t k = sx.dim[sx.ndim - 1], rows = shape_outer(sx, sx.ndim - 1);
    mesh_shape sdy = sx;
    sdy.dim[sdy.ndim - 1] = n;
    struct mesh_tensor *x = test_tensor(sx, dtype, 1), *w = test_tensor(MESH_SHAPE(n, k), dtype, 2);
    struct mesh_tensor *dy = test_tensor(sdy, dtype, 3), *dx = test_tensor_empty(sx, dtype);
    struct mesh_tensor *dw = test_tensor_empty(MESH_SHAPE(n, k), dtype);
    run_kernel(k_linear_grad_input, &(struct kernel_call){ .in = { dy, w }, .out = { dx } });
    run_kernel(k_linear_grad_weight, &(struct kernel_call){ .in = { dy, x }, .out = { dw } });
    for (int64_t i = 0; i < dx->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += get(dy, i / k * n + j) * get(w, j * k + i % k);
        }
        assert_element(dx, i, sum, 0);
    }
    for (int64_t i = 0; i < dw->n; i++) {
        double sum = 0;
        for (int64_t row = 0; row < rows; row++) {
            sum += get(dy, row * n + i / k) * get(x, row * k + i % k);
        }
        assert_element(dw, i, sum, 0);
    }
    tensors_unref(5, x, w, dy, dx, dw);
}

START_TEST(linear_and_its_gradients_equal_the_loops)
{
    static const struct {
        mesh_shape x;
        int64_t n;
    } cases[] = { { { 2, { 5, 3 } }, 7 }, { { 1, { 3 } }, 7 },      { { 3, { 2, 5, 3 } }, 1 },
                  { { 2, { 0, 3 } }, 2 }, { { 2, { 5, 0 } }, 7 },   { { 3, { 2, 0, 3 } }, 7 },
                  { { 2, { 5, 3 } }, 0 }, { { 2, { 33, 17 } }, 29 } };
    for (int d = 0; d < N_NUMBERS; d++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_linear(numbers[d], cases[i].x, cases[i].n, false);
            check_linear(numbers[d], cases[i].x, cases[i].n, true);
            check_linear_gradients(numbers[d], cases[i].x, cases[i].n);
        }
    }
}
END_TEST

START_TEST(dtype_without_a_product_is_named)
{
    struct mesh_tensor *a = test_tensor(MESH_SHAPE(2, 2), MESH_BOOL, 1),
                       *out = test_tensor_empty(MESH_SHAPE(2, 2), MESH_BOOL);
    ck_assert_int_eq(k_matmul(&(struct kernel_call){ .in = { a, a }, .out = { out } }), MESH_EUNSUPPORTED);
    ck_assert_str_eq(mesh_last_error()->message, "matmul does not work on tensors of dtype bool");
    tensors_unref(2, a, out);
}
END_TEST

START_TEST(extent_over_32_bits_is_refused_before_blas_sees_it)
{
    /* a and out have no elements, so nothing large is allocated. */
    struct mesh_tensor *a = test_tensor_empty(MESH_SHAPE(0, 0), MESH_F32);
    struct mesh_tensor *b = test_tensor_empty(MESH_SHAPE(0, INT64_C(3000000000)), MESH_F32);
    struct mesh_tensor *out = test_tensor_empty(MESH_SHAPE(0, INT64_C(3000000000)), MESH_F32);
    ck_assert_int_eq(k_matmul(&(struct kernel_call){ .in = { a, b }, .out = { out } }), MESH_ETOOLARGE);
    tensors_unref(3, a, b, out);
}
END_TEST

/* The address space in use; a limit just above it leaves no room for OpenBLAS. */
static rlim_t bytes_in_use(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f != NULL && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* An emulator of another processor takes the limit and does not keep it. */
static bool is_limit_kept(void)
{
    void *block = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED || munmap(block, 64 << 20) < 0;
}

START_TEST(without_memory_for_blas_a_product_is_refused_and_does_not_hang)
{
    struct mesh_tensor *a = tensor_new(MESH_SHAPE(64, 64), MESH_F32), *y = tensor_new(MESH_SHAPE(64, 64), MESH_F32);
    struct kernel_call call = { .in = { a, a }, .out = { y } };
    struct rlimit before, tight;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = bytes_in_use() + (16 << 20);
    if (setrlimit(RLIMIT_AS, &tight) == 0 && before.rlim_cur > tight.rlim_cur && is_limit_kept()) {
        int r = k_matmul(&call);
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
        ck_assert_int_eq(r, MESH_ENOMEM);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(k_matmul(&call), 0);
    tensor_unref(a);
    tensor_unref(y);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("matmul");
    TCase *t = tcase_create("matmul");
    tcase_add_test(t, without_memory_for_blas_a_product_is_refused_and_does_not_hang);
    tcase_add_test(t, matmul_equals_three_loops_for_all_ranks_of_operands);
    tcase_add_test(t, linear_and_its_gradients_equal_the_loops);
    tcase_add_test(t, dtype_without_a_product_is_named);
    tcase_add_test(t, extent_over_32_bits_is_refused_before_blas_sees_it);
    suite_add_tcase(s, t);
    return s;
}
