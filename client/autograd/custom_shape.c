/* client/autograd/custom_shape.c - index rules that a program wrote: whether they are well formed, and what shape
 * follows.
 *
 * "*mk,*kn->*mn": an operand is an optional *, for leading dims that broadcast, and letters, none twice.  Each letter
 * has one extent, and the result's extents follow unless the program says otherwise.
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "autograd/custom.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

struct operand {
    bool has_star;
    const char *letters; /* [n] */
    int n;
};

/* Reads one operand, returning what follows; NULL: it is malformed. */
static const char *read_operand(const char *at, struct operand *ret_operand)
{
    struct operand o = { .has_star = *at == '*' };
    o.letters = at + o.has_star;
    while (o.n <= MESH_MAX_NDIM && isalpha((unsigned char)o.letters[o.n])) {
        if (o.n > 0 && memchr(o.letters, o.letters[o.n], (size_t)o.n) != NULL) {
            return NULL;
        }
        o.n++;
    }
    *ret_operand = o;
    return o.n <= MESH_MAX_NDIM ? o.letters + o.n : NULL;
}

/* All operands, the result last.  false: malformed, or another number of inputs. */
static bool read_rule(const char *rule, int n_in, struct operand *ret_operands)
{
    const char *at = rule;
    bool has_star = false;
    for (int i = 0; i < n_in; i++) {
        const char *follows = i + 1 < n_in ? "," : "->";
        at = read_operand(at, &ret_operands[i]);
        if (at == NULL || strncmp(at, follows, strlen(follows)) != 0) {
            return false;
        }
        at += strlen(follows);
        has_star = has_star || ret_operands[i].has_star;
    }
    at = read_operand(at, &ret_operands[n_in]);
    return at != NULL && *at == '\0' && (has_star || !ret_operands[n_in].has_star);
}

int custom_check_rule(const char *name, const char *rule, int n_in)
{
    struct operand operands[OP_MAX_INPUTS + 1];
    if (n_in < 1 || n_in > MESH_OP_MAX_INPUTS) {
        return err_set(MESH_EINVAL, "%s: %d inputs; 1 to %d are supported", name, n_in, MESH_OP_MAX_INPUTS);
    }
    return read_rule(rule, n_in, operands)
               ? 0
               : err_set(
                     MESH_EINVAL,
                     "%s: \"%s\" is no index rule for %d inputs: letters (none twice in one operand) and an optional "
                     "leading *, such as \"*mk,*kn->*mn\"",
                     name, rule, n_in);
}

int custom_check_letters(const char *name, const char *rule, int n_in)
{
    struct operand operands[OP_MAX_INPUTS + 1];
    PRE(read_rule(rule, n_in, operands));
    for (int k = 0; k < operands[n_in].n; k++) {
        char letter = operands[n_in].letters[k];
        bool is_known = false;
        for (int i = 0; i < n_in; i++) {
            is_known = is_known || memchr(operands[i].letters, letter, (size_t)operands[i].n) != NULL;
        }
        if (!is_known) {
            return err_set(
                MESH_EINVAL,
                "%s: in \"%s\" the letter %c of the result stands in no input: only a shape function can say "
                "its extent, and there is none",
                name, rule, letter);
        }
    }
    return 0;
}

struct extents {            /* known so far */
    int64_t of_letter[128]; /* -1: not seen */
    mesh_shape leading;
};

static int add_operand(const struct op_shapes *s, int i, const struct operand *o, struct extents *inout)
{
    char text[SHAPE_TEXT_BYTES];
    int n_leading = s->in[i].ndim - o->n;
    if (n_leading < 0 || (n_leading > 0 && !o->has_star)) {
        return err_set(MESH_ESHAPE, "%s: argument %d is %s; the rule says %s%d dims", s->name, i + 1,
                       shape_text(s->in[i], text, sizeof text), o->has_star ? "at least " : "", o->n);
    }
    for (int k = 0; k < o->n; k++) {
        int64_t *known = &inout->of_letter[(unsigned char)o->letters[k]], is = s->in[i].dim[n_leading + k];
        if (*known >= 0 && *known != is) {
            return err_set(MESH_ESHAPE, "%s: argument %d is %s, but the extent of \"%c\" is %lld before", s->name,
                           i + 1, shape_text(s->in[i], text, sizeof text), o->letters[k], (long long)*known);
        }
        *known = is;
    }
    mesh_shape leading = s->in[i];
    leading.ndim = n_leading;
    return shape_broadcast(inout->leading, leading, s->name, &inout->leading);
}

