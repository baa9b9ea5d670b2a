/* tests/truth/test_gradients.c - every operator's gradient against finite differences, on every mix of placements.
 *
 * For an operator y = f(x...) the loss is sum(y w) with fixed w.  The derivative by each element of each x is taken
 * once, on one rank, by central differences in f64; then every rank of many meshes computes the gradient by
 * mesh_backward() for many layouts of the inputs (pending values split unevenly, with sign changes), and compares.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "autograd/grads.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/shape.h"
#include "truth/share.h"

#define MAX_INPUTS   3
#define MAX_ELEMENTS 64
#define STEP         1e-5
#define TOLERANCE    2e-7 /* central differences in f64: h^2 f''' / 6 plus rounding of f over 2 h */

#define SHAPE(...)   MESH_SHAPE(__VA_ARGS__)
#define DIMS(...)                                                                                                      \
    {                                                                                                                  \
        .ndim = MESH_COUNT_(int64_t, __VA_ARGS__), .dim = { __VA_ARGS__ }                                              \
    } /* in a table */

typedef mesh_dtensor *(*function)(mesh_dtensor *const *x);

struct gradient_case {
    const char *name;
    function f;
    int n_in;
    mesh_shape shape[MAX_INPUTS];
};

#define BINARY(name)                                                                                                   \
    static mesh_dtensor *f_##name(mesh_dtensor *const *x)                                                              \
    {                                                                                                                  \
        return mesh_##name(x[0], x[1]);                                                                                \
    }
#define UNARY(name, ...)                                                                                               \
    static mesh_dtensor *f_##name(mesh_dtensor *const *x)                                                              \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(matmul)
UNARY(neg, mesh_neg(x[0]))
UNARY(mul_scalar, mesh_mul_scalar(x[0], -1.75))
UNARY(add_scalar, mesh_add_scalar(x[0], 0.5))
UNARY(relu, mesh_relu(x[0]))
UNARY(gelu, mesh_gelu(x[0], false))
UNARY(gelu_tanh, mesh_gelu(x[0], true))
UNARY(tanh, mesh_tanh(x[0]))
UNARY(linear, mesh_linear(x[0], x[1], x[2]))
UNARY(conv2d, mesh_conv2d(x[0], x[1], x[2], .stride = { 2, 1 }, .padding = { 1, 0 }))
UNARY(conv2d_groups, mesh_conv2d(x[0], x[1], x[2], .groups = 2, .dilation = { 1, 2 }, .padding = { 1, 1 }))
UNARY(conv2d_plain, mesh_conv2d(x[0], x[1], NULL))
UNARY(linear_no_bias, mesh_linear(x[0], x[1], NULL))
UNARY(transpose, mesh_transpose(x[0], 0, -1))
UNARY(reshape, mesh_reshape(x[0], SHAPE(2, -1)))
UNARY(reshape_flat, mesh_reshape(x[0], SHAPE(-1)))
UNARY(expand, mesh_expand(x[0], SHAPE(2, 3, 4)))
UNARY(sum, mesh_sum(x[0]))
UNARY(sum_0, mesh_sum(x[0], .dims = SHAPE(0)))
UNARY(sum_1_kept, mesh_sum(x[0], .dims = SHAPE(-1), .keepdim = true))
UNARY(mean, mesh_mean(x[0]))
UNARY(mean_0, mesh_mean(x[0], .dims = SHAPE(0)))
UNARY(mean_02, mesh_mean(x[0], .dims = SHAPE(0, 2)))
UNARY(softmax_0, mesh_softmax(x[0], 0))
UNARY(softmax_1, mesh_softmax(x[0], 1))
UNARY(log_softmax_0, mesh_log_softmax(x[0], 0))
UNARY(log_softmax_1, mesh_log_softmax(x[0], -1))
UNARY(twice, mesh_add(mesh_mul(x[0], x[0]), mesh_mul(mesh_tanh(x[0]), x[1])))
UNARY(chain, mesh_sum(mesh_gelu(mesh_linear(mesh_tanh(x[0]), x[1], x[2]), false), .dims = SHAPE(1)))

