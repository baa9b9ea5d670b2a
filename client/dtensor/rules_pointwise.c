/* client/dtensor/rules_pointwise.c - rules of elementwise operators beyond their index: which pending reductions pass.
 *
 * A neutral part of P(max) is -inf (P(min): +inf), which every rule here maps to a neutral part again; the extremes of
 * integers would wrap, so those rules are for floating types, but for relu.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include <math.h>

#include "base/dtype.h"
#include "base/util.h"

static void follow(mesh_reduce_op in, mesh_reduce_op out, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = mesh_partial(in);
    r.out[0] = mesh_partial(out);
    rule_add(inout, &r);
}

/* Two inputs, one of them pending, the other whole. */
static void one_pending(int i, mesh_reduce_op in, mesh_reduce_op out, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[i] = mesh_partial(in);
    r.out[0] = mesh_partial(out);
    rule_add(inout, &r);
}

/* avg(a_i) + b = avg(a_i + b); the same for max and min.  Not for sum: b would count once per rank. */
static void shift_rules(const struct op_shapes *s, bool is_sub, struct rule_list *inout)
{
    rules_from_index("*,*->*", s, inout);
    if (!rules_is_float(s)) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool flips = is_sub && i == 1;
        one_pending(i, MESH_AVG, MESH_AVG, inout);
        one_pending(i, MESH_MAX, flips ? MESH_MIN : MESH_MAX, inout);
        one_pending(i, MESH_MIN, flips ? MESH_MAX : MESH_MIN, inout);
    }
}

void rule_add_tensors(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    shift_rules(s, false, inout);
}

void rule_sub_tensors(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    shift_rules(s, true, inout);
}

void rule_negate(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    rules_from_index("*->*", s, inout);
    if (rules_is_float(s)) {
        follow(MESH_MAX, MESH_MIN, inout);
        follow(MESH_MIN, MESH_MAX, inout);
    }
}

/* x times a number: linear where the product is not rounded to an integer; the extremes follow its sign. */
void rule_scale(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    double v = s->attr.value[0];
    rules_from_index("*->*", s, inout);
    if (!isfinite(v) || !rules_is_float(s)) {
        return;
    }
    follow(MESH_SUM, MESH_SUM, inout);
    follow(MESH_AVG, MESH_AVG, inout);
    if (v > 0 || v < 0) {
        follow(MESH_MAX, v > 0 ? MESH_MAX : MESH_MIN, inout);
        follow(MESH_MIN, v > 0 ? MESH_MIN : MESH_MAX, inout);
    }
}

void rule_add_scalar(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    rules_from_index("*->*", s, inout);
    if (rules_is_float(s) && isfinite(s->attr.value[0])) {
        follow(MESH_AVG, MESH_AVG, inout);
        follow(MESH_MAX, MESH_MAX, inout);
        follow(MESH_MIN, MESH_MIN, inout);
    }
}

/* f rises: f(max x_i) = max f(x_i). */
void rule_monotone(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    rules_from_index("*->*", s, inout);
    follow(MESH_MAX, MESH_MAX, inout);
    follow(MESH_MIN, MESH_MIN, inout);
}

/* The two below rise only for some arguments; 0 times -inf is none of them. */
void rule_leaky(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    double slope = s->attr.value[0];
    (slope > 0 && isfinite(slope) ? rule_monotone : rule_pointwise)(s, parts, inout);
}

void rule_power(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    double exponent = s->attr.value[0];
    bool is_odd = exponent > 0 && fabs(remainder(exponent, 2)) >= 1;
    (is_odd && rules_is_float(s) ? rule_monotone : rule_pointwise)(s, parts, inout);
}

void rule_pointwise(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    rules_from_index("*->*", s, inout);
}

static void both_pending(int a, int b, mesh_reduce_op op, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[a] = r.in[b] = r.out[0] = mesh_partial(op);
    rule_add(inout, &r);
}

