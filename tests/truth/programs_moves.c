/* tests/truth/programs_moves.c - random programs: one row per operator, with arguments that are legal: moves, products, indices, layouts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "truth/programs.h"

static mesh_shape append(mesh_shape s, int64_t extent)
{
    s.dim[s.ndim++] = extent;
    return s;
}

/* --- moves ---------------------------------------------------------------------------------------------------------- */

static mesh_shape another_shape(struct program *p, int64_t n)
{
    mesh_shape s = { .ndim = 1 + (int)below(p, 4) };
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = 1;
    }
    for (int f = 2; n > 1; f++) {
        for (; n % f == 0; n /= f) {
            s.dim[below(p, s.ndim)] *= f;
        }
    }
    return s;
}

OP(reshape)
{
    int64_t n = count_of(mesh_shape_of(a));
    mesh_shape s = n == 0 ? MESH_SHAPE(0, 3) : another_shape(p, n);
    if (n > 0 && chance(p, 30)) {
        s.dim[below(p, s.ndim)] = -1;
    }
    return mesh_reshape(a, s);
}

/* Leading dims as one, or one as several: what layers do to tokens. */
OP(flatten)
{
    mesh_shape s = mesh_shape_of(a), t = { .ndim = 1, .dim = { 1 } };
    int n = 1 + (int)below(p, s.ndim);
    for (int i = 0; i < s.ndim; i++) {
        if (i < n) {
            t.dim[0] *= s.dim[i];
        } else {
            t.dim[t.ndim++] = s.dim[i];
        }
    }
    return mesh_reshape(a, t);
}

OP(permute)
{
    mesh_shape s = mesh_shape_of(a), order = { .ndim = s.ndim };
    for (int i = 0; i < s.ndim; i++) {
        int k = (int)below(p, i + 1);
        order.dim[i] = order.dim[k];
        order.dim[k] = i;
    }
    return mesh_permute(a, order);
}

// clang-format off
OP(transpose) { int d = any_dim(p, a); return mesh_transpose(a, d, any_dim(p, a)); }
OP(unsqueeze) { return mesh_unsqueeze(a, (int)below(p, mesh_shape_of(a).ndim + 1)); }
OP(squeeze)   { return mesh_squeeze(a, any_dim(p, a)); }
OP(roll)      { int d = any_dim(p, a); return mesh_roll(a, below(p, 15) - 7, d); }
// clang-format on

OP(expand)
{
    mesh_shape s = mesh_shape_of(a), t = { .ndim = s.ndim + 1, .dim = { 1 + below(p, 3) } };
    for (int i = 0; i < s.ndim; i++) {
        t.dim[i + 1] = s.dim[i] == 1 ? 1 + below(p, 4) : chance(p, 30) ? -1 : s.dim[i];
    }
    return mesh_expand(a, t);
}

OP(flip)
{
    mesh_reduce_options o = some_dims(p, a);
    return mesh_flip(a, o.dims);
}

OP(narrow)
{
    int d = any_dim(p, a);
    int64_t n = dim_of(a, d), length = below(p, n + 1), start = below(p, n - length + 1);
    return mesh_narrow(a, d, chance(p, 30) && start > 0 ? start - n : start, length);
}

OP(select)
{
    int d = any_dim(p, a);
    int64_t n = dim_of(a, d);
    return n == 0 ? NULL : mesh_select(a, d, below(p, 2 * n) - n);
}

OP(pad)
{
    mesh_shape pad = { .ndim = 2 * (1 + (int)below(p, mesh_shape_of(a).ndim > 3 ? 3 : mesh_shape_of(a).ndim)) };
    for (int i = 0; i < pad.ndim; i++) {
        pad.dim[i] = below(p, 4);
    }
    return mesh_pad(a, pad, (double)below(p, 2));
}

OP(repeat)
{
    mesh_shape s = { .ndim = mesh_shape_of(a).ndim + (int)below(p, 2) };
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = 1 + below(p, 3);
    }
    return mesh_repeat(a, s);
}

OP(cat)
{
    int d = any_dim(p, a), n = 1 + (int)below(p, 3), at = (int)below(p, n);
    mesh_dtensor *all[4] = { a, a, a, a };
    for (int i = 0; i < n; i++) {
        all[i] = i == at ? a : shaped(p, a, with(mesh_shape_of(a), d, chance(p, 50) ? dim_of(a, d) : below(p, 6)));
    }
    return mesh_cat(all, n, d);
}

OP(stack)
{
    mesh_dtensor *b = shaped(p, a, mesh_shape_of(a));
    return mesh_stack((mesh_dtensor *[]){ a, b, a }, 1 + (int)below(p, 3), (int)below(p, mesh_shape_of(a).ndim + 1));
}

