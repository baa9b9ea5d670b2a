/* tests/truth/test_kernels_move.c - kernels that move or choose elements, over many random shapes, against naive loops.
 *
 * A seed names a case: shapes, dtypes and arguments follow from it alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "harness/tensors.h"

#define N_SEEDS 150

struct setting { /* a tensor of at least one dim, and one of its dims */
    mesh_shape s;
    int d;
    int64_t n;
    struct mesh_tensor *x;
    struct op_attr attr;
    int64_t index[MESH_MAX_NDIM]; /* of the element that is looked at */
};

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t n)
{
    return rng_below((struct rng_key){ .seed = seed, .call = 78 }, i, n);
}

static mesh_shape draw_shape(uint64_t seed, int least_ndim)
{
    static const int64_t extents[] = { 0, 1, 1, 2, 3, 3, 5, 7, 8 };
    mesh_shape s = { .ndim = least_ndim + (int)draw(seed, 0, (uint64_t)(5 - least_ndim)) };
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d] = extents[draw(seed, 1 + (uint64_t)d, ARRAY_SIZE(extents))];
    }
    return s;
}

static mesh_dtype draw_dtype(uint64_t seed)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I32, MESH_I64, MESH_U8, MESH_I8 };
    return dtypes[draw(seed, 99, 6)];
}

static struct setting setting_of(uint64_t seed)
{
    struct setting g = { .s = draw_shape(seed, 1) };
    g.d = (int)draw(seed, 20, (uint64_t)g.s.ndim);
    g.n = g.s.dim[g.d];
    g.x = test_tensor(g.s, draw_dtype(seed), seed);
    g.attr.dim[0] = g.d;
    return g;
}

static void run(struct setting *g, kernel_fn kernel, struct mesh_tensor *out)
{
    run_kernel(kernel, &(struct kernel_call){ .in = { g->x }, .out = { out }, .attr = &g->attr });
}

/* The element of x at g->index, with place `at` along the dim. */
static double element(struct setting *g, int64_t at)
{
    g->index[g->d] = at;
    return get(g->x, index_at(g->s, g->index));
}

START_TEST(permutations)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    mesh_shape so = g.s;
    g.attr.shape.ndim = g.s.ndim;
    for (int d = 0; d < g.s.ndim; d++) {
        g.attr.shape.dim[d] = d;
    }
    for (int d = g.s.ndim - 1; d > 0; d--) { /* shuffled */
        int other = (int)draw(seed, 40 + (uint64_t)d, (uint64_t)d + 1);
        int64_t t = g.attr.shape.dim[d];
        g.attr.shape.dim[d] = g.attr.shape.dim[other];
        g.attr.shape.dim[other] = t;
    }
    for (int d = 0; d < so.ndim; d++) {
        so.dim[d] = g.s.dim[g.attr.shape.dim[d]];
    }
    struct mesh_tensor *out = test_tensor_empty(so, g.x->dtype);
    run(&g, k_permute, out);
    for (int64_t i = 0; i < out->n; i++) {
        int64_t at[MESH_MAX_NDIM];
        index_of(so, i, at);
        for (int d = 0; d < so.ndim; d++) {
            g.index[g.attr.shape.dim[d]] = at[d];
        }
        assert_element(out, i, get(g.x, index_at(g.s, g.index)), 0);
    }
    tensors_unref(2, g.x, out);
}
END_TEST

START_TEST(flips_and_rolls)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    struct mesh_tensor *flipped = test_tensor_empty(g.s, g.x->dtype), *rolled = test_tensor_empty(g.s, g.x->dtype);
    int64_t shift = (int64_t)draw(seed, 21, 40) - 20;
    g.attr.dims = (uint32_t)draw(seed, 22, UINT64_C(1) << g.s.ndim);
    g.attr.index[0] = shift;
    run(&g, k_flip, flipped);
    run(&g, k_roll, rolled);
    for (int64_t i = 0; i < g.x->n; i++) {
        index_of(g.s, i, g.index);
        assert_element(rolled, i, element(&g, ((g.index[g.d] - shift) % g.n + g.n) % g.n), 0);
        index_of(g.s, i, g.index);
        for (int d = 0; d < g.s.ndim; d++) {
            g.index[d] = g.attr.dims >> d & 1U ? g.s.dim[d] - 1 - g.index[d] : g.index[d];
        }
        assert_element(flipped, i, get(g.x, index_at(g.s, g.index)), 0);
    }
    tensors_unref(3, g.x, flipped, rolled);
}
END_TEST