static mesh_placements everywhere(const mesh_device_mesh *m, mesh_placement p)
{
    mesh_placements all = { .n = mesh_mesh_ndim(m) };
    for (int d = 0; d < all.n; d++) {
        all.at[d] = p;
    }
    return all;
}

UNARY(to_shard, mesh_redistribute(x[0], everywhere(mesh_device_mesh_of(x[0]), mesh_shard(1))))
UNARY(to_whole, mesh_redistribute(x[0], everywhere(mesh_device_mesh_of(x[0]), mesh_replicate())))
UNARY(to_pending, mesh_redistribute(x[0], everywhere(mesh_device_mesh_of(x[0]), mesh_partial(MESH_SUM))))

/* The target of 5 rows, the class 7 to be ignored. */
static mesh_dtensor *target_of(const mesh_dtensor *logits, bool is_sharded)
{
    static const int64_t classes[5] = { 2, 0, 7, 3, 2 };
    mesh_device_mesh *m = mesh_device_mesh_of(logits);
    mesh_tensor *t = mesh_tensor_new(SHAPE(5), MESH_I64);
    memcpy(mesh_tensor_data(t), classes, sizeof classes);
    return mesh_distribute_same(t, m, everywhere(m, is_sharded ? mesh_shard(0) : mesh_replicate()));
}

static const int64_t ignored = 7;
UNARY(ce_mean, mesh_cross_entropy(x[0], target_of(x[0], true), .ignore_index = &ignored))
UNARY(ce_sum,
      mesh_cross_entropy(x[0], target_of(x[0], false), .ignore_index = &ignored, .reduction = MESH_REDUCTION_SUM))
UNARY(ce_rows,
      mesh_cross_entropy(x[0], target_of(x[0], false), .ignore_index = &ignored, .reduction = MESH_REDUCTION_NONE))
UNARY(ce_smooth, mesh_cross_entropy(x[0], target_of(x[0], false), .ignore_index = &ignored, .label_smoothing = 0.1))

/* Moving, joining, cutting. */
static mesh_dtensor *piece(mesh_dtensor *x, int64_t size, int dim, int i)
{
    mesh_dtensor *pieces[8];
    return mesh_split(x, size, dim, pieces, 8) > i ? mesh_mul(pieces[i], pieces[0]) : NULL;
}
static mesh_dtensor *f_cat_many(mesh_dtensor *const *x)
{
    mesh_dtensor *all[9];
    for (int i = 0; i < 9; i++) {
        all[i] = x[i % 3];
    }
    return mesh_cat(all, 9, 0);
}
UNARY(permute, mesh_permute(x[0], SHAPE(-1, 0, 1)))
UNARY(unsqueeze, mesh_unsqueeze(x[0], -2))
UNARY(squeeze, mesh_squeeze(x[0], 1))
UNARY(view, mesh_view(x[0], SHAPE(3, 1, 4)))
UNARY(flip, mesh_flip(x[0], SHAPE(0, -1)))
UNARY(roll, mesh_roll(x[0], 2, 1))
UNARY(cat_0, mesh_cat(x, 3, 0))
UNARY(cat_1, mesh_cat(x, 2, -1))
UNARY(stack_0, mesh_stack(x, 3, 0))
UNARY(stack_2, mesh_stack(x, 2, -1))
UNARY(split_0, piece(x[0], 2, 0, 1))
UNARY(split_1, piece(x[0], 2, 1, 1))
UNARY(narrow_small, mesh_narrow(x[0], 0, 1, 2))
UNARY(narrow_large, mesh_narrow(x[0], 0, -4, 3))
UNARY(narrow_all, mesh_narrow(x[0], 0, 0, 5))
UNARY(select_0, mesh_select(x[0], 0, -2))
UNARY(select_1, mesh_select(x[0], 1, 1))
UNARY(pad, mesh_pad(x[0], SHAPE(1, 0, 0, 2), 0.5))
UNARY(repeat, mesh_repeat(x[0], SHAPE(2, 1, 3)))