OP(split)
{
    mesh_dtensor *piece[64] = { NULL };
    int d = any_dim(p, a), n = mesh_split(a, 1 + below(p, 5), d, piece, 64);
    int one = (int)below(p, n), other = (int)below(p, n);
    return n <= 0 ? NULL : chance(p, 50) ? piece[one] : mesh_cat((mesh_dtensor *[]){ piece[one], piece[other] }, 2, d);
}

/* --- products ------------------------------------------------------------------------------------------------------- */

OP(matmul)
{
    mesh_shape s = mesh_shape_of(a);
    int64_t k = s.dim[s.ndim - 1], n = 1 + below(p, 6);
    int form = (int)below(p, 4);
    if (form == 0) {
        return mesh_matmul(a, shaped(p, a, MESH_SHAPE(k)));
    }
    if (form == 1 || s.ndim < 3) {
        return mesh_matmul(a, shaped(p, a, MESH_SHAPE(k, n)));
    }
    mesh_shape t = s;
    t.dim[s.ndim - 2] = k;
    t.dim[s.ndim - 1] = n;
    if (form == 2) {
        t.dim[below(p, s.ndim - 2)] = 1;
    }
    return mesh_matmul(a, shaped(p, a, t));
}

OP(matmul_right)
{
    mesh_shape s = mesh_shape_of(a);
    int64_t k = s.dim[s.ndim - 2];
    return mesh_matmul(shaped(p, a, chance(p, 30) ? MESH_SHAPE(k) : MESH_SHAPE(1 + below(p, 6), k)), a);
}

OP(linear)
{
    int64_t out = 1 + below(p, 8);
    mesh_dtensor *w = shaped(p, a, MESH_SHAPE(out, dim_of(a, -1)));
    return mesh_linear(a, w, chance(p, 60) ? shaped(p, a, MESH_SHAPE(out)) : NULL);
}

OP(addmm)
{
    if (mesh_shape_of(a).ndim != 2) {
        return NULL;
    }
    int64_t m = dim_of(a, 0), n = 1 + below(p, 6);
    mesh_dtensor *b = shaped(p, a, MESH_SHAPE(dim_of(a, 1), n));
    return mesh_addmm(shaped(p, a, chance(p, 50) ? MESH_SHAPE(n) : MESH_SHAPE(m, n)), a, b);
}

OP(einsum)
{
    mesh_shape s = mesh_shape_of(a), t = { 0 };
    char text[32], *w = text, letters[10];
    int n = 0;
    for (int i = 0; i < s.ndim; i++) {
        *w++ = letters[n++] = (char)('a' + i);
    }
    *w++ = ',';
    for (int i = 0; i < s.ndim; i++) {
        if (chance(p, 60)) {
            *w++ = letters[i];
            t = append(t, s.dim[i]);
        }
    }
    if (chance(p, 50)) {
        *w++ = letters[n++] = 'z';
        t = append(t, 1 + below(p, 5));
    }
    *w++ = '-';
    *w++ = '>';
    for (int i = 0; i < n; i++) {
        int k = (int)below(p, i + 1);
        char c = letters[i];
        letters[i] = letters[k];
        letters[k] = c;
    }
    for (int i = 0; i < n; i++) {
        *w = letters[i];
        w += chance(p, 60);
    }
    *w = 0;
    return mesh_einsum(text, a, shaped(p, a, t));
}

OP(conv2d)
{
    while (a != NULL && mesh_shape_of(a).ndim < 4) {
        a = mesh_unsqueeze(a, (int)below(p, 2) * mesh_shape_of(a).ndim);
    }
    if (a == NULL || mesh_shape_of(a).ndim != 4 || count_of(mesh_shape_of(a)) == 0) {
        return NULL;
    }
    int64_t c = dim_of(a, 1), groups = 1 + below(p, c);
    groups = c % groups == 0 ? groups : chance(p, 50) ? c : 1;
    int64_t o = groups * (1 + below(p, 3));
    int kh = 1 + (int)below(p, 3), kw = 1 + (int)below(p, 3), sh = 1 + (int)below(p, 2), sw = 1 + (int)below(p, 3);
    mesh_dtensor *w = shaped(p, a, MESH_SHAPE(o, c / groups, kh, kw));
    mesh_dtensor *bias = chance(p, 50) ? shaped(p, a, MESH_SHAPE(o)) : NULL;
    int d = 1 + (int)below(p, 2);
    return mesh_conv2d_opt(a, w, bias,
                           &(mesh_conv2d_options){ .size = sizeof(mesh_conv2d_options),
                                                   .stride = { sh, sw },
                                                   .padding = { d * (kh - 1), (int)below(p, 3) + d * (kw - 1) / 2 },
                                                   .dilation = { d, d },
                                                   .groups = (int)groups });
}

