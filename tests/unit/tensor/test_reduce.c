/* tests/unit/tensor/test_reduce.c - sums over every set of dimensions against a loop over all elements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "harness/tensors.h"

static const mesh_shape shapes[] = { { 0, { 0 } },          { 1, { 13 } },   { 2, { 5, 3 } }, { 3, { 4, 6, 2 } },
                                     { 4, { 2, 3, 1, 5 } }, { 2, { 0, 3 } }, { 2, { 3, 0 } }, { 3, { 2, 1, 37 } } };
#define N_SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

/* Sums x into a shape of the same ndim with extent 1 (or 0 kept) at the dimensions of the mask; quarters: exact. */
static void check_sum(mesh_dtype in, mesh_dtype out_dtype, mesh_shape s, uint32_t mask)
{
    mesh_shape so = s;
    for (int d = 0; d < s.ndim; d++) {
        so.dim[d] = mask >> d & 1 ? 1 : s.dim[d];
    }
    struct mesh_tensor *x = test_tensor(s, in, 1), *out = test_tensor_empty(so, out_dtype);
    struct mesh_tensor *want = tensor_new_zeroed(so, MESH_F64);
    struct op_attr attr = { .dims = mask, .value = { 0.25 } };
    struct kernel_call c = { .in = { x }, .out = { out }, .attr = &attr };
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = index_broadcast(so, s, i);
        set(want, at, get(want, at) + get(x, i));
    }
    run_kernel(k_sum, &c);
    assert_values(out, 0, want->data);
    if (dtype_kind(in) == DTYPE_FLOAT) {
        run_kernel(k_sum_scaled, &c);
        for (int64_t i = 0; i < out->n; i++) {
            assert_element(out, i, get(want, i) / 4, 0);
        }
    }
    tensors_unref(3, x, out, want);
}

START_TEST(sum_over_every_set_of_dimensions_for_every_dtype)
{
    static const mesh_dtype dtypes[][2] = { { MESH_F32, MESH_F32 }, { MESH_F64, MESH_F64 }, { MESH_I32, MESH_I32 },
                                            { MESH_I32, MESH_I64 }, { MESH_I64, MESH_I64 }, { MESH_U8, MESH_I64 },
                                            { MESH_BOOL, MESH_I64 } };
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
        for (int i = 0; i < N_SHAPES; i++) {
            for (uint32_t mask = 0; mask < UINT32_C(1) << shapes[i].ndim; mask++) {
                check_sum(dtypes[k][0], dtypes[k][1], shapes[i], mask);
            }
        }
    }
}
END_TEST

START_TEST(mean_over_nothing_is_nan)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(0, 3), MESH_F32, 1),
                       *out = test_tensor_empty(MESH_SCALAR_SHAPE, MESH_F32);
    struct op_attr attr = { .dims = 3, .value = { INFINITY } };
    run_kernel(k_sum_scaled, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    assert_element(out, 0, NAN, 0);
    tensors_unref(2, x, out);
}
END_TEST

START_TEST(f32_sum_of_a_million_terms_is_rounded_once)
{
    struct mesh_tensor *x = tensor_new(MESH_SHAPE(1000000), MESH_F32),
                       *out = test_tensor_empty(MESH_SCALAR_SHAPE, MESH_F32);
    for (int64_t i = 0; i < x->n; i++) {
        ((float *)x->data)[i] = 0.1f;
    }
    struct op_attr attr = { .dims = 1 };
    run_kernel(k_sum, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    assert_element(out, 0, 1e6 * (double)0.1f, FLT_EPSILON); /* one rounding to f32 */
    tensors_unref(2, x, out);
}
END_TEST

static void check_sum_to(mesh_shape from, mesh_shape to)
{
    struct mesh_tensor *x = test_tensor(from, MESH_F32, 1), *out = test_tensor_empty(to, MESH_F32);
    struct mesh_tensor *want = tensor_new_zeroed(to, MESH_F64);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = index_broadcast(to, from, i);
        set(want, at, get(want, at) + get(x, i));
    }
    run_kernel(k_sum_to, &(struct kernel_call){ .in = { x }, .out = { out } });
    assert_values(out, 0, want->data);
    tensors_unref(3, x, out, want);
}

START_TEST(sum_to_is_the_adjoint_of_expand)
{
    check_sum_to(MESH_SHAPE(5, 3), MESH_SHAPE(5, 1));
    check_sum_to(MESH_SHAPE(5, 3), MESH_SHAPE(3));
    check_sum_to(MESH_SHAPE(5, 3), MESH_SHAPE(1));
    check_sum_to(MESH_SHAPE(5, 3), MESH_SCALAR_SHAPE);
    check_sum_to(MESH_SHAPE(5, 3), MESH_SHAPE(5, 3));
    check_sum_to(MESH_SHAPE(2, 4, 7, 3), MESH_SHAPE(4, 1, 3));
    check_sum_to(MESH_SHAPE(0, 3), MESH_SHAPE(1, 3));
    check_sum_to(MESH_SHAPE(0, 3), MESH_SHAPE(0, 3));
}
END_TEST

START_TEST(dtypes_that_do_not_sum_are_refused)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3), MESH_I32, 1),
                       *f = test_tensor_empty(MESH_SCALAR_SHAPE, MESH_F32);
    struct op_attr attr = { .dims = 1, .value = { 0.5 } };
    struct kernel_call c = { .in = { x }, .out = { f }, .attr = &attr };
    ck_assert_int_eq(k_sum(&c), MESH_EUNSUPPORTED);
    ck_assert_int_eq(k_sum_scaled(&c), MESH_EUNSUPPORTED);
    tensors_unref(2, x, f);
}
END_TEST

START_TEST(no_memory_for_accumulators_is_a_status)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3), MESH_F32, 1),
                       *out = test_tensor_empty(MESH_SCALAR_SHAPE, MESH_F32);
    struct op_attr attr = { .dims = 1 };
    fault_arm(FAULT_ALLOC, 1, 0);
    int r = k_sum(&(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    fault_disarm(FAULT_ALLOC);
    ck_assert_int_eq(r, MESH_ENOMEM);
    tensors_unref(2, x, out);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reduce");
    TCase *t = tcase_create("reduce");
    tcase_add_test(t, sum_over_every_set_of_dimensions_for_every_dtype);
    tcase_add_test(t, mean_over_nothing_is_nan);
    tcase_add_test(t, f32_sum_of_a_million_terms_is_rounded_once);
    tcase_add_test(t, sum_to_is_the_adjoint_of_expand);
    tcase_add_test(t, dtypes_that_do_not_sum_are_refused);
    tcase_add_test(t, no_memory_for_accumulators_is_a_status);
    suite_add_tcase(s, t);
    return s;
}