START_TEST(narrow_and_pad_undo_each_other)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    mesh_shape wide = g.s;
    int64_t before = (int64_t)draw(seed, 23, 4), after = (int64_t)draw(seed, 24, 4);
    double value = (double)draw(seed, 25, 3);
    wide.dim[g.d] += before + after;
    struct mesh_tensor *padded = test_tensor_empty(wide, g.x->dtype), *back = test_tensor_empty(g.s, g.x->dtype);
    g.attr.index[0] = before;
    g.attr.index[1] = after;
    g.attr.value[0] = value;
    run(&g, k_pad, padded);
    for (int64_t i = 0; i < padded->n; i++) {
        index_of(wide, i, g.index);
        int64_t at = g.index[g.d] - before;
        assert_element(padded, i, at >= 0 && at < g.n ? element(&g, at) : value, 0);
    }
    g.attr.index[1] = g.n;
    run_kernel(k_narrow, &(struct kernel_call){ .in = { padded }, .out = { back }, .attr = &g.attr });
    for (int64_t i = 0; i < back->n; i++) {
        assert_element(back, i, get(g.x, i), 0);
    }
    tensors_unref(3, g.x, padded, back);
}
END_TEST

/* A rank's part of the dim begins at an offset; what it has not is 0. */
START_TEST(selections_from_a_part)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    mesh_shape so = { .ndim = 0 };
    int64_t offset = (int64_t)draw(seed, 26, 5);
    for (int d = 0; d < g.s.ndim; d++) {
        if (d != g.d) {
            so.dim[so.ndim++] = g.s.dim[d];
        }
    }
    struct mesh_tensor *out = test_tensor_empty(so, g.x->dtype);
    g.attr.index[0] = (int64_t)draw(seed, 27, (uint64_t)(g.n + 5));
    struct kernel_call call = { .in = { g.x }, .out = { out }, .attr = &g.attr };
    call.offset[g.d] = offset;
    run_kernel(k_select, &call);
    int64_t at = g.attr.index[0] - offset;
    for (int64_t i = 0; i < out->n; i++) {
        int64_t rest[MESH_MAX_NDIM];
        index_of(so, i, rest);
        for (int d = 0, k = 0; d < g.s.ndim; d++) {
            g.index[d] = d == g.d ? 0 : rest[k++];
        }
        assert_element(out, i, at >= 0 && at < g.n ? element(&g, at) : 0, 0);
    }
    tensors_unref(2, g.x, out);
}
END_TEST

START_TEST(repeats_and_their_adjoint)
{
    uint64_t seed = (uint64_t)_i;
    mesh_shape s = draw_shape(seed, 0), to = { .ndim = s.ndim + (int)draw(seed, 28, 3) };
    mesh_dtype t = draw_dtype(seed);
    int lead = to.ndim - s.ndim;
    for (int d = 0; d < to.ndim; d++) {
        to.dim[d] = (d < lead ? 1 : s.dim[d - lead]) * (1 + (int64_t)draw(seed, 50 + (uint64_t)d, 3));
    }
    struct mesh_tensor *x = test_tensor(s, t, seed), *out = test_tensor_empty(to, t), *back = test_tensor_empty(s, t),
                       *want = tensor_new_zeroed(s, MESH_F64);
    run_kernel(k_repeat, &(struct kernel_call){ .in = { x }, .out = { out } });
    for (int64_t i = 0; i < out->n; i++) {
        int64_t index[MESH_MAX_NDIM];
        index_of(to, i, index);
        for (int d = 0; d < s.ndim; d++) {
            index[d] = index[d + lead] % s.dim[d];
        }
        int64_t at = index_at(s, index);
        assert_element(out, i, get(x, at), 0);
        set(want, at, get(want, at) + get(out, i));
    }
    if (t == MESH_F32 || t == MESH_F64 || t == MESH_I64) { /* the sums of others may wrap */
        run_kernel(k_repeat_backward, &(struct kernel_call){ .in = { out }, .out = { back } });
        assert_values(back, 0, want->data);
    }
    tensors_unref(4, x, out, back, want);
}
END_TEST

/* Numbers of places of the whole dim, some counted from its end. */
static struct mesh_tensor *draw_index(uint64_t seed, mesh_shape s, int64_t extent)
{
    struct mesh_tensor *index = test_tensor_empty(s, draw(seed, 98, 2) ? MESH_I64 : MESH_I32);
    for (int64_t i = 0; i < index->n; i++) {
        set(index, i, (double)draw(seed, 200 + (uint64_t)i, (uint64_t)(2 * extent)) - (double)extent);
    }
    return index;
}

/* The part [offset, offset + n) of a dim of `extent` places, n of which x holds. */
static int64_t place(const struct mesh_tensor *index, int64_t i, int64_t extent, int64_t offset)
{
    int64_t at = (int64_t)get(index, i);
    return (at < 0 ? at + extent : at) - offset;
}

