/* tests/unit/tensor/test_move.c - transpose, expand and boxes against index arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <string.h>

#include "base/dtype.h"
#include "harness/tensors.h"
#include "tensor/turn.h"

static const mesh_dtype items[] = { MESH_F32, MESH_F64, MESH_U8, MESH_I64, MESH_BOOL };
#define N_ITEMS ((int)(sizeof items / sizeof items[0]))

static void check_transpose(mesh_dtype dtype, mesh_shape s, int d0, int d1)
{
    mesh_shape so = s;
    so.dim[d0] = s.dim[d1];
    so.dim[d1] = s.dim[d0];
    struct mesh_tensor *x = test_tensor(s, dtype, 1), *out = test_tensor_empty(so, dtype);
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

START_TEST(transpose_swaps_any_two_dimensions)
{
    static const mesh_shape shapes[] = { { 2, { 5, 3 } }, { 3, { 2, 3, 4 } }, { 4, { 2, 3, 1, 5 } }, { 3, { 4, 0, 3 } },
                                         { 1, { 7 } },    { 2, { 67, 45 } },  { 3, { 1, 1, 1 } } };
    for (int k = 0; k < N_ITEMS; k++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            for (int d0 = 0; d0 < shapes[i].ndim; d0++) {
                for (int d1 = 0; d1 < shapes[i].ndim; d1++) {
                    check_transpose(items[k], shapes[i], d0, d1);
                }
            }
        }
    }
}
END_TEST

/* Every element of it has another value, as far as the dtype goes. */
static void check_permute(mesh_dtype dtype, mesh_shape s, mesh_shape dims)
{
    mesh_shape so = { .ndim = s.ndim };
    for (int d = 0; d < s.ndim; d++) {
        so.dim[d] = s.dim[dims.dim[d]];
    }
    struct mesh_tensor *x = test_tensor_rough(s, dtype, 1), *out = test_tensor_empty(so, dtype);
    struct op_attr attr = { .shape = dims };
    run_kernel(k_permute, &(struct kernel_call){ .in = { x }, .out = { out }, .attr = &attr });
    for (int64_t i = 0; i < out->n; i++) {
        int64_t index[MESH_MAX_NDIM], of_x[MESH_MAX_NDIM];
        index_of(so, i, index);
        for (int d = 0; d < s.ndim; d++) {
            of_x[dims.dim[d]] = index[d];
        }
        assert_element(out, i, get(x, index_at(s, of_x)), 0);
    }
    tensors_unref(2, x, out);
}

START_TEST(permute_orders_dimensions_anyhow)
{
    static const mesh_shape shapes[] = {
        { 3, { 3, 35, 18 } }, { 3, { 17, 1, 33 } }, { 3, { 2, 0, 3 } }, { 3, { 16, 32, 16 } }
    };
    static const mesh_shape orders[] = {
        { 3, { 0, 1, 2 } }, { 3, { 1, 2, 0 } }, { 3, { 2, 0, 1 } }, { 3, { 2, 1, 0 } }
    };
    for (int k = 0; k < N_ITEMS; k++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
                check_permute(items[k], shapes[i], orders[o]);
            }
        }
    }
    check_permute(MESH_F32, MESH_SHAPE(2, 17, 3, 19), MESH_SHAPE(3, 1, 0, 2));
    check_permute(MESH_F64, MESH_SHAPE(4, 17, 3, 2), MESH_SHAPE(1, 3, 2, 0));
}
END_TEST

START_TEST(matrices_of_two_byte_elements_turn)
{
    enum { ROWS = 37, COLUMNS = 50 };
    static uint16_t from[ROWS * COLUMNS], to[COLUMNS * ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        from[i] = (uint16_t)(i * 31);
    }
    turn_matrix(&(struct turn){
        .to = to, .from = from, .to_step = ROWS, .from_step = COLUMNS, .rows = ROWS, .columns = COLUMNS, .item = 2 });
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        ck_assert_uint_eq(to[i % COLUMNS * ROWS + i / COLUMNS], from[i]);
    }
}
END_TEST

START_TEST(transposes_that_go_past_the_caches_are_complete)
{
    check_permute(MESH_F32, MESH_SHAPE(1040, 1041), MESH_SHAPE(1, 0));
    check_permute(MESH_F64, MESH_SHAPE(720, 740), MESH_SHAPE(1, 0));
}
END_TEST