/* Indexing: the numbers are fixed, some of them twice. */
static mesh_dtensor *index_of(const mesh_dtensor *x, mesh_shape s, int64_t extent, bool is_sharded)
{
    mesh_device_mesh *m = mesh_device_mesh_of(x);
    mesh_tensor *t = mesh_tensor_new(s, MESH_I64);
    int64_t *at = mesh_tensor_data(t), n = s.dim[0] * (s.ndim > 1 ? s.dim[1] : 1);
    for (int64_t i = 0; i < n; i++) {
        at[i] = (3 * i + i / 3) % extent;
    }
    return mesh_distribute_same(t, m, everywhere(m, is_sharded ? mesh_shard(0) : mesh_replicate()));
}
UNARY(embedding, mesh_embedding(x[0], index_of(x[0], SHAPE(4), 5, false)))
UNARY(embedding_ids, mesh_embedding(x[0], index_of(x[0], SHAPE(3, 2), 5, true)))
UNARY(index_select, mesh_index_select(x[0], index_of(x[0], SHAPE(4), 3, false), -1))
UNARY(index_select_ids, mesh_index_select(x[0], index_of(x[0], SHAPE(7), 5, true), 0))
UNARY(take_along_0, mesh_take_along_dim(x[0], index_of(x[0], SHAPE(6, 3), 5, false), 0))
UNARY(take_along_1, mesh_take_along_dim(x[0], index_of(x[0], SHAPE(5, 2), 3, true), 1))
UNARY(scatter_add_0, mesh_scatter_add(x[0], index_of(x[0], SHAPE(4, 3), 5, true), x[1], 0))
UNARY(scatter_add_1, mesh_scatter_add(x[0], index_of(x[0], SHAPE(4, 3), 3, false), x[1], 1))

UNARY(bmm, mesh_bmm(x[0], x[1]))
UNARY(addmm, mesh_addmm(x[0], x[1], x[2]))
UNARY(attention, mesh_scaled_dot_product_attention(x[0], x[1], x[2], .scale = 0))
UNARY(attention_groups, mesh_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = true, .first = 1))
UNARY(attention_causal, mesh_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = true))

/* The values of a choice; the indices take no part. */
static mesh_dtensor *sorted(mesh_dtensor *x, int dim, bool descending)
{
    mesh_dtensor *values = NULL;
    mesh_sort(x, dim, descending, &values, NULL);
    return values;
}
static mesh_dtensor *top(mesh_dtensor *x, int64_t k, int dim)
{
    mesh_dtensor *values = NULL;
    mesh_topk(x, k, dim, &values, NULL);
    return values;
}

#define GRADIENT(name, n, expression, ...) UNARY(name, expression)
#include "truth/gradients_pointwise.def"
#include "truth/gradients_reduce.def"
#undef GRADIENT