static int shape_of_result(const struct op_shapes *s, const struct operand *o, const struct extents *e,
                           mesh_shape *ret_shape)
{
    mesh_shape out = { .ndim = 0 };
    int n_leading = o->has_star ? e->leading.ndim : 0;
    if (n_leading + o->n > MESH_MAX_NDIM) {
        return err_set(MESH_ESHAPE, "%s: the result would have more than %d dims", s->name, MESH_MAX_NDIM);
    }
    for (int d = 0; d < n_leading; d++) {
        out.dim[out.ndim++] = e->leading.dim[d];
    }
    for (int k = 0; k < o->n; k++) {
        out.dim[out.ndim++] = e->of_letter[(unsigned char)o->letters[k]];
    }
    *ret_shape = out;
    return 0;
}

/* Extents that the rule knows must be those; the others are the program's say. */
static int check_result(const struct op_shapes *s, mesh_shape by_rule)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool fits = s->out[0].ndim == by_rule.ndim && dtype_is_valid((int)s->out_dtype[0]);
    for (int d = 0; fits && d < by_rule.ndim; d++) {
        fits = by_rule.dim[d] < 0 ? s->out[0].dim[d] >= 0 : s->out[0].dim[d] == by_rule.dim[d];
    }
    return fits ? 0
                : err_set(MESH_ESHAPE, "%s: the result is said to be %s, by the rule it is %s (-1: any)", s->name,
                          shape_text(s->out[0], a, sizeof a), shape_text(by_rule, b, sizeof b));
}

static int ask_program(struct op_shapes *s, const mesh_op_class *cls)
{
    mesh_op_facts facts = { .n_in = s->n_in, .args = custom_args(&s->attr), .user = cls->user };
    for (int i = 0; i < s->n_in; i++) {
        facts.shape[i] = s->in[i];
        facts.dtype[i] = s->in_dtype[i];
    }
    int r = cls->shape(&facts, &s->out[0], &s->out_dtype[0]);
    return r < 0 ? err_set(r, "%s: its shape function refuses these inputs", s->name) : 0;
}

/* A program that says nothing about dtypes has not thought of several. */
static int check_dtypes(const struct op_shapes *s, const mesh_op_class *cls)
{
    for (int i = 1; cls->shape == NULL && cls->promotes == 0 && i < s->n_in; i++) {
        if (s->in_dtype[i] != s->in_dtype[0]) {
            return err_set(MESH_EINVAL,
                           "%s: argument 1 is %s, argument %d %s; mesh_cast() one of them, or register the operator "
                           "with .promotes (the inputs that become of one dtype) or with a shape function (which takes "
                           "them as they are)",
                           s->name, dtype_name(s->in_dtype[0]), i + 1, dtype_name(s->in_dtype[i]));
        }
    }
    return 0;
}

int custom_shape(struct op_shapes *s)
{
    const struct mesh_op *op = s->user;
    struct operand operands[OP_MAX_INPUTS + 1];
    struct extents e = { .leading = { .ndim = 0 } };
    mesh_shape by_rule = { .ndim = 0 };
    memset(e.of_letter, -1, sizeof e.of_letter);
    int r = read_rule(op->rule, s->n_in, operands) ? 0 : custom_check_rule(s->name, op->rule, s->n_in);
    r = r < 0 ? r : check_dtypes(s, &op->class_);
    for (int i = 0; r == 0 && i < s->n_in; i++) {
        r = add_operand(s, i, &operands[i], &e);
    }
    r = r < 0 ? r : shape_of_result(s, &operands[s->n_in], &e, &by_rule);
    if (r < 0) {
        return r;
    }
    s->out[0] = by_rule;
    s->out_dtype[0] = s->in_dtype[0];
    r = op->class_.shape != NULL ? ask_program(s, &op->class_) : 0;
    return r < 0 ? r : check_result(s, by_rule);
}
