/* tests/unit/tensor/test_tensor.c - the life of tensors, and the public calls of mesh/tensor.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <mesh/scope.h>
#include <mesh/tensor.h>

#include "base/fault.h"
#include "core/scope.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static void open_scope(void)
{
    ck_assert_int_eq(scope_open_outermost(), 0);
}

static void close_scope(void)
{
    fault_disarm(FAULT_ALLOC);
    (void)scope_close_outermost();
}

START_TEST(new_tensor_is_zeroed_and_belongs_to_the_scope)
{
    mesh_tensor *t = mesh_tensor_new(MESH_SHAPE(3, 5), MESH_I32);
    ck_assert_ptr_nonnull(t);
    ck_assert(shape_equal(mesh_tensor_shape(t), MESH_SHAPE(3, 5)));
    ck_assert_int_eq(mesh_tensor_dtype(t), MESH_I32);
    for (int i = 0; i < 15; i++) {
        ck_assert_int_eq(((int32_t *)mesh_tensor_data(t))[i], 0);
    }
    ck_assert_ptr_eq(t->object.scope, scope_current());
}
END_TEST

START_TEST(empty_and_scalar_tensors_are_ordinary)
{
    ck_assert_int_eq(mesh_tensor_new(MESH_SHAPE(0, 3), MESH_F32)->n, 0);
    ck_assert_int_eq(mesh_tensor_new(MESH_SCALAR_SHAPE, MESH_F64)->n, 1);
    ck_assert_ptr_nonnull(mesh_tensor_view(NULL, MESH_SHAPE(2, 0), MESH_F32));
    ck_assert_int_eq(mesh_scope_status(NULL), 0);
}
END_TEST

START_TEST(view_borrows_the_callers_memory)
{
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    mesh_scope *s = mesh_scope_begin();
    mesh_tensor *t = mesh_tensor_view(data, MESH_SHAPE(2, 3), MESH_F32);
    ck_assert_ptr_eq(mesh_tensor_data(t), data);
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert(data[5] == 6.0f);
}
END_TEST

START_TEST(shared_storage_outlives_the_tensor_it_came_from)
{
    struct mesh_tensor *t = tensor_new_zeroed(MESH_SHAPE(2, 3), MESH_F64);
    struct mesh_tensor *u = tensor_share(t, MESH_SHAPE(6));
    ((double *)t->data)[4] = 7;
    tensor_unref(t);
    ck_assert(((double *)u->data)[4] == 7.0);
    tensor_unref(u);
    tensor_unref(NULL);
}
END_TEST

START_TEST(bad_arguments_fail_the_scope_with_a_sentence)
{
    static const struct {
        mesh_shape shape;
        int dtype, status;
    } cases[] = { { { .ndim = 1, .dim = { -1 } }, MESH_F32, MESH_ESHAPE },
                  { { .ndim = 9 }, MESH_F32, MESH_ESHAPE },
                  { { .ndim = -1 }, MESH_F32, MESH_ESHAPE },
                  { { .ndim = 1, .dim = { 2 } }, 0, MESH_EINVAL },
                  { { .ndim = 1, .dim = { 2 } }, 99, MESH_EINVAL } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mesh_scope *s = mesh_scope_begin();
        ck_assert_ptr_null(mesh_tensor_new(cases[i].shape, (mesh_dtype)cases[i].dtype));
        ck_assert_int_eq(mesh_scope_status(s), cases[i].status);
        ck_assert_str_eq(mesh_last_error()->where, "mesh_tensor_new");
        ck_assert_int_eq(mesh_scope_end(s), cases[i].status);
    }
    mesh_scope *s = mesh_scope_begin();
    ck_assert_ptr_null(mesh_tensor_view(NULL, MESH_SHAPE(2), MESH_F32));
    ck_assert_int_eq(mesh_scope_end(s), MESH_EINVAL);
}
END_TEST

START_TEST(getters_of_null_fail_the_scope_and_good_tensors_still_answer)
{
    mesh_tensor *good = mesh_tensor_new(MESH_SHAPE(2), MESH_F32);
    mesh_scope *s = mesh_scope_begin();
    ck_assert_ptr_null(mesh_tensor_data(NULL));
    ck_assert_int_eq(mesh_scope_status(s), MESH_EINVAL);
    ck_assert_int_eq(mesh_tensor_shape(NULL).ndim, 0);
    ck_assert_int_eq((int)mesh_tensor_dtype(NULL), 0);
    ck_assert_ptr_nonnull(mesh_tensor_data(good));
    ck_assert_int_eq(mesh_scope_end(s), MESH_EINVAL);
}
END_TEST

START_TEST(every_failing_allocation_is_a_named_error_and_leaks_nothing)
{
    for (uint64_t nth = 1;; nth++) {
        mesh_scope *s = mesh_scope_begin();
        fault_arm(FAULT_ALLOC, nth, 0);
        mesh_tensor *t = mesh_tensor_new(MESH_SHAPE(4), MESH_F32);
        uint64_t fired = fault_fired(FAULT_ALLOC);
        fault_disarm(FAULT_ALLOC);
        if (fired == 0) {
            ck_assert_ptr_nonnull(t);
            ck_assert_int_eq(mesh_scope_end(s), 0);
            break;
        }
        ck_assert_ptr_null(t);
        ck_assert_int_eq(mesh_scope_end(s), MESH_ENOMEM);
    }
}
END_TEST

START_TEST(impossible_size_is_out_of_memory_not_an_overflow)
{
    mesh_scope *s = mesh_scope_begin();
    ck_assert_ptr_null(mesh_tensor_new(MESH_SHAPE(INT64_C(1) << 62), MESH_F64));
    ck_assert_int_eq(mesh_scope_end(s), MESH_ENOMEM);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor");
    TCase *t = tcase_create("tensor");
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_test(t, new_tensor_is_zeroed_and_belongs_to_the_scope);
    tcase_add_test(t, empty_and_scalar_tensors_are_ordinary);
    tcase_add_test(t, view_borrows_the_callers_memory);
    tcase_add_test(t, shared_storage_outlives_the_tensor_it_came_from);
    tcase_add_test(t, bad_arguments_fail_the_scope_with_a_sentence);
    tcase_add_test(t, getters_of_null_fail_the_scope_and_good_tensors_still_answer);
    tcase_add_test(t, every_failing_allocation_is_a_named_error_and_leaks_nothing);
    tcase_add_test(t, impossible_size_is_out_of_memory_not_an_overflow);
    suite_add_tcase(s, t);
    return s;
}