/* clang-format off */
static const struct gradient_case cases[] = {
#define GRADIENT(name, n, expression, ...) { #name, f_##name, n, { __VA_ARGS__ } },
#include "truth/gradients_pointwise.def"
#include "truth/gradients_reduce.def"
#undef GRADIENT
    { "permute",              f_permute,        1, { DIMS(2, 3, 4) } },
    { "unsqueeze",            f_unsqueeze,      1, { DIMS(3, 4) } },
    { "squeeze",              f_squeeze,        1, { DIMS(3, 1, 4) } },
    { "view",                 f_view,           1, { DIMS(3, 4) } },
    { "flip",                 f_flip,           1, { DIMS(3, 2, 4) } },
    { "roll",                 f_roll,           1, { DIMS(3, 5) } },
    { "cat 0",                f_cat_0,          3, { DIMS(3, 4), DIMS(1, 4), DIMS(2, 4) } },
    { "cat 1",                f_cat_1,          2, { DIMS(3, 4), DIMS(3, 2) } },
    { "cat many",             f_cat_many,       3, { DIMS(2), DIMS(1), DIMS(3) } },
    { "stack 0",              f_stack_0,        3, { DIMS(3, 2), DIMS(3, 2), DIMS(3, 2) } },
    { "stack 2",              f_stack_2,        2, { DIMS(3, 4), DIMS(3, 4) } },
    { "split 0",              f_split_0,        1, { DIMS(4, 3) } },
    { "split 1",              f_split_1,        1, { DIMS(3, 4) } },
    { "narrow small",         f_narrow_small,   1, { DIMS(5, 3) } },
    { "narrow large",         f_narrow_large,   1, { DIMS(5, 3) } },
    { "narrow all",           f_narrow_all,     1, { DIMS(5, 3) } },
    { "select 0",             f_select_0,       1, { DIMS(5, 3) } },
    { "select 1",             f_select_1,       1, { DIMS(2, 3, 4) } },
    { "pad",                  f_pad,            1, { DIMS(3, 4) } },
    { "repeat",               f_repeat,         1, { DIMS(3, 2) } },
    { "embedding",            f_embedding,      1, { DIMS(5, 3) } },
    { "embedding ids",        f_embedding_ids,  1, { DIMS(5, 3) } },
    { "index_select",         f_index_select,   1, { DIMS(5, 3) } },
    { "index_select ids",     f_index_select_ids, 1, { DIMS(5, 3) } },
    { "take_along_dim 0",     f_take_along_0,   1, { DIMS(5, 3) } },
    { "take_along_dim 1",     f_take_along_1,   1, { DIMS(5, 3) } },
    { "scatter_add 0",        f_scatter_add_0,  2, { DIMS(5, 3), DIMS(4, 3) } },
    { "scatter_add 1",        f_scatter_add_1,  2, { DIMS(4, 3), DIMS(4, 3) } },
    { "bmm",                  f_bmm,            2, { DIMS(2, 3, 4), DIMS(2, 4, 5) } },
    { "addmm",                f_addmm,          3, { DIMS(5), DIMS(3, 4), DIMS(4, 5) } },
    { "attention",            f_attention,      3, { DIMS(2, 3, 2), DIMS(2, 4, 2), DIMS(2, 4, 3) } },
    { "attention of groups",  f_attention_groups, 3, { DIMS(2, 4, 2, 2), DIMS(2, 2, 3, 2), DIMS(2, 2, 3, 1) } },
    { "attention causal",     f_attention_causal, 3, { DIMS(2, 4, 2), DIMS(2, 4, 2), DIMS(2, 4, 3) } },
    { "add",                  f_add,            2, { DIMS(3, 4), DIMS(3, 4) } },
    { "add row",              f_add,            2, { DIMS(3, 4), DIMS(4) } },
    { "sub outer",            f_sub,            2, { DIMS(3, 1), DIMS(1, 4) } },
    { "mul",                  f_mul,            2, { DIMS(3, 4), DIMS(3, 4) } },
    { "mul column",           f_mul,            2, { DIMS(3, 4), DIMS(3, 1) } },
    { "div",                  f_div,            2, { DIMS(3, 4), DIMS(3, 4) } },
    { "div row",              f_div,            2, { DIMS(4), DIMS(3, 4) } },
    { "neg",                  f_neg,            1, { DIMS(3, 4) } },
    { "mul_scalar",           f_mul_scalar,     1, { DIMS(3, 4) } },
    { "add_scalar",           f_add_scalar,     1, { DIMS(3, 4) } },
    { "relu",                 f_relu,           1, { DIMS(3, 4) } },
    { "gelu",                 f_gelu,           1, { DIMS(3, 4) } },
    { "gelu tanh",            f_gelu_tanh,      1, { DIMS(3, 4) } },
    { "tanh",                 f_tanh,           1, { DIMS(3, 4) } },
    { "matmul",               f_matmul,         2, { DIMS(3, 4), DIMS(4, 5) } },
    { "matmul dot",           f_matmul,         2, { DIMS(5), DIMS(5) } },
    { "matmul vector",        f_matmul,         2, { DIMS(3, 4), DIMS(4) } },
    { "matmul row",           f_matmul,         2, { DIMS(4), DIMS(4, 5) } },
    { "matmul stack matrix",  f_matmul,         2, { DIMS(2, 3, 4), DIMS(4, 5) } },
    { "matmul stacks",        f_matmul,         2, { DIMS(2, 3, 4), DIMS(2, 4, 5) } },
    { "matmul matrix stack",  f_matmul,         2, { DIMS(3, 4), DIMS(2, 4, 5) } },
    { "matmul row stack",     f_matmul,         2, { DIMS(4), DIMS(2, 4, 5) } },
    { "linear",               f_linear,         3, { DIMS(3, 4), DIMS(5, 4), DIMS(5) } },
    { "linear stack",         f_linear,         3, { DIMS(2, 3, 4), DIMS(5, 4), DIMS(5) } },
    { "conv2d",               f_conv2d,         3, { DIMS(2, 2, 4, 3), DIMS(3, 2, 3, 2), DIMS(3) } },
    { "conv2d of groups",     f_conv2d_groups,  3, { DIMS(1, 4, 2, 3), DIMS(4, 2, 2, 2), DIMS(4) } },
    { "conv2d plain",         f_conv2d_plain,   2, { DIMS(3, 2, 2, 3), DIMS(2, 2, 2, 2) } },
    { "linear no bias",       f_linear_no_bias, 2, { DIMS(3, 4), DIMS(5, 4) } },
    { "transpose",            f_transpose,      1, { DIMS(2, 3, 4) } },
    { "reshape",              f_reshape,        1, { DIMS(4, 3) } },
    { "reshape flat",         f_reshape_flat,   1, { DIMS(4, 3) } },
    { "expand",               f_expand,         1, { DIMS(3, 1) } },
    { "sum",                  f_sum,            1, { DIMS(3, 4) } },
    { "sum 0",                f_sum_0,          1, { DIMS(3, 4) } },
    { "sum 1 kept",           f_sum_1_kept,     1, { DIMS(3, 4) } },
    { "mean",                 f_mean,           1, { DIMS(3, 4) } },
    { "mean 0",               f_mean_0,         1, { DIMS(3, 4) } },
    { "mean 0 2",             f_mean_02,        1, { DIMS(2, 3, 4) } },
    { "softmax 0",            f_softmax_0,      1, { DIMS(3, 5) } },
    { "softmax 1",            f_softmax_1,      1, { DIMS(3, 5) } },
    { "log_softmax 0",        f_log_softmax_0,  1, { DIMS(3, 5) } },
    { "log_softmax 1",        f_log_softmax_1,  1, { DIMS(3, 5) } },
    { "cross_entropy mean",   f_ce_mean,        1, { DIMS(5, 4) } },
    { "cross_entropy sum",    f_ce_sum,         1, { DIMS(5, 4) } },
    { "cross_entropy rows",   f_ce_rows,        1, { DIMS(5, 4) } },
    { "cross_entropy smooth", f_ce_smooth,      1, { DIMS(5, 4) } },
    { "to shard",             f_to_shard,       1, { DIMS(3, 5) } },
    { "to whole",             f_to_whole,       1, { DIMS(3, 5) } },
    { "to pending",           f_to_pending,     1, { DIMS(3, 5) } },
    { "used twice",           f_twice,          2, { DIMS(3, 4), DIMS(3, 4) } },
    { "chain",                f_chain,          3, { DIMS(3, 4), DIMS(5, 4), DIMS(5) } },
};
/* clang-format on */

