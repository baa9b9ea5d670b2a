/* tests/truth/programs_ops.c - random programs: one row per operator, with arguments that are legal: functions, reductions, norms, losses.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/util.h"
#include "truth/programs.h"

/* --- pointwise ------------------------------------------------------------------------------------------------------ */

// clang-format off
OP(gelu)       { return mesh_gelu(a, chance(p, 50)); }
OP(sqrt)       { (void)p; return mesh_sqrt(positive(a)); }
OP(rsqrt)      { (void)p; return mesh_rsqrt(positive(a)); }
OP(log)        { (void)p; return mesh_log(positive(a)); }
OP(log1p)      { (void)p; return mesh_log1p(mesh_square(a)); }
OP(reciprocal) { (void)p; return mesh_reciprocal(positive(a)); }
OP(pow_scalar) { return mesh_pow_scalar(positive(a), (double)below(p, 7) * 0.5 - 1.5); }
OP(pow)        { return mesh_pow(positive(a), peer(p, a)); }
OP(div)        { return mesh_div(a, positive(peer(p, a))); }
OP(mul_scalar) { return mesh_mul_scalar(a, (double)(below(p, 9) - 4)); }
OP(add_scalar) { return mesh_add_scalar(a, (double)(below(p, 9) - 4)); }
OP(leaky_relu) { return mesh_leaky_relu(a, chance(p, 50) ? 0.25 : -0.5); }
OP(clamp)      { return mesh_clamp(a, chance(p, 80) ? -1 : -INFINITY, (double)below(p, 3)); }
OP(lerp)       { return mesh_lerp(a, peer(p, a), (double)below(p, 5) * 0.25); }
OP(where)      { return mesh_where(leaf(p, on(a), mesh_shape_of(a), MESH_BOOL), a, peer(p, a)); }
OP(where_b)    { return mesh_where(leaf(p, on(a), mesh_shape_of(a), MESH_BOOL), peer(p, a), a); }
OP(masked)     { return mesh_masked_fill(a, leaf(p, on(a), mesh_shape_of(a), MESH_BOOL), (double)below(p, 2)); }
OP(tril)       { return mesh_tril(a, below(p, 5) - 2); }
OP(triu)       { return mesh_triu(a, below(p, 5) - 2); }
OP(rsub)       { return mesh_sub(peer(p, a), a); }
OP(self_mul)   { (void)p; return mesh_mul(a, a); }
OP(self_add)   { (void)p; return mesh_add(a, a); }
OP(detach)     { (void)p; return mesh_detach(a); }
OP(dropout)    { return mesh_dropout(mesh_redistribute(a, any_layout(p, on(a), mesh_shape_of(a), 0, false)), 0.5, .seed = 1 + (uint64_t)below(p, 99)); }
// clang-format on

OP(cast)
{
    static const mesh_dtype plain[] = { MESH_F64, MESH_F64, MESH_F32, MESH_F32, MESH_I64 };
    static const mesh_dtype any[] = { MESH_F64, MESH_F32, MESH_F16, MESH_BF16, MESH_I64, MESH_I32, MESH_I8, MESH_BOOL };
    mesh_dtype t = p->wants_mixed ? any[below(p, ARRAY_SIZE(any))] : plain[below(p, ARRAY_SIZE(plain))];
    if (!is_floating(t) && p->tolerance > 0) {
        return NULL;
    }
    return mesh_cast(a, t);
}

/* --- reductions ----------------------------------------------------------------------------------------------------- */

#define REDUCTION(name)                                                                                                \
    OP(name)                                                                                                           \
    {                                                                                                                  \
        mesh_reduce_options o = some_dims(p, a);                                                                       \
        return mesh_##name##_opt(a, &o);                                                                               \
    }
REDUCTION(sum)
REDUCTION(mean)
REDUCTION(amax)
REDUCTION(amin)
REDUCTION(prod)
REDUCTION(all)
REDUCTION(any)
REDUCTION(logsumexp)

OP(argmax)
{
    mesh_reduce_options o = some_dims(p, a);
    return chance(p, 50) ? mesh_argmax_opt(a, &o) : mesh_argmin_opt(a, &o);
}

OP(var)
{
    mesh_reduce_options o = some_dims(p, a);
    return mesh_var_opt(a, chance(p, 70) ? 0 : 1, &o);
}

OP(std)
{
    mesh_reduce_options o = some_dims(p, a);
    return mesh_std_opt(mesh_detach(a), chance(p, 70) ? 0 : 1, &o);
}

OP(norm)
{
    static const double powers[] = { 2, 2, 1, 3, 0, INFINITY, -INFINITY };
    mesh_reduce_options o = some_dims(p, a);
    return mesh_norm_opt(a, powers[below(p, ARRAY_SIZE(powers))], &o);
}

