/* client/nn/optim.c - steps through the parameters of a module that have a gradient.
 *
 * The update works on local parts in place: a gradient has the layout of its parameter, so nothing is communicated.
 * What may fail is done for all parameters first; then all are updated.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/optim.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/nn_session.h"
#include "tensor/kernels.h"

mesh_optimizer *optimizer_new(mesh_module *m, update_fn update, double lr)
{
    struct nn_session *session = nn_session_current();
    mesh_optimizer *o = session == NULL ? NULL : mem_new(mesh_optimizer);
    if (o == NULL) {
        if (session != NULL) {
            err_no_memory(sizeof *o, "an optimizer");
        }
        return NULL;
    }
    o->module = m;
    o->module_id = m->id;
    o->update = update;
    o->lr = lr;
    o->session = session;
    o->next = session->optimizers;
    if (o->next != NULL) {
        o->next->prev = o;
    }
    session->optimizers = o;
    return o;
}

MESH_API mesh_optimizer *mesh_optimizer_free(mesh_optimizer *o)
{
    if (o == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < o->slots.n; i++) {
        mem_free(o->slots.at[i].name);
        tensor_unref(o->slots.at[i].moment[0]);
        tensor_unref(o->slots.at[i].moment[1]);
    }
    VEC_FINI(&o->slots);
    if (o->prev != NULL) {
        o->prev->next = o->next;
    } else {
        o->session->optimizers = o->next;
    }
    if (o->next != NULL) {
        o->next->prev = o->prev;
    }
    mem_free(o);
    return NULL;
}

MESH_API int mesh_optimizer_set_lr(mesh_optimizer *o, double lr)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    int r = 0;
    if (o == NULL) {
        r = err_set(MESH_EINVAL, "the optimizer is NULL");
    } else if (!(lr >= 0) || !isfinite(lr)) {
        r = err_set(MESH_EINVAL, "a learning rate of %g; it must be finite and not negative", lr);
    }
    if (r < 0) {
        scope_fail(r);
        return r;
    }
    o->lr = lr;
    return 0;
}

int optimizer_need_moment(struct optimizer_slot *slot, int which, const struct mesh_tensor *p)
{
    if (slot->moment[which] == NULL) {
        slot->moment[which] = tensor_new_zeroed(p->shape, p->dtype);
    }
    return slot->moment[which] != NULL ? 0 : err_status();
}

static bool is_module_there(const mesh_optimizer *o)
{
    for (const mesh_module *m = o->session->modules; m != NULL; m = m->next) {
        if (m == o->module && m->id == o->module_id) {
            return true;
        }
    }
    return false;
}

static bool is_of(const struct optimizer_slot *s, const mesh_module *owner, const struct parameter *p)
{
    return s->owner == owner->id && strcmp(s->name, p->name) == 0;
}

/* guess: where it was, if the tree has not changed. */
static struct optimizer_slot *slot_of(mesh_optimizer *o, const mesh_module *owner, const struct parameter *p,
                                      size_t guess)
{
    if (guess < o->slots.n && is_of(&o->slots.at[guess], owner, p)) {
        return &o->slots.at[guess];
    }
    for (size_t i = 0; i < o->slots.n; i++) {
        if (is_of(&o->slots.at[i], owner, p)) {
            return &o->slots.at[i];
        }
    }
    char *name = mem_strdup(p->name);
    struct optimizer_slot *s = name == NULL ? NULL : VEC_PUSH(&o->slots);
    if (s == NULL) {
        mem_free(name);
        err_no_memory(sizeof *s, "an optimizer's state");
        return NULL;
    }
    *s = (struct optimizer_slot){ .name = name, .owner = owner->id, .placements = p->value->placements };
    return s;
}

struct update { /* one parameter's, ready to go */
    struct parameter *parameter;
    mesh_dtensor *gradient; /* in the parameter's layout; of the scope or the parameter */
    size_t slot;
};
typedef VEC(struct update) update_list;

static int prepare_one(mesh_optimizer *o, const mesh_module *owner, struct parameter *p, update_list *list)
{
    struct optimizer_slot *slot = slot_of(o, owner, p, list->n);
    if (slot == NULL) {
        return MESH_ENOMEM;
    }
    if (slot->n_steps > 0 && !mesh_placements_equal(slot->placements, p->value->placements)) {
        return err_set(MESH_ESTATE,
                       "parameter \"%s\" was laid out anew since the last step: parallelize a module before the first",
                       p->name);
    }
    slot->placements = p->value->placements;
    mesh_dtensor *g = dtensor_redistribute(p->value->grad, &p->value->placements);
    if (g == NULL) {
        return err_status();
    }
    struct update *u = VEC_PUSH(list);
    if (u == NULL) {
        return err_no_memory(sizeof *u, "an optimizer's step");
    }
    *u = (struct update){ .parameter = p, .gradient = g, .slot = (size_t)(slot - o->slots.at) };
    return 0;
}

static int prepare(mesh_optimizer *o, update_list *list)
{
    int r = 0;
    for (mesh_module *m = o->module; r == 0 && m != NULL; m = module_following(o->module, m)) {
        for (size_t i = 0; r == 0 && i < m->parameters.n; i++) {
            struct parameter *p = &m->parameters.at[i];
            if (p->value != NULL && p->value->grad != NULL && !tied_is_repeated(o->module, p)) {
                r = prepare_one(o, m, p, list);
            }
        }
    }
    return r;
}

static struct mesh_tensor *cast(const struct mesh_tensor *from, struct mesh_tensor *to)
{
    if (to != NULL) {
        (void)k_cast(&(struct kernel_call){ .in = { from }, .out = { to } }); /* cannot fail: it knows every dtype */
    }
    return to;
}

/* A parameter of 16 bits is updated in f32, with moments in f32, and rounded once; the copies live as long as its
 * step. */
static int update(mesh_optimizer *o, struct mesh_tensor *p, const struct mesh_tensor *g, struct optimizer_slot *slot)
{
    if (dtype_size(p->dtype) != sizeof(uint16_t)) {
        return o->update(o, p, g, slot);
    }
    struct mesh_tensor *wide = cast(p, tensor_new(p->shape, MESH_F32));
    struct mesh_tensor *slope = wide != NULL ? cast(g, tensor_new(g->shape, MESH_F32)) : NULL;
    int r = slope != NULL ? o->update(o, wide, slope, slot) : err_status();
    if (r == 0) {
        cast(wide, p);
    }
    tensor_unref(wide);
    tensor_unref(slope);
    return r;
}

static int run(mesh_optimizer *o, const update_list *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const struct update *u = &list->at[i];
        struct optimizer_slot *slot = &o->slots.at[u->slot];
        mesh_dtensor *value = u->parameter->value;
        r = tensor_settle(value->local);
        r = r < 0 ? r : tensor_settle(u->gradient->local);
        r = r < 0 ? r : update(o, value->local, u->gradient->local, slot);
        if (r == 0) {
            slot->n_steps++;
            dtensor_unref(value->grad);
            value->grad = NULL;
            object_release(&u->gradient->object); /* gradients go one by one, not with the scope */
        }
    }
    return r;
}

MESH_API int mesh_optimizer_step(mesh_optimizer *o)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    update_list list = { .at = NULL };
    int r = o == NULL ? err_set(MESH_EINVAL, "the optimizer is NULL") : 0;
    if (r == 0 && is_module_there(o)) {
        r = prepare(o, &list);
        r = r < 0 ? r : run(o, &list);
    }
    VEC_FINI(&list);
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}
