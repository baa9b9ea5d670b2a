/* client/dtensor/dtensor.c - the object: making, sharing, describing, freeing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/dtensor.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/pool.h"
#include "core/scope.h"
#include "dtensor/redistribute.h"
#include "tensor/shape.h"

static _Atomic(dtensor_node_free_fn) node_free; /* a hook of the layer above: the same in every thread */

void dtensor_set_node_free(dtensor_node_free_fn fn)
{
    atomic_store(&node_free, fn);
}

static void free_object(struct object *o)
{
    mesh_dtensor *x = container_of(o, mesh_dtensor, object);
    dtensor_node_free_fn fn = atomic_load(&node_free);
    if (x->node && fn) {
        fn(x->node);
    }
    dtensor_unref(x->grad);
    mem_free(x->hooks);
    tensor_unref(x->local);
    pool_drop(x);
}

static const struct object_class dtensor_class = { .name = "dtensor", .free = free_object };

mesh_dtensor *dtensor_new(mesh_device_mesh *m, mesh_shape shape, mesh_dtype t, const mesh_placements *p,
                          struct mesh_tensor *local)
{
    mesh_dtensor *x = local ? pool_new(mesh_dtensor) : NULL;
    if (!x) {
        if (local) {
            err_no_memory(sizeof *x, "a tensor");
        }
        tensor_unref(local);
        return NULL;
    }
    object_init(&x->object, &dtensor_class);
    x->mesh = m;
    x->shape = (mesh_shape){ .ndim = shape.ndim };
    for (int d = 0; d < shape.ndim; d++) {
        x->shape.dim[d] = shape.dim[d];
    }
    x->dtype = t;
    x->placements = *p;
    x->local = local;
    return x;
}

mesh_dtensor *dtensor_ref(mesh_dtensor *x)
{
    object_ref(&x->object);
    return x;
}

void dtensor_unref(mesh_dtensor *x)
{
    if (x) {
        object_unref(&x->object);
    }
}

mesh_dtensor *dtensor_alias(mesh_dtensor *x)
{
    return dtensor_new(x->mesh, x->shape, x->dtype, &x->placements, tensor_ref(x->local));
}

const char *dtensor_text(const mesh_dtensor *x, char *buf, size_t cap)
{
    char shape[SHAPE_TEXT_BYTES], placements[96], mesh[MESH_TEXT_BYTES];
    snprintf(buf, cap, "%s %s %s on %s", shape_text(x->shape, shape, sizeof shape), dtype_name(x->dtype),
             mesh_placements_text(x->placements, placements, sizeof placements), mesh_text(x->mesh, mesh, sizeof mesh));
    return buf;
}

static mesh_dtensor *redistributed(mesh_dtensor *x, const mesh_placements *p,
                                   struct mesh_tensor *(*run)(const mesh_dtensor *x, const mesh_placements *to))
{
    if (mesh_placements_equal(x->placements, *p)) {
        return dtensor_alias(x);
    }
    struct mesh_tensor *local = run(x, p);
    return local ? dtensor_new(x->mesh, x->shape, x->dtype, p, local) : NULL;
}

mesh_dtensor *dtensor_redistribute(mesh_dtensor *x, const mesh_placements *p)
{
    return redistributed(x, p, redistribute_run);
}

mesh_dtensor *dtensor_redistribute_async(mesh_dtensor *x, const mesh_placements *p)
{
    return redistributed(x, p, redistribute_begin);
}

static mesh_placements all_replicate(int n)
{
    mesh_placements p = { .n = n };
    for (int i = 0; i < n; i++) {
        p.at[i] = mesh_replicate();
    }
    return p;
}

struct mesh_tensor *dtensor_full(mesh_dtensor *x)
{
    mesh_placements whole = all_replicate(x->mesh->ndim);
    return redistribute_run(x, &whole);
}