struct values {
    double x[MAX_INPUTS][MAX_ELEMENTS];
    double slope[MAX_INPUTS][MAX_ELEMENTS];
};

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Away from 0, where relu has a kink and a divisor no inverse. */
static double value(uint64_t *state)
{
    double magnitude = 0.25 + (double)(draw(state) % 1000) / 800;
    return draw(state) % 2 == 0 ? magnitude : -magnitude;
}

static mesh_dtensor *whole(mesh_device_mesh *m, mesh_shape s, const double *x)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F64);
    if (t != NULL) {
        memcpy(mesh_tensor_data(t), x, (size_t)shape_numel(s) * sizeof *x);
    }
    return mesh_distribute_same(t, m, everywhere(m, mesh_replicate()));
}

static mesh_dtensor *loss_of(const struct gradient_case *c, mesh_device_mesh *m, mesh_dtensor *const *x)
{
    mesh_dtensor *y = c->f(x);
    if (y == NULL) {
        return NULL;
    }
    mesh_dtensor *w = mesh_randn(mesh_shape_of(y), m, everywhere(m, mesh_replicate()), .dtype = MESH_F64, .seed = 99);
    return mesh_sum(mesh_mul(y, w));
}

static double loss_at(const struct gradient_case *c, mesh_device_mesh *m, const struct values *v)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *x[MAX_INPUTS] = { NULL };
    for (int i = 0; i < c->n_in; i++) {
        x[i] = whole(m, c->shape[i], v->x[i]);
    }
    double loss = mesh_item(loss_of(c, m, x));
    return mesh_scope_end(scope) < 0 ? NAN : loss;
}

