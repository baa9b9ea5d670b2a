/* client/autograd/public_einsum.c - mesh_einsum(): each equation is an operator whose index rule is the equation
 * itself.
 *
 * The gradient by one input is another equation, of the result's gradient and the other input; letters that the first
 * input alone has were summed over, so there the gradient repeats.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_matrix.h>

#include <stdio.h>
#include <string.h>

#include <mesh/ops.h>

#include "autograd/custom.h"
#include "autograd/grads.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/einsum.h"

#define EQUATION_BYTES (3 * MESH_MAX_NDIM + 8)

static int kernel(const mesh_op_call *c)
{
    return tensor_einsum(c->user, c->in[0], c->in[1], c->out);
}

/* What an equation consists of: "mk", "kn", "mn". */
struct equation {
    char part[3][MESH_MAX_NDIM + 1];
};

static struct equation parts_of(const char *text)
{
    struct equation e = { .part = { "" } };
    for (int i = 0; i < 3; i++) {
        size_t n = strcspn(text, ",-");
        memcpy(e.part[i], text, n < MESH_MAX_NDIM ? n : MESH_MAX_NDIM);
        text += n + (text[n] == ',' ? 1 : (text[n] == '-' ? 2 : 0));
    }
    return e;
}

/* dy times the other input, as the letters of input i that they have; then repeated along the others. */
static mesh_dtensor *gradient_of_input(const mesh_op_gradient *g, const struct equation *e, int i)
{
    const char *mine = e->part[i], *other = e->part[1 - i];
    char text[EQUATION_BYTES], kept[MESH_MAX_NDIM + 1] = "";
    mesh_shape shape = g->in[i]->shape, with_ones = shape;
    size_t n = 0;
    for (int d = 0; mine[d] != '\0'; d++) {
        if (strchr(e->part[2], mine[d]) != NULL || strchr(other, mine[d]) != NULL) {
            kept[n++] = mine[d];
        } else {
            with_ones.dim[d] = 1;
        }
    }
    snprintf(text, sizeof text, "%s,%s->%s", e->part[2], other, kept);
    mesh_dtensor *dx = mesh_einsum(text, g->dy, g->in[1 - i]);
    return n == (size_t)shape.ndim ? dx : mesh_expand(mesh_reshape(dx, with_ones), shape);
}

static int gradient(mesh_op_gradient *g)
{
    struct equation e = parts_of(g->user);
    for (int i = 0; i < 2; i++) {
        g->dx[i] = g->wants[i] ? gradient_of_input(g, &e, i) : NULL;
    }
    return 0;
}

/* The equation without its blanks. */
static int read_equation(const char *text, char *ret_equation)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        if (*text == ' ') {
            continue;
        }
        if (n + 1 >= EQUATION_BYTES || ((*text < 'a' || *text > 'z') && strchr(",->", *text) == NULL)) {
            return err_set(MESH_EINVAL,
                           "einsum: an equation is made of letters a to z, one comma and one arrow, such as "
                           "\"mk,kn->mn\"");
        }
        ret_equation[n++] = *text;
    }
    ret_equation[n] = '\0';
    int r = custom_check_rule("einsum", ret_equation, 2);
    const char *arrow = r < 0 ? NULL : strchr(ret_equation, '-');
    for (const char *c = arrow != NULL ? arrow + 2 : ""; *c != '\0'; c++) {
        if (memchr(ret_equation, *c, (size_t)(arrow - ret_equation)) == NULL) {
            return err_set(MESH_EINVAL, "einsum: \"%c\" stands in the result of \"%s\" only", *c, ret_equation);
        }
    }
    return r;
}

static int check_inputs(const mesh_dtensor *a, const mesh_dtensor *b)
{
    return dtype_kind(dtype_promoted(a->dtype, b->dtype)) != DTYPE_BOOL
               ? 0
               : err_set(MESH_EUNSUPPORTED, "einsum does not work on bool; mesh_cast() it to a number first");
}

MESH_API mesh_dtensor *mesh_einsum(const char *equation, mesh_dtensor *a, mesh_dtensor *b)
{
    char text[EQUATION_BYTES];
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b }, *out[OP_MAX_OUTPUTS];
    struct op_attr none;
    memset(&none, 0, sizeof none);
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    int r = equation == NULL ? err_set(MESH_EINVAL, "einsum: the equation is NULL") : read_equation(equation, text);
    r = r < 0 ? r : check_inputs(a, b);
    if (r < 0) {
        return scope_fail(r);
    }
    const mesh_op_class cls = {
        .name = "einsum", .n_in = 2, .rule = text, .linear = MESH_OP_LINEAR_EACH, .kernel = kernel, .gradient = gradient
    };
    struct mesh_op *op = custom_find_or_make(&cls);
    r = op == NULL ? err_status() : promote(&op->row, in, 0x3, &none);
    r = r < 0 ? r : custom_apply(op, in, &none, out);
    return public_result(mark, r < 0 ? scope_fail(r) : out[0]);
}
