/* client/dtensor/rules.c - derives one-dimensional rules from index strings and the column of pending reductions.
 *
 * For each letter (and each leading dimension that * stands for): every input that has it is Shard there, the others
 * Replicate; an output that has it is Shard there, an output without it Partial(sum).  A dimension of extent 1 that is
 * broadcast against a longer one is whole on every rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
#include "dtensor/dispatch.h"

struct operand { /* one operand's part of an index string: "*mk" */
    bool has_star;
    const char *letters; /* [n_letters], inside the string */
    int n_letters, n_leading;
};

struct index_rule {
    struct operand in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
};

static mesh_placement replicate(void)
{
    return mesh_replicate();
}

struct rule rule_whole(void)
{
    struct rule r;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        r.in[i] = replicate();
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        r.out[o] = replicate();
    }
    return r;
}

static bool is_same(const struct rule *a, const struct rule *b)
{
    return memcmp(a->in, b->in, sizeof a->in) == 0 && memcmp(a->out, b->out, sizeof a->out) == 0;
}

void rule_add(struct rule_list *rules, const struct rule *r)
{
    for (int i = 0; i < rules->n; i++) {
        if (is_same(&rules->at[i], r)) {
            return;
        }
    }
    CHECK(rules->n < RULES_MAX);
    rules->at[rules->n++] = *r;
}

/* Reads one operand up to ',' or '-' or the end; returns what follows. */
static const char *parse_operand(const char *at, int ndim, struct operand *ret_operand)
{
    struct operand o = { .has_star = *at == '*' };
    o.letters = at + o.has_star;
    while (isalpha((unsigned char)o.letters[o.n_letters])) {
        o.n_letters++;
    }
    o.n_leading = ndim - o.n_letters;
    CHECK(o.n_leading == 0 || (o.has_star && o.n_leading > 0));
    *ret_operand = o;
    return o.letters + o.n_letters;
}

static void parse(const char *index, const struct op_shapes *s, struct index_rule *ret_rule)
{
    const char *at = index;
    memset(ret_rule, 0, sizeof *ret_rule);
    for (int i = 0; i < s->n_in; i++) {
        if (s->has[i]) {
            at = parse_operand(at, s->in[i].ndim, &ret_rule->in[i]);
        } else {
            at += strcspn(at, ",-");
        }
        at += *at == ',';
    }
    CHECK(strncmp(at, "->", 2) == 0);
    at += 2;
    for (int o = 0; o < s->n_out; o++) {
        at = parse_operand(at, s->out[o].ndim, &ret_rule->out[o]);
        at += *at == ',';
    }
    CHECK(*at == 0);
}

static int letter_dim(const struct operand *o, char letter)
{
    const char *found = o->n_letters ? memchr(o->letters, letter, (size_t)o->n_letters) : NULL;
    return found ? o->n_leading + (int)(found - o->letters) : -1;
}

/* back: 1 is the last of the leading dimensions. */
static int leading_dim(const struct operand *o, int back)
{
    return o->has_star && back <= o->n_leading ? o->n_leading - back : -1;
}

/* The rule that splits one index: dim d of each operand, -1 where it is absent. */
static void add_split(const struct op_shapes *s, const int *in_dim, const int *out_dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    int64_t extent = 1;
    for (int i = 0; i < s->n_in; i++) {
        if (in_dim[i] >= 0 && s->in[i].dim[in_dim[i]] != 1) {
            extent = s->in[i].dim[in_dim[i]];
        }
    }
    for (int i = 0; i < s->n_in; i++) {
        if (in_dim[i] >= 0 && s->in[i].dim[in_dim[i]] == extent) {
            r.in[i] = mesh_shard(in_dim[i]);
        }
    }
    for (int o = 0; o < s->n_out; o++) {
        r.out[o] = out_dim[o] >= 0 ? mesh_shard(out_dim[o]) : mesh_partial(MESH_SUM);
    }
    rule_add(inout, &r);
}

