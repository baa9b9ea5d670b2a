/* client/core/scope.c - opens, renews and ends the scopes of a thread, and remembers the first failure in each.
 *
 *      mesh_init()            scope_open_outermost()     depth 1   its objects live until mesh_finalize()
 *      mesh_scope_begin()                                depth 2
 *        mesh_scope_next()    settle all, free all; true
 *        a call fails         scope_fail(): `first` stands; later calls return at scope_enter()
 *        mesh_scope_next()    settle all, free all; false
 *      mesh_scope_end()       settle all, free all; the first failure is returned, and is the thread's last error again
 *
 * To settle is to wait, bounded, for what still runs (a work handle); everything is settled before anything is freed,
 * because what runs may use buffers that other objects own.
 *
 * A handle is looked for in this thread's stack before it is touched, so one that has ended, or belongs to another
 * thread, is an error and not a crash (unless its memory is that of a newer scope already).
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/scope.h"

#include "base/alloc.h"
#include "base/check.h"

static _Thread_local struct mesh_scope *innermost;
static _Thread_local mesh_error
    begin_error; /* why the last mesh_scope_begin() of this thread returned NULL; else status 0 */
static _Thread_local scope_local_failure_fn local_failure_hook;

struct mesh_scope *scope_current(void)
{
    return innermost;
}

int scope_depth(const struct mesh_scope *s)
{
    int depth = 0;
    for (; s != NULL; s = s->enclosing) {
        depth++;
    }
    return depth;
}

void scope_set_local_failure_hook(scope_local_failure_fn fn)
{
    local_failure_hook = fn;
}

/* The first failure stands; a later one is news to nobody, since the other ranks heard of (or share) the first. */
static void mark_failed(struct mesh_scope *s, int status)
{
    PRE(status < 0);
    if (s->first.status != 0) {
        return;
    }
    if (err_last()->status != (mesh_status)status) {
        err_set(status, "%s", mesh_status_text((mesh_status)status));
    }
    s->first = *err_last();
    if (err_is_local() && local_failure_hook != NULL) {
        local_failure_hook(&s->first);
        err_restore(&s->first); /* whatever the hook met on its way */
    }
}

void *scope_fail(int status)
{
    if (innermost != NULL) {
        mark_failed(innermost, status);
    }
    return NULL;
}

bool scope_enter(const char *public_function)
{
    if (innermost == NULL) {
        err_enter(public_function);
        err_set(MESH_ESTATE,
                "no scope is open on this thread: call mesh_init() first, or mesh_attach() on a further thread");
        return false;
    }
    if (innermost->first.status != 0) {
        err_restore(&innermost->first);
        return false;
    }
    err_enter(public_function);
    return true;
}

static void settle_objects(struct mesh_scope *s)
{
    for (struct object *o = s->newest; o != NULL; o = o->next) {
        int r = o->class_->settle != NULL ? o->class_->settle(o) : 0;
        if (r < 0) {
            mark_failed(s, r);
        }
    }
}

static void free_objects(struct mesh_scope *s)
{
    settle_objects(s);
    while (s->newest != NULL) {
        object_release(s->newest);
    }
}

struct object *scope_mark(void)
{
    return innermost != NULL ? innermost->newest : NULL;
}

static bool is_kept(const struct object *o, struct object *const *kept, int n_kept)
{
    for (int i = 0; i < n_kept; i++) {
        if (kept[i] == o) {
            return true;
        }
    }
    return false;
}

static bool is_owned(const struct object *o)
{
    const struct object *at = innermost->newest;
    while (at != NULL && at != o) {
        at = at->next;
    }
    return at == o;
}

void scope_sweep(const struct object *mark, struct object *const *kept, int n_kept)
{
    if (innermost == NULL || !is_owned(mark)) {
        return;
    }
    for (struct object *o = innermost->newest, *older = NULL; o != mark; o = older) {
        older = o->next;
        if (!is_kept(o, kept, n_kept)) {
            object_release(o);
        }
    }
}

static struct mesh_scope *push(void)
{
    struct mesh_scope *s = mem_new(struct mesh_scope);
    if (s != NULL) {
        s->enclosing = innermost;
        if (innermost != NULL) {
            s->first = innermost->first;
        }
        innermost = s;
    }
    return s;
}

/* Ends the innermost scope; ret_first is its first failure, status 0 when there was none. */
static void pop(mesh_error *ret_first)
{
    struct mesh_scope *s = innermost;
    free_objects(s);
    *ret_first = s->first;
    innermost = s->enclosing;
    mem_free(s);
}

/* Ends the scopes inside s.  Nobody was told how they went, so the first failure found becomes that of s. */
static void end_inner_scopes(struct mesh_scope *s)
{
    while (innermost != s) {
        mesh_error first;
        pop(&first);
        if (s->first.status == 0) {
            s->first = first;
        }
    }
}

static bool is_open(const struct mesh_scope *s)
{
    const struct mesh_scope *open = innermost;
    while (open != NULL && open != s) {
        open = open->enclosing;
    }
    return s != NULL && open == s;
}

/* Why s cannot be used: what made mesh_scope_begin() return NULL, when that is where NULL came from. */
static int refuse(const struct mesh_scope *s)
{
    if (s != NULL) {
        return err_set(MESH_ESTATE,
                       "this scope is not open on this thread: it ended already, or belongs to another thread");
    }
    if (begin_error.status != 0) {
        return err_restore(&begin_error);
    }
    return err_set(MESH_EINVAL, "the scope is NULL: give what mesh_scope_begin() returned");
}

int scope_open_outermost(void)
{
    if (innermost != NULL) {
        return err_set(MESH_ESTATE, "this thread has a scope open already: end the session it belongs to first");
    }
    return push() != NULL ? 0 : err_no_memory(sizeof(struct mesh_scope), "the outermost scope");
}

static int end(struct mesh_scope *s)
{
    mesh_error first;
    end_inner_scopes(s);
    pop(&first);
    return first.status == 0 ? 0 : err_restore(&first);
}

int scope_close_outermost(void)
{
    struct mesh_scope *s = innermost;
    if (s == NULL) {
        return 0;
    }
    while (s->enclosing != NULL) {
        s = s->enclosing;
    }
    begin_error = (mesh_error){ .status = MESH_OK };
    return end(s);
}

mesh_scope *mesh_scope_begin(void)
{
    err_enter(__func__);
    begin_error = (mesh_error){ .status = MESH_OK };
    if (innermost == NULL) {
        err_set(MESH_ESTATE, "no session on this thread: call mesh_init() first, or mesh_attach() on a further thread");
        begin_error = *err_last();
        return NULL;
    }
    struct mesh_scope *s = push();
    if (s == NULL) {
        int r = err_no_memory(sizeof *s, "a scope");
        begin_error = *err_last();
        return scope_fail(r);
    }
    return s;
}

bool mesh_scope_next(mesh_scope *s)
{
    err_enter(__func__);
    if (!is_open(s)) {
        refuse(s);
        return false;
    }
    end_inner_scopes(s);
    free_objects(s);
    if (s->first.status != 0) {
        err_restore(&s->first);
        return false;
    }
    return true;
}

int mesh_scope_end(mesh_scope *s)
{
    err_enter(__func__);
    return is_open(s) ? end(s) : refuse(s);
}

mesh_status mesh_scope_status(const mesh_scope *s)
{
    if (s == NULL) {
        return innermost != NULL ? innermost->first.status : MESH_ESTATE;
    }
    return is_open(s) ? s->first.status : MESH_ESTATE;
}
