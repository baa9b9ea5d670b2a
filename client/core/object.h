/* client/core/object.h - what belongs to a scope: a reference count and a link into the scope's list.
 *
 * A new object has one reference, owned by the innermost scope of its thread (or by its maker, when made with
 * object_init_unscoped()).  Whoever stores a pointer beyond the call takes a reference of its own.
 *
 *      scope A --newest--> o5 -> o2 -> o1          a scope lists what it owns, newest first: in that order
 *        '-- scope B --newest--> o4 -> o3          it lets go of them when it ends
 *
 * References may be taken and dropped on any thread; ownership (init, release, keep, disown) changes only on the thread
 * whose scope it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_OBJECT_H
#define CORE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>

struct mesh_scope;
struct object;

struct object_class {
    const char *name;
    void (*free)(struct object *o); /* the last reference went */
    /* The owning scope ends (NULL: nothing to do): e.g. a work handle waits, bounded, for its completion.  A status with
     * the error set.  It may not end the scope's ownership of this or of another object. */
    int (*settle)(struct object *o);
};

struct object {
    const struct object_class *class_;
    atomic_int references;
    struct mesh_scope *scope;   /* NULL: not owned by one */
    struct object *next, *prev; /* older, newer; of the same scope */
};

void object_init(struct object *o, const struct object_class *c); /* owned by the innermost scope; must be open */
void object_init_unscoped(struct object *o, const struct object_class *c);
struct object *object_ref(struct object *o); /* returns o */
void object_unref(struct object *o);         /* NULL is fine */
void object_release(struct object *o);       /* ends the scope's ownership now; nothing when no scope owns it */
int object_keep(struct object *o);           /* moves ownership to the enclosing scope; MESH_ESTATE: there is none */
void object_disown(struct object *o);        /* the scope's reference becomes the caller's */

#endif