OP(attention)
{
    while (a != NULL && mesh_shape_of(a).ndim < 3) {
        a = mesh_unsqueeze(a, 0);
    }
    if (a == NULL || count_of(mesh_shape_of(a)) == 0) {
        return NULL;
    }
    mesh_shape k = mesh_shape_of(a);
    int h = k.ndim - 3;
    int64_t heads = 1 + below(p, k.dim[h]);
    k.dim[h] = k.dim[h] % heads == 0 && chance(p, 70) ? heads : k.dim[h];
    k.dim[k.ndim - 2] = 1 + below(p, 7);
    mesh_shape v = with(k, -1, 1 + below(p, 4));
    mesh_dtensor *keys = shaped(p, a, k), *values = shaped(p, a, v);
    return mesh_scaled_dot_product_attention(a, keys, values, .is_causal = chance(p, 50), .first = below(p, 3),
                                             .scale = chance(p, 50) ? 0.5 : 0);
}

/* --- by index ------------------------------------------------------------------------------------------------------- */

OP(index_select)
{
    int d = any_dim(p, a);
    int64_t n = dim_of(a, d);
    return n == 0 ? NULL : mesh_index_select(a, whole(p, on(a), MESH_SHAPE(below(p, 9)), -n, n), d);
}

OP(embedding)
{
    if (mesh_shape_of(a).ndim != 2 || dim_of(a, 0) == 0) {
        return NULL;
    }
    return mesh_embedding(a, whole(p, on(a), any_shape(p, 2), 0, dim_of(a, 0)));
}

/* Any extent along d, and no longer than a elsewhere. */
static mesh_shape index_shape(struct program *p, mesh_dtensor *a, int d)
{
    mesh_shape s = with(mesh_shape_of(a), d, 1 + below(p, 6));
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] -= s.dim[i] > 0 && i != (d < 0 ? d + s.ndim : d) && chance(p, 20);
    }
    return s;
}

OP(take)
{
    int d = any_dim(p, a);
    int64_t n = dim_of(a, d);
    mesh_shape s = index_shape(p, a, d);
    return n == 0 ? NULL : mesh_take_along_dim(a, whole(p, on(a), s, -n, n), d);
}

OP(scatter)
{
    int d = any_dim(p, a);
    int64_t n = dim_of(a, d);
    mesh_shape s = index_shape(p, a, d);
    return n == 0 ? NULL : mesh_scatter_add(a, whole(p, on(a), s, -n, n), shaped(p, a, s), d);
}

OP(one_hot)
{
    return mesh_one_hot(whole(p, on(a), any_shape(p, 3), 0, 5), 5);
}

/* --- layouts, borders, in place ------------------------------------------------------------------------------------- */

static mesh_placements layout(struct program *p, mesh_dtensor *a, bool pending)
{
    return any_layout(p, on(a), mesh_shape_of(a), mesh_dtype_of(a), pending);
}

// clang-format off
OP(redistribute) { return mesh_redistribute(a, layout(p, a, true)); }
OP(async)        { return mesh_redistribute_async(a, layout(p, a, true)); }
OP(there_back)   { return mesh_redistribute(mesh_redistribute_async(a, layout(p, a, true)), layout(p, a, true)); }
// clang-format on

OP(elsewhere)
{
    mesh_device_mesh *m = p->mesh[below(p, p->n_meshes)];
    return mesh_redistribute_to(a, m, any_layout(p, m, mesh_shape_of(a), mesh_dtype_of(a), true));
}

OP(border)
{
    mesh_dtensor *b = mesh_detach(a);
    if (chance(p, 50)) {
        return mesh_from_local(part_or_whole(mesh_to_local(b), on(a), mesh_shape_of(a)), on(a), mesh_placements_of(b),
                               .shape = mesh_shape_of(a));
    }
    mesh_tensor *t = mesh_full_tensor(b);
    if (t != NULL && p->is_reference == false && mesh_get_coordinate(on(a)) == NULL) {
        t = mesh_tensor_new(mesh_shape_of(a), mesh_dtype_of(a));
    }
    return mesh_distribute_tensor(t, on(a), layout(p, a, true));
}