/* max(max a_i, max b_i) = max max(a_i, b_i), and max(min a_i, b) = min max(a_i, b); not with both pending min. */
static void extreme_rules(const struct op_shapes *s, mesh_reduce_op own, struct rule_list *inout)
{
    rules_from_index("*,*->*", s, inout);
    both_pending(0, 1, own, inout);
    for (int i = 0; i < 2; i++) {
        one_pending(i, MESH_MAX, MESH_MAX, inout);
        one_pending(i, MESH_MIN, MESH_MIN, inout);
    }
}

void rule_maximum(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    extreme_rules(s, MESH_MAX, inout);
}

void rule_minimum(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    extreme_rules(s, MESH_MIN, inout);
}

/* and, or: also one pending beside a whole one, which may count on every rank.  Not xor. */
static void bit_rules(const struct op_shapes *s, mesh_reduce_op op, struct rule_list *inout)
{
    rules_from_index("*,*->*", s, inout);
    if (dtype_kind(s->in_dtype[0]) != DTYPE_INT) {
        return;
    }
    both_pending(0, 1, op, inout);
    for (int i = 0; i < 2 && op != MESH_BXOR; i++) {
        one_pending(i, op, op, inout);
    }
}

void rule_bitwise_and(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    bit_rules(s, MESH_BAND, inout);
}

void rule_bitwise_or(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    bit_rules(s, MESH_BOR, inout);
}

void rule_bitwise_xor(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    bit_rules(s, MESH_BXOR, inout);
}

/* Each element is one of a and b on all ranks alike, so any reduction of both passes; one that leaves equal parts as
 * they are (not the sum) also with the other whole. */
void rule_where(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const mesh_reduce_op keeps_equal[] = { MESH_MAX, MESH_MIN, MESH_AVG };
    (void)parts;
    rules_from_index("*,*,*->*", s, inout);
    if (dtype_kind(s->out_dtype[0]) == DTYPE_BOOL) {
        return;
    }
    both_pending(1, 2, MESH_SUM, inout);
    for (size_t k = 0; k < ARRAY_SIZE(keeps_equal); k++) {
        if (keeps_equal[k] != MESH_AVG || dtype_kind(s->out_dtype[0]) == DTYPE_FLOAT) {
            both_pending(1, 2, keeps_equal[k], inout);
            one_pending(1, keeps_equal[k], keeps_equal[k], inout);
            one_pending(2, keeps_equal[k], keeps_equal[k], inout);
        }
    }
}

void rule_masked_fill(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    double v = s->attr.value[0];
    (void)parts;
    rules_from_index("*,*->*", s, inout);
    if (dtype_kind(s->out_dtype[0]) == DTYPE_BOOL) {
        return;
    }
    one_pending(0, MESH_MAX, MESH_MAX, inout);
    one_pending(0, MESH_MIN, MESH_MIN, inout);
    if (dtype_kind(s->out_dtype[0]) == DTYPE_FLOAT) {
        one_pending(0, MESH_AVG, MESH_AVG, inout);
    }
    if (!(v < 0) && !(v > 0) && !isnan(v)) {
        one_pending(0, MESH_SUM, MESH_SUM, inout);
    }
}

/* Rounding never falls; it is linear only where nothing is rounded or wraps: from f32 to f64 and the like. */
void rule_cast(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    mesh_dtype from = s->in_dtype[0], to = s->out_dtype[0];
    bool from_float = dtype_kind(from) == DTYPE_FLOAT, to_float = dtype_kind(to) == DTYPE_FLOAT;
    bool widens = dtype_size(to) > dtype_size(from);
    (void)parts;
    rules_from_index("*->*", s, inout);
    if (dtype_kind(from) == DTYPE_BOOL || dtype_kind(to) == DTYPE_BOOL) {
        return;
    }
    if (to == from || (from_float && to_float && widens)) {
        follow(MESH_SUM, MESH_SUM, inout);
    }
    if (from_float && to_float && widens) {
        follow(MESH_AVG, MESH_AVG, inout);
    }
    bool keeps_order = to_float || (!from_float && widens); /* an integer has no NaN, a narrower one wraps */
    if (keeps_order) {
        follow(MESH_MAX, MESH_MAX, inout);
        follow(MESH_MIN, MESH_MIN, inout);
    }
}
