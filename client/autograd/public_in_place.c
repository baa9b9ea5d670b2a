/* client/autograd/public_in_place.c - operators that write their result over their first input, which keeps its layout.
 *
 * The result is computed as always and then brought to x's placements.  Where x is pending, only what passes the
 * pending reduction through may be written: anything else would change what the other parts mean.  This is decided
 * before any element moves.
 *
 * Inputs of several dtypes are computed in the one that holds them both (promote.h), and the result is stored in x's:
 * rounded or wrapped where that is narrower, refused where it is of a lower kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_in_place.h>

#include <string.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/redistribute.h"
#include "tensor/kernels.h"
#include "tensor/shape.h"

struct update { /* x = op(x, other) */
    const char *name;
    enum op_id op;
    struct op_attr attr;
    mesh_dtensor *in[OP_MAX_INPUTS]; /* x, then the other; NULL: none */
};

static bool is_pending(const mesh_dtensor *x, int mesh_dim)
{
    return x->placements.at[mesh_dim].kind == MESH_IS_PARTIAL;
}

/* Where parts add up, parts of the same kind are added; an extreme takes the whole number. */
static mesh_placements placements_beside(const mesh_dtensor *x, bool *ret_adds_up)
{
    mesh_placements p = x->placements;
    *ret_adds_up = false;
    for (int m = 0; m < p.n; m++) {
        bool adds_up = is_pending(x, m) && (p.at[m].op == MESH_SUM || p.at[m].op == MESH_AVG);
        *ret_adds_up = *ret_adds_up || adds_up;
        p.at[m] = is_pending(x, m) && !adds_up ? mesh_replicate() : p.at[m];
    }
    return p;
}

static int check_no_record(const char *name, mesh_dtensor *const *in)
{
    for (int i = 0; i < 2 && tape_is_on(); i++) {
        if (in[i] != NULL && in[i]->requires_grad) {
            return err_set(MESH_ESTATE,
                           "%s: input %d requires a gradient, which knows nothing of values written over others: call "
                           "mesh_grad_enable(false) around it, or use the form that makes a new tensor",
                           name, i + 1);
        }
    }
    return 0;
}

static int check_other(const char *name, const mesh_dtensor *x, const mesh_dtensor *other)
{
    char a[DTENSOR_TEXT_BYTES], b[DTENSOR_TEXT_BYTES];
    for (int m = 0; x->mesh == other->mesh && m < x->placements.n; m++) {
        if (is_pending(other, m) && !is_pending(x, m)) {
            return err_set(
                MESH_EINVAL,
                "%s: %.70s is pending on mesh dim %d and %.70s is not; redistribute it first, or use the form "
                "that makes a new tensor",
                name, dtensor_text(other, b, sizeof b), m, dtensor_text(x, a, sizeof a));
        }
    }
    mesh_dtype both = dtype_promoted(x->dtype, other->dtype);
    return dtype_kind(both) == dtype_kind(x->dtype)
               ? 0
               : err_set(
                     MESH_EINVAL,
                     "%s: x is %s and cannot keep what becomes %s; mesh_cast() the other first, or use the form that "
                     "makes a new tensor",
                     name, dtype_name(x->dtype), dtype_name(both));
}

/* Part by part, so that a pending x stays pending: its parts are cast back before anybody reduces them.  Takes the
 * reference. */
static struct mesh_tensor *recast(struct mesh_tensor *local, mesh_dtype t)
{
    if (local == NULL || local->dtype == t) {
        return local;
    }
    struct mesh_tensor *other = tensor_new(local->shape, t);
    if (other != NULL) {
        (void)k_cast(&(struct kernel_call){ .in = { local }, .out = { other } }); /* it knows every dtype */
    }
    tensor_unref(local);
    return other;
}

