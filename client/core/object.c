/* client/core/object.c - counts references of an object and moves it between scopes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/object.h"

#include "base/check.h"
#include "core/scope.h"

static void link_into(struct mesh_scope *s, struct object *o)
{
    o->scope = s;
    o->prev = NULL;
    o->next = s->newest;
    if (s->newest != NULL) {
        s->newest->prev = o;
    }
    s->newest = o;
}

static void unlink_from_scope(struct object *o)
{
    if (o->prev != NULL) {
        o->prev->next = o->next;
    } else {
        o->scope->newest = o->next;
    }
    if (o->next != NULL) {
        o->next->prev = o->prev;
    }
    o->scope = NULL;
    o->next = o->prev = NULL;
}

void object_init_unscoped(struct object *o, const struct object_class *c)
{
    *o = (struct object){ .class_ = c };
    atomic_init(&o->references, 1);
}

void object_init(struct object *o, const struct object_class *c)
{
    struct mesh_scope *s = scope_current();
    PRE(s != NULL);
    object_init_unscoped(o, c);
    link_into(s, o);
}

struct object *object_ref(struct object *o)
{
    if (atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed) <= 0) {
        check_failed(__FILE__, __LINE__, "that the program uses no tensor after its scope ended, nor one it released,");
    }
    return o;
}

void object_unref(struct object *o)
{
    if (o == NULL) {
        return;
    }
    int before = atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1) {
        CHECK(o->scope == NULL); /* a scope that still lists it holds a reference */
        o->class_->free(o);
    }
}

void object_release(struct object *o)
{
    if (o != NULL && o->scope != NULL) {
        unlink_from_scope(o);
        object_unref(o);
    }
}

int object_keep(struct object *o)
{
    if (o->scope == NULL) {
        return err_set(MESH_ESTATE,
                       "this %s belongs to no scope (it was released, or its scope ended): keep it earlier",
                       o->class_->name);
    }
    struct mesh_scope *enclosing = o->scope->enclosing;
    if (enclosing == NULL) {
        return err_set(MESH_ESTATE, "this %s belongs to the outermost scope already: it lives until mesh_finalize()",
                       o->class_->name);
    }
    unlink_from_scope(o);
    link_into(enclosing, o);
    return 0;
}

void object_disown(struct object *o)
{
    PRE(o->scope != NULL);
    unlink_from_scope(o);
}