OP(softmax)
{
    int d = any_dim(p, a);
    return chance(p, 50) ? mesh_softmax(a, d) : mesh_log_softmax(a, d);
}

OP(layer_norm)
{
    mesh_shape s = mesh_shape_of(a), t = { 0 };
    int n = 1 + (int)below(p, s.ndim);
    for (int i = s.ndim - n; i < s.ndim; i++) {
        t.dim[t.ndim++] = s.dim[i];
    }
    mesh_dtensor *w = chance(p, 60) ? shaped(p, a, t) : NULL;
    mesh_dtensor *b = chance(p, 60) ? shaped(p, a, t) : NULL;
    return chance(p, 50) ? mesh_layer_norm(a, n, w, b, 0.1) : mesh_rms_norm(a, n, w, 0.1);
}

OP(cross_entropy)
{
    mesh_shape s = mesh_shape_of(a), t = { 0 };
    int64_t classes = s.ndim == 1 ? s.dim[0] : s.dim[1];
    if (classes == 0) {
        return NULL;
    }
    for (int i = 0; i < s.ndim && s.ndim > 1; i++) {
        if (i != 1) {
            t.dim[t.ndim++] = s.dim[i];
        }
    }
    int64_t ignored = chance(p, 50) ? 0 : -100;
    mesh_dtensor *target = whole(p, on(a), t, 0, classes), *weight = NULL;
    if (chance(p, 40)) {
        weight = mesh_detach(positive(leaf(p, on(a), MESH_SHAPE(classes), mesh_dtype_of(a))));
    }
    mesh_reduction how = (mesh_reduction)below(p, 3);
    if (chance(p, 30)) {
        return mesh_nll_loss(a, target, .reduction = how, .ignore_index = &ignored, .weight = weight);
    }
    return mesh_cross_entropy(a, target, .reduction = how, .ignore_index = &ignored, .weight = weight,
                              .label_smoothing = chance(p, 30) ? 0.25 : 0);
}

OP(mse)
{
    mesh_dtensor *b = shaped(p, a, mesh_shape_of(a));
    return mesh_mse_loss(a, b, (mesh_reduction)below(p, 3));
}

// clang-format off
OP(cumsum) { return mesh_cumsum(a, any_dim(p, a)); }
// clang-format on

OP(sort)
{
    mesh_dtensor *values = NULL, *indices = NULL;
    int d = any_dim(p, a);
    if (chance(p, 50)) {
        mesh_sort(a, d, chance(p, 50), &values, &indices);
    } else {
        mesh_topk(a, below(p, dim_of(a, d) + 1), d, &values, &indices);
    }
    return chance(p, 60) ? values : indices;
}