static mesh_dtensor *recast_parts(mesh_dtensor *x, mesh_dtype t)
{
    struct mesh_tensor *local = x->dtype == t ? NULL : recast(tensor_ref(x->local), t);
    if (x->dtype == t || local == NULL) {
        return x->dtype == t ? x : NULL;
    }
    return dtensor_new(x->mesh, x->shape, t, &x->placements, local);
}

/* The other; beside an x that adds up it becomes x's equal in shape and layout, so that it counts once. */
static mesh_dtensor *beside(mesh_dtensor *x, mesh_dtensor *other, bool adds)
{
    bool adds_up = false;
    mesh_placements p = placements_beside(x, &adds_up);
    if (!adds || !adds_up) {
        return other;
    }
    if (!shape_equal(other->shape, x->shape)) {
        mesh_dtensor *in[OP_MAX_INPUTS] = { other }, *out[OP_MAX_OUTPUTS];
        struct op_attr attr = { .shape = x->shape };
        other = apply_plain(OP_expand, in, &attr, out) < 0 ? NULL : out[0];
    }
    return other == NULL ? NULL : dtensor_redistribute(other, &p);
}

/* From global facts alone. */
static int foresee(const struct update *u)
{
    const mesh_dtensor *x = u->in[0];
    struct op_outcome y;
    char text[DTENSOR_TEXT_BYTES], shape[SHAPE_TEXT_BYTES];
    int r = op_foresee(u->op, u->in, &u->attr, &y);
    if (r < 0) {
        return r;
    }
    if (!shape_equal(y.shape, x->shape)) {
        return err_set(MESH_ESHAPE, "%s: the result has shape %s, which %s cannot hold", u->name,
                       shape_text(y.shape, shape, sizeof shape), dtensor_text(x, text, sizeof text));
    }
    for (int m = 0; m < x->placements.n; m++) {
        if (is_pending(x, m) && memcmp(&x->placements.at[m], &y.placements.at[m], sizeof y.placements.at[m]) != 0) {
            return err_set(
                MESH_EINVAL,
                "%s: %.90s is pending, and its parts cannot be changed one by one; redistribute it first, or "
                "use mesh_%.*s(), which makes a new tensor",
                u->name, dtensor_text(x, text, sizeof text), (int)strlen(u->name) - 1, u->name);
        }
    }
    return 0;
}

/* Writes y, of x's shape, over x. */
static int overwrite(mesh_dtensor *x, const mesh_dtensor *y)
{
    struct mesh_tensor *local = recast(redistribute_run(y, &x->placements), x->dtype);
    if (local == NULL) {
        return err_status();
    }
    if (local != x->local && local->n > 0) {
        memmove(x->local->data, local->data, tensor_bytes(local));
    }
    tensor_unref(local);
    return 0;
}

/* Both in one dtype, the other where x can take it. */
static int bring_together(struct update *u)
{
    mesh_dtensor *x = u->in[0], *other = u->in[1];
    mesh_shape any;
    int r = check_other(u->name, x, other);
    if (r < 0 || x->mesh != other->mesh) {
        return r; /* foresee() refuses two meshes */
    }
    r = shape_broadcast(x->shape, other->shape, u->name, &any);
    if (r < 0 || !shape_equal(any, x->shape)) {
        return r;
    }
    mesh_dtype both = dtype_promoted(x->dtype, other->dtype);
    other = cast_to(other, both);
    u->in[0] = recast_parts(x, both);
    u->in[1] = other == NULL ? NULL : beside(x, other, u->op == OP_add || u->op == OP_sub);
    return u->in[0] == NULL || u->in[1] == NULL ? err_status() : 0;
}

static int run(struct update *u)
{
    mesh_dtensor *x = u->in[0], *out[OP_MAX_OUTPUTS];
    int r = check_no_record(u->name, u->in);
    r = r < 0 || u->in[1] == NULL ? r : bring_together(u);
    r = r < 0 ? r : foresee(u);
    r = r < 0 ? r : apply_plain(u->op, u->in, &u->attr, out);
    return r < 0 ? r : overwrite(x, out[0]);
}