static void split_leading(const struct op_shapes *s, const struct index_rule *x, struct rule_list *inout)
{
    int most = 0, in_dim[OP_MAX_INPUTS], out_dim[OP_MAX_OUTPUTS];
    for (int i = 0; i < s->n_in; i++) {
        most = MAX(most, x->in[i].has_star ? x->in[i].n_leading : 0);
    }
    for (int back = most; back >= 1; back--) {
        for (int i = 0; i < s->n_in; i++) {
            in_dim[i] = leading_dim(&x->in[i], back);
        }
        for (int o = 0; o < s->n_out; o++) {
            out_dim[o] = leading_dim(&x->out[o], back);
        }
        add_split(s, in_dim, out_dim, inout);
    }
}

void rules_from_index(const char *index, const struct op_shapes *s, struct rule_list *inout)
{
    struct index_rule x;
    int in_dim[OP_MAX_INPUTS], out_dim[OP_MAX_OUTPUTS];
    parse(index, s, &x);
    split_leading(s, &x, inout);
    for (const char *c = index; *c && *c != '-'; c++) {
        if (!islower((unsigned char)*c)) {
            continue;
        }
        bool is_present = false;
        for (int i = 0; i < s->n_in; i++) {
            in_dim[i] = letter_dim(&x.in[i], *c);
            is_present = is_present || in_dim[i] >= 0;
        }
        for (int o = 0; o < s->n_out; o++) {
            out_dim[o] = letter_dim(&x.out[o], *c);
        }
        if (is_present) {
            add_split(s, in_dim, out_dim, inout);
        }
    }
}

bool rules_is_float(const struct op_shapes *s)
{
    for (int i = 0; i < s->n_in; i++) {
        if (s->has[i] && dtype_kind(s->in_dtype[i]) != DTYPE_FLOAT) {
            return false;
        }
    }
    return true;
}

/* Only input i (all of them when i is -1) pending op, and so the results. */
static void add_pending(const struct op_shapes *s, int i, mesh_reduce_op op, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (int k = 0; k < s->n_in; k++) {
        if (s->has[k] && (i < 0 || i == k)) {
            r.in[k] = mesh_partial(op);
        }
    }
    for (int o = 0; o < s->n_out; o++) {
        r.out[o] = mesh_partial(op);
    }
    rule_add(inout, &r);
}

static void add_any_pending(const struct op_shapes *s, struct rule_list *inout)
{
    static const mesh_reduce_op always[] = { MESH_SUM, MESH_PROD, MESH_MAX, MESH_MIN };
    static const mesh_reduce_op of_ints[] = { MESH_BAND, MESH_BOR, MESH_BXOR };
    for (size_t k = 0; k < ARRAY_SIZE(always); k++) {
        add_pending(s, 0, always[k], inout);
    }
    if (dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT) {
        add_pending(s, 0, MESH_AVG, inout);
        return;
    }
    for (size_t k = 0; k < ARRAY_SIZE(of_ints); k++) {
        add_pending(s, 0, of_ints[k], inout);
    }
}

/* Linear operators: a sum of results is the result of the sum.  Integers wrap, which is linear
 * too, unless the result is wider; booleans are not. */
static void add_linear(const struct op_shapes *s, int i, struct rule_list *inout)
{
    if (dtype_kind(s->out_dtype[0]) == DTYPE_BOOL || s->in_dtype[i < 0 ? 0 : i] != s->out_dtype[0]) {
        return;
    }
    add_pending(s, i, MESH_SUM, inout);
    if (dtype_kind(s->out_dtype[0]) == DTYPE_FLOAT) {
        add_pending(s, i, MESH_AVG, inout);
    }
}

static void add_partial_column(enum partial_rule partial, const struct op_shapes *s, struct rule_list *inout)
{
    switch (partial) {
    case PARTIAL_NONE:
        return;
    case PARTIAL_SUM:
        add_linear(s, -1, inout);
        return;
    case PARTIAL_EACH:
        for (int i = 0; i < s->n_in; i++) {
            if (s->has[i]) {
                add_linear(s, i, inout);
            }
        }
        return;
    case PARTIAL_FIRST:
        add_linear(s, 0, inout);
        return;
    case PARTIAL_ANY:
        add_any_pending(s, inout);
        return;
    }
}