static int differentiate(const struct gradient_case *c, mesh_device_mesh *m, struct values *v)
{
    uint64_t state = 7;
    for (int i = 0; i < c->n_in; i++) {
        REQUIRE(shape_numel(c->shape[i]) <= MAX_ELEMENTS);
        for (int64_t e = 0; e < shape_numel(c->shape[i]); e++) {
            v->x[i][e] = value(&state);
        }
    }
    for (int i = 0; i < c->n_in; i++) {
        for (int64_t e = 0; e < shape_numel(c->shape[i]); e++) {
            double x = v->x[i][e];
            v->x[i][e] = x + STEP;
            double above = loss_at(c, m, v);
            v->x[i][e] = x - STEP;
            double below = loss_at(c, m, v);
            v->x[i][e] = x;
            v->slope[i][e] = (above - below) / (2 * STEP);
            REQUIRE(isfinite(v->slope[i][e]));
        }
    }
    return 0;
}

/* Adds to the parts of each pending sum what cancels over its mesh dim. */
static void make_uneven(mesh_dtensor *x, const mesh_device_mesh *m, mesh_placements p)
{
    mesh_tensor *local = mesh_to_local(x);
    mesh_group *line[MESH_MAX_MESH_NDIM];
    const int *coordinate = mesh_get_coordinate(m);
    if (local == NULL || mesh_get_all_groups(m, line) < 0) {
        return;
    }
    int64_t n = shape_numel(mesh_tensor_shape(local));
    double *part = mesh_tensor_data(local);
    for (int d = 0; d < p.n; d++) {
        double sign = coordinate[d] == 0 ? 1 - mesh_group_size(line[d]) : 1;
        for (int64_t i = 0; p.at[d].kind == MESH_IS_PARTIAL && i < n; i++) {
            part[i] += sign * (double)((5 * i + 3 * d + 1) % 7 - 3) / 4;
        }
    }
}

static mesh_dtensor *leaf(mesh_device_mesh *m, mesh_shape s, const double *x, mesh_placements p)
{
    mesh_dtensor *t = mesh_detach(mesh_redistribute(whole(m, s, x), p));
    if (t != NULL) {
        make_uneven(t, m, p);
    }
    return mesh_requires_grad(t, true);
}

static mesh_placements with_whole_for_partial(mesh_placements p)
{
    for (int d = 0; d < p.n; d++) {
        p.at[d] = p.at[d].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[d];
    }
    return p;
}

static int compare(const struct gradient_case *c, const struct values *v, int i, mesh_dtensor *x, mesh_placements p,
                   const char *layouts)
{
    mesh_dtensor *g = mesh_grad(x);
    REQUIRE(g != NULL);
    REQUIRE(mesh_placements_equal(mesh_placements_of(g), with_whole_for_partial(p)));
    mesh_tensor *full = mesh_full_tensor(g);
    REQUIRE(full != NULL);
    const double *got = mesh_tensor_data(full);
    for (int64_t e = 0; e < shape_numel(c->shape[i]); e++) {
        double want = v->slope[i][e];
        if (!(fabs(got[e] - want) <= TOLERANCE * (1 + fabs(want)))) {
            return ranks_complain(__FILE__, __LINE__, "%s with inputs %s: d x%d[%d] is %.9g, by differences %.9g",
                                  c->name, layouts, i, (int)e, got[e], want);
        }
    }
    return 0;
}