OP(in_place)
{
    int form = (int)below(p, 11);
    bool pending = form == 0 || form >= 9;
    bool was = mesh_grad_enable(false);
    mesh_dtensor *x = mesh_redistribute(mesh_mul_scalar(mesh_detach(a), 1), layout(p, a, false));
    mesh_dtensor *b = mesh_detach(shaped(p, a, mesh_shape_of(a))), *y = NULL;
    x = mesh_mul_scalar(x, 1);
    if (!pending) {
        b = mesh_redistribute(b, layout(p, b, false));
    }
    switch (form) {
    case 0:
        y = mesh_copy_(x, b);
        break;
    case 1:
        y = mesh_sub_(x, b);
        break;
    case 2:
        y = mesh_mul_(x, b);
        break;
    case 3:
        y = mesh_add_(x, b);
        break;
    case 4:
        y = mesh_add_scalar_(x, 2);
        break;
    case 5:
        y = mesh_mul_scalar_(x, -2);
        break;
    case 6:
        y = mesh_neg_(x);
        break;
    case 7:
        y = mesh_relu_(x);
        break;
    case 8:
        y = mesh_clamp_(x, -1, 1);
        break;
    default:
        x = mesh_mul_scalar(mesh_redistribute(x, layout(p, a, is_floating(mesh_dtype_of(a)))), 1);
        y = form == 9 ? mesh_fill_(x, 3) : mesh_copy_(x, b);
    }
    mesh_grad_enable(was);
    return y == NULL ? NULL : mesh_detach(y);
}

OP(random)
{
    mesh_shape s = any_shape(p, 4);
    return mesh_randn(s, on(a), any_layout(p, on(a), s, MESH_F64, true), .seed = 1 + (uint64_t)below(p, 1000),
                      .dtype = MESH_F64);
}

// clang-format off
const struct op moving_ops[] = {
    /* name            effect      flags                         dims */
    { "reshape",       MOVES,      0,                            0, .of = do_reshape },
    { "flatten",       MOVES,      0,                            1, .of = do_flatten },
    { "permute",       MOVES,      0,                            0, .of = do_permute },
    { "transpose",     MOVES,      0,                            1, .of = do_transpose },
    { "unsqueeze",     MOVES,      0,                            0, .of = do_unsqueeze },
    { "squeeze",       MOVES,      0,                            1, .of = do_squeeze },
    { "roll",          MOVES,      0,                            1, .of = do_roll },
    { "expand",        MOVES,      0,                            0, .of = do_expand },
    { "flip",          MOVES,      0,                            0, .of = do_flip },
    { "narrow",        MOVES,      0,                            1, .of = do_narrow },
    { "select",        MOVES,      0,                            1, .of = do_select },
    { "pad",           MOVES,      0,                            1, .of = do_pad },
    { "repeat",        MOVES,      0,                            0, .of = do_repeat },
    { "cat",           MOVES,      0,                            1, .of = do_cat },
    { "stack",         MOVES,      0,                            0, .of = do_stack },
    { "split",         MOVES,      0,                            1, .of = do_split },
    { "matmul",        PRODUCTS,   0,                            1, .of = do_matmul },
    { "matmul right",  PRODUCTS,   0,                            2, .of = do_matmul_right },
    { "linear",        PRODUCTS,   0,                            1, .of = do_linear },
    { "addmm",         PRODUCTS,   0,                            2, .of = do_addmm },
    { "einsum",        PRODUCTS,   0,                            1, .of = do_einsum },
    { "conv2d",        PRODUCTS,   FLOATS,                       1, .of = do_conv2d },
    { "attention",     ROUGH,      FLOATS,                       1, .of = do_attention },
    { "index_select",  MOVES,      0,                            1, .of = do_index_select },
    { "embedding",     MOVES,      0,                            2, .of = do_embedding },
    { "take",          MOVES,      0,                            1, .of = do_take },
    { "scatter_add",   SUMS,       0,                            1, .of = do_scatter },
    { "one_hot",       MOVES,      0,                            0, .of = do_one_hot },
    { "redistribute",  MOVES,      0,                            0, .of = do_redistribute },
    { "redistribute ", MOVES,      0,                            0, .of = do_redistribute },
    { "async",         MOVES,      0,                            0, .of = do_async },
    { "there and back",MOVES,      0,                            0, .of = do_there_back },
    { "elsewhere",     MOVES,      0,                            0, .of = do_elsewhere },
    { "border",        MOVES,      0,                            0, .of = do_border },
    { "in place",      MULTIPLIES, EXACT,                        0, .of = do_in_place },
    { "random",        ROUGH,      0,                            0, .of = do_random },
};
const int n_moving_ops = (int)ARRAY_SIZE(moving_ops);
// clang-format on