/* Operators that do to each place of a split dim the same, wherever it is in the whole: whatever places a rank holds,
 * so long as all tensors are split alike, the rule for a plain shard is right.  Those of an index string are, but for
 * these. */
static const rule_fn place_blind[] = {
    rule_add_tensors,
    rule_sub_tensors,
    rule_negate,
    rule_scale,
    rule_add_scalar,
    rule_monotone,
    rule_matmul,
    rule_linear,
    rule_transpose,
    rule_expand,
    rule_sum_to,
    rule_reduce,
    rule_along,
    rule_permute,
    rule_pointwise,
    rule_maximum,
    rule_minimum,
    rule_bitwise_and,
    rule_bitwise_or,
    rule_bitwise_xor,
    rule_where,
    rule_masked_fill,
    rule_cast,
    rule_normalize,
    rule_normalize_grad,
    rule_leaky,
    rule_power,
    rule_cross_entropy,
    rule_cross_entropy_grad,
    rule_nll_loss,
    rule_nll_grad,
};
static const enum op_id sees_places[] = { OP_tril, OP_triu };

/* Of one group of channels the order does not matter. */
static bool is_plain_convolution(const struct op_row *op, const struct op_shapes *s)
{
    bool is_one =
        op->rule.of == rule_conv2d || op->rule.of == rule_conv2d_grad_input || op->rule.of == rule_conv2d_grad_weight;
    return is_one && s->attr.groups == 1;
}

static bool is_place_blind(const struct op_row *op, const struct op_shapes *s)
{
    bool is_blind = (op->rule.index != NULL && op->user == NULL) || is_plain_convolution(op, s);
    for (size_t k = 0; k < ARRAY_SIZE(place_blind); k++) {
        is_blind = is_blind || op->rule.of == place_blind[k];
    }
    for (size_t k = 0; k < ARRAY_SIZE(sees_places); k++) {
        is_blind = is_blind && op != &op_table[sees_places[k]];
    }
    return is_blind;
}

/* The classes of a loss are counted from where a rank's part begins, which one number only says of a plain shard. */
static bool splits_classes(const struct op_row *op, const struct op_shapes *s, mesh_placement p)
{
    bool has_classes = op->rule.of == rule_nll_loss || op->rule.of == rule_nll_grad;
    return has_classes && p.kind == MESH_IS_SHARD && p.dim == (s->in[0].ndim == 1 ? 0 : 1);
}

static mesh_placement strided(mesh_placement p, int factor)
{
    return p.kind == MESH_IS_SHARD ? mesh_strided_shard(p.dim, factor) : p;
}

/* Each rule with the strides that there are. */
static void add_strided(const struct op_row *op, const struct op_shapes *s, struct rule_list *inout)
{
    for (int i = 0, n = inout->n; i < s->n_in; i++) {
        for (int k = 0; s->now[i].kind == MESH_IS_STRIDED_SHARD && k < n; k++) {
            struct rule r = inout->at[k];
            bool is_such =
                r.in[i].kind == MESH_IS_SHARD && r.in[i].dim == s->now[i].dim && !splits_classes(op, s, r.in[0]);
            for (int j = 0; j < OP_MAX_INPUTS; j++) {
                r.in[j] = strided(r.in[j], s->now[i].split_factor);
            }
            for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
                r.out[o] = strided(r.out[o], s->now[i].split_factor);
            }
            if (is_such) {
                rule_add(inout, &r);
            }
        }
    }
}

void rules_derive(const struct op_row *op, const struct op_shapes *s, int parts, struct rule_list *ret_rules)
{
    struct rule whole = rule_whole();
    ret_rules->n = 0;
    rule_add(ret_rules, &whole);
    if (op->rule.index) {
        rules_from_index(op->rule.index, s, ret_rules);
    } else {
        op->rule.of(s, parts, ret_rules);
    }
    add_partial_column(op->partial, s, ret_rules);
    if (is_place_blind(op, s)) {
        add_strided(op, s, ret_rules);
    }
}