static int check_layout(const struct gradient_case *c, mesh_device_mesh *m, const struct values *v,
                        const mesh_placements *p)
{
    mesh_dtensor *x[MAX_INPUTS] = { NULL };
    char layouts[256] = "", one[64];
    mesh_scope *scope = mesh_scope_begin();
    for (int i = 0; i < c->n_in; i++) {
        x[i] = leaf(m, c->shape[i], v->x[i], p[i]);
        strcat(strcat(layouts, " "), mesh_placements_text(p[i], one, sizeof one));
    }
    mesh_backward(loss_of(c, m, x));
    if (mesh_scope_status(scope) < 0) {
        return ranks_complain(__FILE__, __LINE__, "%s with inputs %s: %s", c->name, layouts,
                              mesh_last_error()->message);
    }
    for (int i = 0; i < c->n_in; i++) {
        REQUIRE_OK(compare(c, v, i, x[i], p[i], layouts));
    }
    REQUIRE(mesh_scope_end(scope) == 0);
    return 0;
}

/* Placement number `choice` of N_CHOICES + ndim: whole, pending, shard 0, shard 1, ... */
#define N_CHOICES 3
static mesh_placement choose(int64_t choice)
{
    return choice == 0   ? mesh_replicate()
           : choice == 1 ? mesh_partial(MESH_SUM)
           : choice == 2 ? mesh_partial(MESH_AVG)
                         : mesh_shard((int)choice - N_CHOICES);
}

struct world {
    const char *name;
    int n_ranks;
    mesh_shape shape;
    const int *ranks; /* NULL: all of them in order */
    int64_t most;     /* combinations of layouts for each case */
};

/* clang-format off */
static const struct world worlds[] = {
    { "gradients on 1",              1, { 1, { 1 } },       NULL,                              30 },
    { "gradients on 2",              2, { 1, { 2 } },       NULL,                             400 },
    { "gradients on 3",              3, { 1, { 3 } },       NULL,                             400 },
    { "gradients on 4",              4, { 1, { 4 } },       NULL,                             400 },
    { "gradients on 5",              5, { 1, { 5 } },       NULL,                              40 },
    { "gradients on 6",              6, { 1, { 6 } },       NULL,                              40 },
    { "gradients on 7",              7, { 1, { 7 } },       NULL,                              40 },
    { "gradients on 8",              8, { 1, { 8 } },       NULL,                              40 },
    { "gradients on 2x2",            4, { 2, { 2, 2 } },    NULL,                              64 },
    { "gradients on 2x2 permuted",   4, { 2, { 2, 2 } },    (const int[]){ 3, 0, 2, 1 },       40 },
    { "gradients on 2x3",            6, { 2, { 2, 3 } },    NULL,                              40 },
    { "gradients on 4x2",            8, { 2, { 4, 2 } },    NULL,                              40 },
    { "gradients on 2x2x2",          8, { 3, { 2, 2, 2 } }, NULL,                              10 },
    { "gradients on 1x2x3 permuted", 6, { 3, { 1, 2, 3 } }, (const int[]){ 4, 1, 0, 5, 3, 2 }, 10 },
    { "gradients on 2x1x4",          8, { 3, { 2, 1, 4 } }, NULL,                              10 },
};
/* clang-format on */

static int check_case(const struct gradient_case *c, mesh_device_mesh *m, const struct values *v, const struct world *w)
{
    int64_t total = 1;
    int ndim = mesh_mesh_ndim(m);
    for (int k = 0; k < c->n_in * ndim; k++) {
        total *= c->shape[k / ndim].ndim + N_CHOICES;
    }
    struct share share = share_of(mesh_rank() == 0 ? w->name : NULL, total, w->most);
    for (int64_t rest; share_next(&share, &rest);) {
        mesh_placements p[MAX_INPUTS];
        for (int k = 0; k < c->n_in * ndim; k++) {
            int64_t n_choices = c->shape[k / ndim].ndim + N_CHOICES;
            p[k / ndim].n = ndim;
            p[k / ndim].at[k % ndim] = choose(rest % n_choices);
            rest /= n_choices;
        }
        REQUIRE_OK(check_layout(c, m, v, p));
    }
    return 0;
}