// clang-format off
const struct op computing_ops[] = {
    /* name            effect      flags                         dims */
    { "tanh",          ROUGH,      FLOATS,                       0, .unary = mesh_tanh },
    { "sigmoid",       ROUGH,      FLOATS,                       0, .unary = mesh_sigmoid },
    { "silu",          ROUGH,      FLOATS,                       0, .unary = mesh_silu },
    { "softplus",      ROUGH,      FLOATS,                       0, .unary = mesh_softplus },
    { "erf",           ROUGH,      FLOATS,                       0, .unary = mesh_erf },
    { "sin",           ROUGH,      FLOATS,                       0, .unary = mesh_sin },
    { "cos",           ROUGH,      FLOATS,                       0, .unary = mesh_cos },
    { "exp",           ROUGH,      FLOATS,                       0, .unary = mesh_exp },
    { "expm1",         ROUGH,      FLOATS,                       0, .unary = mesh_expm1 },
    { "gelu",          ROUGH,      FLOATS,                       0, .of = do_gelu },
    { "sqrt",          ROUGH,      FLOATS,                       0, .of = do_sqrt },
    { "rsqrt",         ROUGH,      FLOATS,                       0, .of = do_rsqrt },
    { "log",           ROUGH,      FLOATS,                       0, .of = do_log },
    { "log1p",         ROUGH,      FLOATS,                       0, .of = do_log1p },
    { "reciprocal",    ROUGH,      FLOATS,                       0, .of = do_reciprocal },
    { "pow_scalar",    ROUGH,      FLOATS,                       0, .of = do_pow_scalar },
    { "pow",           ROUGH,      FLOATS,                       0, .of = do_pow },
    { "neg",           MOVES,      0,                            0, .unary = mesh_neg },
    { "abs",           MOVES,      EXACT,                        0, .unary = mesh_abs },
    { "sign",          MOVES,      EXACT,                        0, .unary = mesh_sign },
    { "ceil",          MOVES,      EXACT,                        0, .unary = mesh_ceil },
    { "floor",         MOVES,      EXACT,                        0, .unary = mesh_floor },
    { "round",         MOVES,      EXACT,                        0, .unary = mesh_round },
    { "relu",          MOVES,      EXACT | FLOATS,               0, .unary = mesh_relu },
    { "leaky_relu",    SUMS,       EXACT | FLOATS,               0, .of = do_leaky_relu },
    { "clamp",         MOVES,      EXACT,                        0, .of = do_clamp },
    { "square",        MULTIPLIES, 0,                            0, .unary = mesh_square },
    { "isnan",         MOVES,      FLOATS,                      0, .unary = mesh_isnan },
    { "logical_not",   MOVES,      EXACT,                        0, .unary = mesh_logical_not },
    { "bitwise_not",   MOVES,      WHOLE,                        0, .unary = mesh_bitwise_not },
    { "mul_scalar",    SUMS,       0,                            0, .of = do_mul_scalar },
    { "add_scalar",    ADDS,       0,                            0, .of = do_add_scalar },
    { "add",           ADDS,       0,                            0, .binary = mesh_add },
    { "sub",           ADDS,       0,                            0, .binary = mesh_sub },
    { "rsub",          ADDS,       0,                            0, .of = do_rsub },
    { "self_add",      ADDS,       0,                            0, .of = do_self_add },
    { "mul",           MULTIPLIES, 0,                            0, .binary = mesh_mul },
    { "self_mul",      MULTIPLIES, 0,                            0, .of = do_self_mul },
    { "div",           ROUGH,      FLOATS,                       0, .of = do_div },
    { "maximum",       MOVES,      EXACT,                        0, .binary = mesh_maximum },
    { "minimum",       MOVES,      EXACT,                        0, .binary = mesh_minimum },
    { "lerp",          ROUGH,      FLOATS,                       0, .of = do_lerp },
    { "where",         MOVES,      0,                            0, .of = do_where },
    { "where b",       MOVES,      0,                            0, .of = do_where_b },
    { "masked_fill",   MOVES,      0,                            0, .of = do_masked },
    { "eq",            MOVES,      EXACT,                        0, .binary = mesh_eq },
    { "ne",            MOVES,      EXACT,                        0, .binary = mesh_ne },
    { "lt",            MOVES,      EXACT,                        0, .binary = mesh_lt },
    { "le",            MOVES,      EXACT,                        0, .binary = mesh_le },
    { "gt",            MOVES,      EXACT,                        0, .binary = mesh_gt },
    { "ge",            MOVES,      EXACT,                        0, .binary = mesh_ge },
    { "logical_and",   MOVES,      EXACT,                        0, .binary = mesh_logical_and },
    { "logical_or",    MOVES,      EXACT,                        0, .binary = mesh_logical_or },
    { "bitwise_and",   MOVES,      WHOLE,                        0, .binary = mesh_bitwise_and },
    { "bitwise_or",    MOVES,      WHOLE,                        0, .binary = mesh_bitwise_or },
    { "bitwise_xor",   MOVES,      WHOLE,                        0, .binary = mesh_bitwise_xor },
    { "tril",          MOVES,      0,                            2, .of = do_tril },
    { "triu",          MOVES,      0,                            2, .of = do_triu },
    { "detach",        MOVES,      0,                            0, .of = do_detach },
    { "dropout",       ADDS,       FLOATS,                       0, .of = do_dropout },
    { "cast",          MOVES,      0,                            0, .of = do_cast },
    { "sum",           SUMS,       0,                            0, .of = do_sum },
    { "mean",          ROUGH,      FLOATS,                       0, .of = do_mean },
    { "amax",          MOVES,      EXACT,                        0, .of = do_amax },
    { "amin",          MOVES,      EXACT,                        0, .of = do_amin },
    { "prod",          ROUGH,      0,                            0, .of = do_prod },
    { "all",           MOVES,      EXACT,                        0, .of = do_all },
    { "any",           MOVES,      EXACT,                        0, .of = do_any },
    { "logsumexp",     ROUGH,      FLOATS,                       0, .of = do_logsumexp },
    { "argmax",        MOVES,      EXACT,                        0, .of = do_argmax },
    { "var",           ROUGH,      FLOATS,                       0, .of = do_var },
    { "std",           ROUGH,      FLOATS | EXACT,               0, .of = do_std },
    { "norm",          ROUGH,      FLOATS | EXACT,               0, .of = do_norm },
    { "softmax",       ROUGH,      FLOATS,                       1, .of = do_softmax },
    { "layer_norm",    ROUGH,      FLOATS,                       1, .of = do_layer_norm },
    { "cross_entropy", ROUGH,      FLOATS,                       1, .of = do_cross_entropy },
    { "mse",           ROUGH,      FLOATS,                       0, .of = do_mse },
    { "cumsum",        SUMS,       0,                            1, .of = do_cumsum },
    { "sort",          MOVES,      EXACT,                        1, .of = do_sort },
};
const int n_computing_ops = (int)ARRAY_SIZE(computing_ops);
// clang-format on