static mesh_dtensor *update(const char *public_function, struct update *u)
{
    mesh_dtensor *x = u->in[0];
    const struct object *mark = scope_mark();
    if (!public_enter(public_function, u->in, op_table[u->op].n_in)) {
        return NULL;
    }
    int r = run(u);
    return public_result(mark, r < 0 ? scope_fail(r) : x);
}

#define WITH_TENSOR(op_name)                                                                                           \
    MESH_API mesh_dtensor *mesh_##op_name##_(mesh_dtensor *x, mesh_dtensor *other)                                     \
    {                                                                                                                  \
        return update(__func__, &(struct update){ .name = #op_name "_", .op = OP_##op_name, .in = { x, other } });     \
    }
WITH_TENSOR(add)
WITH_TENSOR(sub)
WITH_TENSOR(mul)
WITH_TENSOR(div)

#define WITH_NUMBER(op_name)                                                                                           \
    MESH_API mesh_dtensor *mesh_##op_name##_(mesh_dtensor *x, double value)                                            \
    {                                                                                                                  \
        return update(__func__,                                                                                        \
                      &(struct update){                                                                                \
                          .name = #op_name "_", .op = OP_##op_name, .attr = { .value = { value } }, .in = { x } });    \
    }
WITH_NUMBER(add_scalar)
WITH_NUMBER(mul_scalar)

#define ALONE(op_name)                                                                                                 \
    MESH_API mesh_dtensor *mesh_##op_name##_(mesh_dtensor *x)                                                          \
    {                                                                                                                  \
        return update(__func__, &(struct update){ .name = #op_name "_", .op = OP_##op_name, .in = { x } });            \
    }
ALONE(neg)
ALONE(relu)

MESH_API mesh_dtensor *mesh_clamp_(mesh_dtensor *x, double min, double max)
{
    return update(__func__,
                  &(struct update){ .name = "clamp_", .op = OP_clamp, .attr = { .value = { min, max } }, .in = { x } });
}

static int copy(mesh_dtensor *x, mesh_dtensor *from)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, from }, *out[OP_MAX_OUTPUTS] = { from };
    char a[DTENSOR_TEXT_BYTES], b[DTENSOR_TEXT_BYTES];
    int r = check_no_record("copy_", in);
    if (r == 0 && x->mesh != from->mesh) {
        r = err_set(MESH_EINVAL, "copy_: %.100s and %.100s: both must be on one mesh", dtensor_text(x, a, sizeof a),
                    dtensor_text(from, b, sizeof b));
    }
    in[0] = from;
    if (r == 0 && !shape_equal(from->shape, x->shape)) {
        struct op_attr attr = { .shape = x->shape };
        r = apply_plain(OP_expand, in, &attr, out);
    }
    if (r == 0 && out[0]->dtype != x->dtype) {
        out[0] = cast_to(out[0], x->dtype);
        r = out[0] == NULL ? err_status() : 0;
    }
    return r < 0 ? r : overwrite(x, out[0]);
}

MESH_API mesh_dtensor *mesh_copy_(mesh_dtensor *x, mesh_dtensor *from)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, from };
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    int r = copy(x, from);
    return public_result(mark, r < 0 ? scope_fail(r) : x);
}

MESH_API mesh_dtensor *mesh_fill_(mesh_dtensor *x, double value)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x };
    struct fill f = { .kind = FILL_VALUE, .a = value };
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 1)) {
        return NULL;
    }
    int r = check_no_record("fill_", in);
    mesh_dtensor *y = r < 0 ? NULL : dtensor_filled(x->shape, x->dtype, x->mesh, &x->placements, &f);
    r = r < 0 ? r : y == NULL ? err_status() : overwrite(x, y);
    return public_result(mark, r < 0 ? scope_fail(r) : x);
}
