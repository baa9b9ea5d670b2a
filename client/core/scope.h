/* client/core/scope.h - the stack of scopes of a thread: lifetime of what is made, and the first failure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SCOPE_H
#define CORE_SCOPE_H

#include <mesh/scope.h>

#include "base/error.h"
#include "core/object.h"

/* For core itself; everyone else uses the functions. */
struct mesh_scope {
    struct mesh_scope *enclosing; /* NULL: the outermost */
    struct object *newest;        /* what the scope owns */
    mesh_error first;             /* status 0: not failed */
};

/* The outermost scope of this thread: opened by mesh_init() / mesh_attach(), ended by mesh_finalize() / detaching.
 * Closing ends the scopes inside it too, and returns what mesh_scope_end() of the outermost one would. */
int scope_open_outermost(void);  /* MESH_ESTATE: open already */
int scope_close_outermost(void); /* nothing open: 0 */

struct mesh_scope *scope_current(void);      /* NULL: none open */
int scope_depth(const struct mesh_scope *s); /* 1: the outermost */

/* Every public tensor call begins so: false (and the call does nothing and returns NULL) when no scope is open - then
 * the error is MESH_ESTATE - or when the innermost one has failed: then its first failure is this thread's last error
 * again. */
bool scope_enter(const char *public_function);

/* What a call makes on its way goes when it returns, not with the scope: the mark is taken where the call begins, and
 * at its end all that the innermost scope got since is let go of, but for what is kept (NULL: absent).  Nothing older
 * may have left the scope in between (then nothing is let go of), and nobody else may have seen what goes. */
struct object *scope_mark(void);
void scope_sweep(const struct object *mark, struct object *const *kept, int n_kept);

/* Marks the innermost scope failed with this thread's last error (the first failure wins); returns NULL for
 * convenience.  A failure that only this rank sees (err_is_local()) goes to the hook, so that the other ranks hear of
 * it. */
void *scope_fail(int status);

/* Installed by comm when a session starts: tells meshd about a local failure. */
typedef void (*scope_local_failure_fn)(const mesh_error *e);
void scope_set_local_failure_hook(scope_local_failure_fn fn); /* of this thread; NULL: none */

#endif
