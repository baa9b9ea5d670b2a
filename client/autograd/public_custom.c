/* client/autograd/public_custom.c - registers a program's operators with the session, and applies them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/custom_op.h>

#include <string.h>

#include "autograd/custom.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"

struct custom_ops { /* of a session */
    struct mesh_op *first;
    uint64_t n;
};

static void free_op(struct mesh_op *op)
{
    if (op != NULL) {
        mem_free(op->name);
        mem_free(op->rule);
        mem_free(op);
    }
}

static void free_all(void *state)
{
    struct custom_ops *ops = state;
    while (ops->first != NULL) {
        struct mesh_op *op = ops->first;
        ops->first = op->next;
        free_op(op);
    }
    mem_free(ops);
}

static struct custom_ops *ops_current(void)
{
    struct mesh_session *session = session_require();
    if (session == NULL) {
        return NULL;
    }
    if (session->slot[SESSION_SLOT_AUTOGRAD].state == NULL) {
        struct custom_ops *ops = mem_new(struct custom_ops);
        if (ops == NULL) {
            err_no_memory(sizeof *ops, "the session's list of operators");
            return NULL;
        }
        session->slot[SESSION_SLOT_AUTOGRAD].state = ops;
        session->slot[SESSION_SLOT_AUTOGRAD].free = free_all;
    }
    return session->slot[SESSION_SLOT_AUTOGRAD].state;
}

static int check_class(const mesh_op_class *cls)
{
    if (cls == NULL || cls->name == NULL || cls->rule == NULL || cls->kernel == NULL) {
        return err_set(MESH_EINVAL, "an operator needs a name, a rule and a kernel");
    }
    if ((int)cls->linear < 0 || cls->linear > MESH_OP_LINEAR_FIRST) {
        return err_set(MESH_EINVAL, "%s: %d is no kind of linearity", cls->name, (int)cls->linear);
    }
    int r = custom_check_rule(cls->name, cls->rule, cls->n_in);
    r = r < 0 || cls->shape != NULL ? r : custom_check_letters(cls->name, cls->rule, cls->n_in);
    return r < 0 || cls->promotes >> cls->n_in == 0
               ? r
               : err_set(MESH_EINVAL, "%s: promotes is %#x, of an operator with %d inputs", cls->name, cls->promotes,
                         cls->n_in);
}

static void fill_in(struct mesh_op *op)
{
    static const enum partial_rule partial[] = { [MESH_OP_NOT_LINEAR] = PARTIAL_NONE,
                                                 [MESH_OP_LINEAR_TOGETHER] = PARTIAL_SUM,
                                                 [MESH_OP_LINEAR_EACH] = PARTIAL_EACH,
                                                 [MESH_OP_LINEAR_FIRST] = PARTIAL_FIRST };
    op->class_.name = op->name;
    op->class_.rule = op->rule;
    op->row = (struct op_row){ .name = op->name,
                               .n_in = op->class_.n_in,
                               .n_out = 1,
                               .rule = { .index = op->rule },
                               .partial = partial[op->class_.linear],
                               .shape = custom_shape,
                               .kernel = custom_kernel,
                               .user = op };
    if (op->class_.gradient != NULL) {
        op->gradient.run = custom_gradient;
        for (int i = 0; i < MESH_OP_MAX_INPUTS; i++) {
            op->gradient.needs[i] = NEEDS_IN0 | NEEDS_IN1 | NEEDS_IN2 | NEEDS_IN3 | NEEDS_OUT;
        }
    }
}

static struct mesh_op *new_op(const mesh_op_class *cls)
{
    struct custom_ops *ops = ops_current();
    if (ops == NULL) {
        return NULL;
    }
    struct mesh_op *op = mem_new(struct mesh_op);
    if (op != NULL) {
        op->class_ = *cls;
        op->name = mem_strdup(cls->name);
        op->rule = mem_strdup(cls->rule);
    }
    if (op == NULL || op->name == NULL || op->rule == NULL) {
        free_op(op);
        err_no_memory(sizeof *op, "an operator");
        return NULL;
    }
    fill_in(op);
    op->id = N_OPS + ops->n++;
    op->next = ops->first;
    ops->first = op;
    return op;
}

struct mesh_op *custom_find_or_make(const mesh_op_class *cls)
{
    const struct custom_ops *ops = ops_current();
    for (struct mesh_op *op = ops != NULL ? ops->first : NULL; op != NULL; op = op->next) {
        if (op->class_.kernel == cls->kernel && strcmp(op->rule, cls->rule) == 0) {
            return op;
        }
    }
    struct mesh_op *op = ops != NULL ? new_op(cls) : NULL;
    if (op != NULL) {
        op->class_.user = op->rule;
    }
    return op;
}

MESH_API mesh_op *mesh_register_op(const mesh_op_class *cls)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    mesh_op *op = check_class(cls) < 0 ? NULL : new_op(cls);
    return op != NULL ? op : scope_fail(err_status());
}

int custom_apply(struct mesh_op *op, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    bool records = tape_wants(in, op->row.n_in);
    if (records && op->gradient.run == NULL) {
        return err_set(MESH_EUNSUPPORTED, "%s has no gradient; apply it to mesh_detach() of its input", op->name);
    }
    int r = op_apply_row(&op->row, op->id, in, attr, ret_out);
    if (r < 0 || !records || dtype_kind(ret_out[0]->dtype) != DTYPE_FLOAT) { /* what is counted has no slope */
        return r;
    }
    return tape_record(
        &(struct tape_entry){
            .name = op->name, .gradient = &op->gradient, .attr = attr, .n_in = op->row.n_in, .in = in },
        ret_out[0]);
}

static int check_call(const mesh_op *op, mesh_dtensor *const *inputs, int n_inputs)
{
    if (op == NULL || inputs == NULL) {
        return err_set(MESH_EINVAL, "the %s NULL", op == NULL ? "operator is" : "inputs are");
    }
    return n_inputs == op->row.n_in
               ? 0
               : err_set(MESH_EINVAL, "%s: %d inputs, but it was registered with %d", op->name, n_inputs, op->row.n_in);
}

MESH_API mesh_dtensor *mesh_apply_op(mesh_op *op, mesh_dtensor *const *inputs, int n_inputs, const mesh_op_args *args)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS];
    struct op_attr attr;
    memset(&attr, 0, sizeof attr);
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = check_call(op, inputs, n_inputs);
    if (r < 0) {
        return scope_fail(r);
    }
    memcpy(in, inputs, (size_t)n_inputs * sizeof in[0]);
    if (!public_enter(__func__, in, n_inputs)) {
        return NULL;
    }
    if (args != NULL) {
        memcpy(attr.value, args->value, sizeof attr.value);
        memcpy(attr.index, args->index, sizeof attr.index);
    }
    r = promote(&op->row, in, op->class_.promotes, &attr);
    r = r < 0 ? r : custom_apply(op, in, &attr, out);
    return r < 0 ? scope_fail(r) : out[0];
}