START_TEST(slices_taken_and_added_back)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    int64_t offset = (int64_t)draw(seed, 29, 4), extent = g.n + offset + (int64_t)draw(seed, 30, 4);
    mesh_shape so = g.s;
    so.dim[g.d] = extent == 0 ? 0 : (int64_t)draw(seed, 31, 9);
    struct mesh_tensor *index = draw_index(seed, MESH_SHAPE(so.dim[g.d]), extent),
                       *y = test_tensor_empty(so, g.x->dtype), *back = test_tensor_empty(g.s, MESH_F64),
                       *dy = test_tensor(so, MESH_F64, seed + 1), *want = tensor_new_zeroed(g.s, MESH_F64);
    g.attr.index[0] = extent;
    g.attr.mode = INDEX_FROM_END;
    struct kernel_call call = { .in = { g.x, index }, .out = { y }, .attr = &g.attr };
    call.offset[g.d] = offset;
    run_kernel(k_take, &call);
    for (int64_t i = 0; i < y->n; i++) {
        index_of(so, i, g.index);
        int64_t at = place(index, g.index[g.d], extent, offset);
        bool is_here = at >= 0 && at < g.n;
        assert_element(y, i, is_here ? element(&g, at) : 0, 0);
        if (is_here) {
            int64_t to = index_at(g.s, g.index);
            set(want, to, get(want, to) + get(dy, i));
        }
    }
    call = (struct kernel_call){ .in = { g.x, dy, index }, .out = { back }, .attr = &g.attr };
    call.offset[g.d] = offset;
    run_kernel(k_take_backward, &call);
    assert_values(back, 0, want->data);
    tensors_unref(6, g.x, index, y, back, dy, want);
}
END_TEST

START_TEST(elements_gathered_and_scattered)
{
    uint64_t seed = (uint64_t)_i;
    struct setting g = setting_of(seed);
    int64_t offset = (int64_t)draw(seed, 29, 4), extent = g.n + offset + (int64_t)draw(seed, 30, 4);
    mesh_shape so = g.s;
    for (int d = 0; d < so.ndim; d++) { /* no longer than x but along the dim */
        so.dim[d] = (int64_t)draw(seed, 60 + (uint64_t)d, (uint64_t)g.s.dim[d] + 1);
    }
    so.dim[g.d] = extent == 0 ? 0 : (int64_t)draw(seed, 31, 9);
    struct mesh_tensor *index = draw_index(seed, so, extent), *y = test_tensor_empty(so, g.x->dtype),
                       *x = test_tensor(g.s, MESH_F64, seed), *src = test_tensor(so, MESH_F64, seed + 1),
                       *sum = test_tensor_empty(g.s, MESH_F64), *want = test_tensor(g.s, MESH_F64, seed);
    g.attr.index[0] = extent;
    g.attr.mode = INDEX_FROM_END;
    struct kernel_call call = { .in = { g.x, index }, .out = { y }, .attr = &g.attr };
    call.offset[g.d] = offset;
    run_kernel(k_gather, &call);
    for (int64_t i = 0; i < y->n; i++) {
        index_of(so, i, g.index);
        int64_t at = place(index, i, extent, offset);
        bool is_here = at >= 0 && at < g.n;
        assert_element(y, i, is_here ? element(&g, at) : 0, 0);
        if (is_here) {
            int64_t to = index_at(g.s, g.index);
            set(want, to, get(want, to) + get(src, i));
        }
    }
    call = (struct kernel_call){ .in = { x, index, src }, .out = { sum }, .attr = &g.attr };
    call.offset[g.d] = offset;
    run_kernel(k_scatter_add, &call);
    assert_values(sum, 0, want->data);
    tensors_unref(7, g.x, index, y, x, src, sum, want);
}
END_TEST

START_TEST(numbers_out_of_range_are_named)
{
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(3, 2), MESH_F32, 1),
                       *y = test_tensor_empty(MESH_SHAPE(2, 2), MESH_F32),
                       *index = test_tensor_of(MESH_SHAPE(2), MESH_I64, (const double[]){ 1, -4 });
    struct op_attr attr = { .index = { 3 }, .mode = INDEX_FROM_END };
    struct kernel_call call = { .in = { x, index }, .out = { y }, .attr = &attr };
    ck_assert_int_eq(k_take(&call), MESH_EINVAL);
    ck_assert_msg(strstr(mesh_last_error()->message, "index -4 (number 1 of this rank's part") != NULL, "%s",
                  mesh_last_error()->message);
    call.whole[1] = call.in[1];
    ck_assert_int_eq(k_take(&call), MESH_EINVAL);
    ck_assert_msg(strstr(mesh_last_error()->message, "is outside [-3, 3)") != NULL, "%s", mesh_last_error()->message);
    tensors_unref(3, x, y, index);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("moving kernels");
    TCase *t = tcase_create("random shapes");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, permutations, 0, N_SEEDS);
    tcase_add_loop_test(t, flips_and_rolls, 0, N_SEEDS);
    tcase_add_loop_test(t, narrow_and_pad_undo_each_other, 0, N_SEEDS);
    tcase_add_loop_test(t, selections_from_a_part, 0, N_SEEDS);
    tcase_add_loop_test(t, repeats_and_their_adjoint, 0, N_SEEDS);
    tcase_add_loop_test(t, slices_taken_and_added_back, 0, N_SEEDS);
    tcase_add_loop_test(t, elements_gathered_and_scattered, 0, N_SEEDS);
    tcase_add_test(t, numbers_out_of_range_are_named);
    suite_add_tcase(s, t);
    return s;
}
