/* client/tensor/tensor.h - a plain array: shape, dtype, shared storage.  Always dense and row-major.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <mesh/tensor.h>

#include "core/object.h"

struct storage {
    atomic_int references;
    void *data;
    size_t bytes;
    bool is_borrowed; /* mesh_tensor_view(): the user's memory */
    bool is_inside;   /* the data follow in the same block */
};

/* What a tensor waits for: its elements are on their way, into memory that outlives it. */
struct tensor_pending {
    int (*finish)(struct tensor_pending *p, struct mesh_tensor *t); /* waits, bounded, and makes the elements right */
    void (*drop)(struct tensor_pending *p);                         /* t has them, or is gone */
};

struct mesh_tensor {
    struct object object;
    mesh_shape shape;
    mesh_dtype dtype;
    int64_t n;  /* elements */
    void *data; /* [n], inside storage */
    struct storage *storage;
    struct tensor_pending *pending; /* NULL: the elements are here */
};

/* NULL: error set.  Not owned by a scope: the caller holds the one reference (tensor_unref(), or tensor_give_to_scope()). */
struct mesh_tensor *tensor_new(mesh_shape shape, mesh_dtype dtype); /* not initialised */
struct mesh_tensor *tensor_new_zeroed(mesh_shape shape, mesh_dtype dtype);
struct mesh_tensor *tensor_share(struct mesh_tensor *t, mesh_shape shape); /* same storage, same number of elements */
struct mesh_tensor *tensor_view(void *data, mesh_shape shape, mesh_dtype dtype); /* borrows data */
void tensor_unref(struct mesh_tensor *t);                                        /* NULL is fine */
struct mesh_tensor *tensor_ref(struct mesh_tensor *t);
struct mesh_tensor *tensor_copy(const struct mesh_tensor *t); /* with elements of its own; t has settled */
/* t, or in its place a copy where it shares memory with source.  Takes the caller's reference, also when it fails. */
struct mesh_tensor *tensor_detached(struct mesh_tensor *t, const struct mesh_tensor *source);
/* The caller's reference becomes the innermost scope's, as for what a public function returns; t is new and unshared. */
struct mesh_tensor *tensor_give_to_scope(struct mesh_tensor *t);
size_t tensor_bytes(const struct mesh_tensor *t);

int tensor_settle_slowly(struct mesh_tensor *t);
/* Before the elements are touched: waits for them.  0, or the status with the error set, as often as it is asked. */
static inline int tensor_settle(struct mesh_tensor *t)
{
    return t == NULL || t->pending == NULL ? 0 : tensor_settle_slowly(t);
}

#endif