static struct values truth[ARRAY_SIZE(cases)];
static bool is_tried[N_OPS]; /* rows whose gradients some case's result goes through */
static bool has_truth;

static void mark_tried(const struct grad_node *node)
{
    for (int id = 0; node != NULL && id < N_OPS; id++) {
        is_tried[id] = is_tried[id] || gradient_of((enum op_id)id) == node->gradient;
    }
    for (int i = 0; node != NULL && i < OP_MAX_INPUTS; i++) {
        mark_tried(node->edge[i].node);
    }
}

static int find_truth(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), NULL);
    REQUIRE(m != NULL);
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        mesh_dtensor *x[MAX_INPUTS] = { NULL };
        REQUIRE_OK(differentiate(&cases[k], m, &truth[k]));
        for (int i = 0; i < cases[k].n_in; i++) {
            x[i] = mesh_requires_grad(whole(m, cases[k].shape[i], truth[k].x[i]), true);
        }
        mesh_dtensor *y = cases[k].f(x);
        REQUIRE(y != NULL);
        mark_tried(y->node);
    }
    has_truth = true;
    return 0;
}

static void need_truth(void)
{
    if (!has_truth) {
        ranks_run(1, find_truth, NULL);
    }
}

static int check_all_cases(void *arg)
{
    const struct world *w = arg;
    mesh_device_mesh *m = w->ranks == NULL ? mesh_init_device_mesh("cpu", w->shape, NULL)
                                           : mesh_new_device_mesh("cpu", w->shape, w->ranks, NULL);
    REQUIRE(m != NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        REQUIRE_OK(check_case(&cases[i], m, &truth[i], w));
    }
    return 0;
}

START_TEST(gradients_match_finite_differences)
{
    struct world w = worlds[_i];
    need_truth();
    ranks_run(w.n_ranks, check_all_cases, &w);
}
END_TEST

/* Rows without a gradient are named in OPERATORS.md.  What a cast rounds away, differences would see. */
START_TEST(every_row_with_a_gradient_is_tried)
{
    need_truth();
    for (int id = 0; id < N_OPS; id++) {
        bool has_none = gradient_of((enum op_id)id)->run == NULL;
        ck_assert_msg(has_none || is_tried[id] || id == OP_cast, "%s", op_table[id].name);
    }
}
END_TEST

/* The test must be able to fail: a derivative a millionth off. */
static int check_mistake(void *arg)
{
    struct values wrong = truth[0];
    struct world w = worlds[1];
    (void)arg;
    wrong.slope[0][1] *= 1 + 1e-6;
    w.name = "seeded mistake";
    return check_case(&cases[0], mesh_init_device_mesh("cpu", w.shape, NULL), &wrong, &w) < 0 ? -1 : 0;
}

START_TEST(a_wrong_gradient_is_caught)
{
    need_truth();
    ck_assert_int_lt(mesh_world_run(2, check_mistake, NULL), 0);
}
END_TEST

/* Each mesh is a case of its own: CK_RUN_CASE="gradients on 2x2" tries that alone. */
Suite *test_suite(void)
{
    Suite *s = suite_create("gradients");
    TCase *t = tcase_create("finite differences");
    share_one_process();
    tcase_set_timeout(t, 300);
    tcase_add_test(t, every_row_with_a_gradient_is_tried);
    tcase_add_test(t, a_wrong_gradient_is_caught);
    suite_add_tcase(s, t);
    for (int i = 0; i < (int)ARRAY_SIZE(worlds); i++) {
        TCase *one = tcase_create(worlds[i].name);
        tcase_set_timeout(one, 300);
        tcase_add_loop_test(one, gradients_match_finite_differences, i, i + 1);
        suite_add_tcase(s, one);
    }
    return s;
}