static void check_expand(mesh_dtype dtype, mesh_shape s, mesh_shape to)
{
    struct mesh_tensor *x = test_tensor(s, dtype, 1), *out = test_tensor_empty(to, dtype);
    run_kernel(k_expand, &(struct kernel_call){ .in = { x }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        assert_element(out, i, get(x, index_broadcast(s, to, i)), 0);
    }
    tensors_unref(2, x, out);
}

START_TEST(expand_repeats_along_stretched_and_leading_dimensions)
{
    static const struct {
        mesh_shape from, to;
    } cases[] = { { { 2, { 5, 1 } }, { 2, { 5, 3 } } },
                  { { 2, { 1, 5 } }, { 2, { 4, 5 } } },
                  { { 0, { 0 } }, { 3, { 2, 3, 5 } } },
                  { { 1, { 3 } }, { 3, { 2, 0, 3 } } },
                  { { 3, { 2, 1, 3 } }, { 4, { 2, 2, 7, 3 } } },
                  { { 2, { 5, 3 } }, { 2, { 5, 3 } } },
                  { { 0, { 0 } }, { 0, { 0 } } },
                  { { 2, { 1, 1 } }, { 2, { 13, 11 } } } };
    for (int k = 0; k < N_ITEMS; k++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_expand(items[k], cases[i].from, cases[i].to);
        }
    }
}
END_TEST

static void check_box(mesh_dtype dtype, mesh_shape s, const struct box *b)
{
    mesh_shape part = { .ndim = s.ndim };
    memcpy(part.dim, b->extent, sizeof part.dim);
    struct mesh_tensor *x = test_tensor(s, dtype, 1), *packed = test_tensor_empty(part, dtype);
    struct mesh_tensor *back = tensor_new_zeroed(s, dtype);
    box_pack(packed->data, x->data, s, b, dtype_size(dtype));
    box_unpack(back->data, s, packed->data, b, dtype_size(dtype));
    for (int64_t i = 0; i < packed->n; i++) {
        int64_t index[MESH_MAX_NDIM], at = 0;
        index_of(part, i, index);
        for (int d = 0; d < s.ndim; d++) {
            at = at * s.dim[d] + index[d] + b->offset[d];
        }
        assert_element(packed, i, get(x, at), 0);
        assert_element(back, at, get(x, at), 0);
        set(back, at, 0);
    }
    for (int64_t i = 0; i < back->n; i++) { /* nothing outside the box was touched */
        assert_element(back, i, 0, 0);
    }
    tensors_unref(3, x, packed, back);
}

START_TEST(boxes_are_packed_and_put_back_exactly)
{
    static const struct {
        mesh_shape shape;
        struct box box;
    } cases[] = {
        { { 2, { 5, 3 } }, { 2, { 0, 0 }, { 5, 3 } } },
        { { 2, { 5, 3 } }, { 2, { 2, 0 }, { 2, 3 } } },
        { { 2, { 5, 3 } }, { 2, { 0, 1 }, { 5, 1 } } },
        { { 2, { 5, 3 } }, { 2, { 4, 2 }, { 1, 1 } } },
        { { 2, { 5, 3 } }, { 2, { 5, 0 }, { 0, 3 } } },
        { { 3, { 4, 6, 2 } }, { 3, { 1, 2, 0 }, { 2, 3, 2 } } },
        { { 3, { 4, 6, 2 } }, { 3, { 1, 2, 1 }, { 3, 2, 1 } } },
        { { 0, { 0 } }, { 0, { 0 }, { 0 } } },
        { { 2, { 0, 3 } }, { 2, { 0, 0 }, { 0, 3 } } },
        { { 4, { 3, 1, 4, 5 } }, { 4, { 1, 0, 1, 2 }, { 2, 1, 3, 2 } } },
    };
    for (int k = 0; k < N_ITEMS; k++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            check_box(items[k], cases[i].shape, &cases[i].box);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("move");
    TCase *t = tcase_create("move");
    tcase_add_test(t, transpose_swaps_any_two_dimensions);
    tcase_add_test(t, permute_orders_dimensions_anyhow);
    tcase_add_test(t, matrices_of_two_byte_elements_turn);
    tcase_add_test(t, transposes_that_go_past_the_caches_are_complete);
    tcase_add_test(t, expand_repeats_along_stretched_and_leading_dimensions);
    tcase_add_test(t, boxes_are_packed_and_put_back_exactly);
    suite_add_tcase(s, t);
    return s;
}
