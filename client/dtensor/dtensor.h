/* client/dtensor/dtensor.h - the inside of a DTensor: global facts, this rank's part, a hook for the tape.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_DTENSOR_H
#define DTENSOR_DTENSOR_H

#include <mesh/dtensor.h>

#include "dtensor/device_mesh.h"
#include "dtensor/layout.h"

struct grad_node; /* autograd's; opaque here */

struct mesh_dtensor {
    struct object object;
    mesh_device_mesh *mesh;
    mesh_shape shape; /* global */
    mesh_dtype dtype;
    mesh_placements placements; /* normalised */
    struct mesh_tensor *local;  /* owned reference; shape (0) on ranks outside the mesh */

    bool requires_grad;
    struct grad_node *node; /* how it was computed; NULL: a leaf.  Owned reference */
    int node_output;
    struct mesh_dtensor *grad;       /* accumulated; owned reference, unscoped */
    void *hooks;                     /* of a leaf: autograd's, one block of memory; owned */
    mesh_placements grad_placements; /* from_local: how the local gradient is laid out; n 0: like the tensor */
};

/* Takes the local reference (also on failure).  The result belongs to the innermost scope; NULL: error set. */
mesh_dtensor *dtensor_new(mesh_device_mesh *m, mesh_shape shape, mesh_dtype t, const mesh_placements *p,
                          struct mesh_tensor *local);
mesh_dtensor *dtensor_ref(mesh_dtensor *x);
void dtensor_unref(mesh_dtensor *x); /* NULL is fine */

/* Another handle of the same local value (no copy, no tape): detach, a change of name only. */
mesh_dtensor *dtensor_alias(mesh_dtensor *x);

/* Installed by autograd (process-wide, constant): frees the node and the gradient of a dying tensor. */
typedef void (*dtensor_node_free_fn)(struct grad_node *node);
void dtensor_set_node_free(dtensor_node_free_fn fn);

/* "[64,784] f32 [S(0), R] on (dp=2, tp=4)" */
#define DTENSOR_TEXT_BYTES 320
const char *dtensor_text(const mesh_dtensor *x, char *buf, size_t cap);

/* Without tape; the public functions of the same names (autograd/public_ops.c) add it. */
mesh_dtensor *dtensor_from_local(struct mesh_tensor *local, mesh_device_mesh *m, mesh_placements p,
                                 const mesh_from_local_options *o);
mesh_dtensor *dtensor_redistribute(mesh_dtensor *x, const mesh_placements *p); /* p normalised; an alias when equal */
mesh_dtensor *dtensor_redistribute_async(mesh_dtensor *x, const mesh_placements *p); /* the elements may come later */
struct mesh_tensor *dtensor_full(mesh_dtensor *x);                                   /* reference of the caller */

double dtensor_number(const void *element, mesh_dtype t); /* as a double */

/* Factories used by layers above: a tensor filled by (seed, call, global index), allocating only the local part. */
mesh_dtensor *dtensor_filled(mesh_shape s, mesh_dtype t, mesh_device_mesh *m, const mesh_placements *p,
                             const struct fill *f);
/* This rank's part of such a tensor, already there. */
int dtensor_fill(struct mesh_tensor *local, mesh_shape s, const mesh_device_mesh *m, const mesh_placements *p,
                 const struct fill *f);
struct rng_key dtensor_next_key(struct mesh_session *s,
                                uint64_t seed); /* seed 0: the next draw of the session's stream */

#endif
