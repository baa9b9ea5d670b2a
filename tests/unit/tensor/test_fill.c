/* tests/unit/tensor/test_fill.c - every box of a filled tensor equals that part of the whole one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "harness/tensors.h"

static const struct fill fills[] = { { FILL_VALUE, 3, 0, { 0, 0 } },
                                     { FILL_UNIFORM, -1, 2, { 7, 3 } },
                                     { FILL_NORMAL, 1, 0.5, { 7, 3 } } };

static struct mesh_tensor *filled(mesh_dtype dtype, mesh_shape global, const struct box *b, const struct fill *f)
{
    mesh_shape part = { .ndim = b->ndim };
    memcpy(part.dim, b->extent, sizeof part.dim);
    struct mesh_tensor *t = test_tensor_empty(part, dtype);
    int r = tensor_fill(t, global, b, f);
    ck_assert_msg(r == 0, "%s", mesh_last_error()->message);
    return t;
}

static void check_box(mesh_dtype dtype, mesh_shape global, const struct box *b, const struct fill *f)
{
    struct box everything = { .ndim = global.ndim };
    memcpy(everything.extent, global.dim, sizeof global.dim);
    struct mesh_tensor *whole = filled(dtype, global, &everything, f), *part = filled(dtype, global, b, f);
    struct mesh_tensor *want = test_tensor_empty(part->shape, dtype);
    box_pack(want->data, whole->data, global, b, dtype_size(dtype));
    for (int64_t i = 0; i < part->n; i++) {
        assert_element(part, i, get(want, i), 0);
    }
    tensors_unref(3, whole, part, want);
}

START_TEST(any_box_holds_its_part_of_the_whole_bit_for_bit)
{
    static const struct {
        mesh_shape shape;
        struct box box;
    } cases[] = {
        { { 2, { 5, 3 } }, { 2, { 0, 0 }, { 5, 3 } } },          { { 2, { 5, 3 } }, { 2, { 3, 0 }, { 2, 3 } } },
        { { 2, { 5, 3 } }, { 2, { 0, 2 }, { 5, 1 } } },          { { 2, { 5, 3 } }, { 2, { 5, 0 }, { 0, 3 } } },
        { { 3, { 4, 6, 2 } }, { 3, { 1, 3, 1 }, { 3, 2, 1 } } }, { { 0, { 0 } }, { 0, { 0 }, { 0 } } }
    };
    for (size_t k = 0; k < sizeof fills / sizeof fills[0]; k++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_box(MESH_F32, cases[i].shape, &cases[i].box, &fills[k]);
            check_box(MESH_F64, cases[i].shape, &cases[i].box, &fills[k]);
        }
    }
}
END_TEST

START_TEST(value_fills_every_dtype_that_can_hold_it)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I8, MESH_U8, MESH_I32, MESH_I64, MESH_BOOL };
    struct box b = { 1, { 0 }, { 3 } };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        struct mesh_tensor *t = filled(dtypes[i], MESH_SHAPE(3), &b, &fills[0]);
        assert_element(t, 2, dtypes[i] == MESH_BOOL ? 1 : 3, 0);
        tensor_unref(t);
    }
    struct mesh_tensor *t = test_tensor_empty(MESH_SHAPE(3), MESH_U8);
    ck_assert_int_eq(tensor_fill(t, MESH_SHAPE(3), &b, &(struct fill){ FILL_VALUE, -1, 0, { 0, 0 } }), MESH_EINVAL);
    ck_assert_int_eq(tensor_fill(t, MESH_SHAPE(3), &b, &(struct fill){ FILL_VALUE, 0.5, 0, { 0, 0 } }), MESH_EINVAL);
    ck_assert_int_eq(tensor_fill(t, MESH_SHAPE(3), &b, &fills[1]), MESH_EUNSUPPORTED);
    tensor_unref(t);
}
END_TEST

START_TEST(uniform_stays_in_its_half_open_range_and_has_its_mean)
{
    int64_t n = 20000;
    struct box b = { 1, { 0 }, { n } };
    struct mesh_tensor *t = filled(MESH_F32, MESH_SHAPE(n), &b, &fills[1]);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        ck_assert(get(t, i) >= -1 && get(t, i) < 2);
        sum += get(t, i);
    }
    ck_assert_double_eq_tol(sum / (double)n, 0.5, 5 * sqrt(9.0 / 12 / (double)n)); /* five sigma */
    tensor_unref(t);
}
END_TEST

START_TEST(normal_has_its_mean_and_deviation)
{
    int64_t n = 20000;
    struct box b = { 1, { 0 }, { n } };
    struct mesh_tensor *t = filled(MESH_F64, MESH_SHAPE(n), &b, &fills[2]);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += get(t, i);
        squares += (get(t, i) - 1) * (get(t, i) - 1);
    }
    ck_assert_double_eq_tol(sum / (double)n, 1, 5 * 0.5 / sqrt((double)n));
    ck_assert_double_eq_tol(squares / (double)n, 0.25, 5 * 0.25 * sqrt(2 / (double)n));
    tensor_unref(t);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("fill");
    TCase *t = tcase_create("fill");
    tcase_add_test(t, any_box_holds_its_part_of_the_whole_bit_for_bit);
    tcase_add_test(t, value_fills_every_dtype_that_can_hold_it);
    tcase_add_test(t, uniform_stays_in_its_half_open_range_and_has_its_mean);
    tcase_add_test(t, normal_has_its_mean_and_deviation);
    suite_add_tcase(s, t);
    return s;
}
