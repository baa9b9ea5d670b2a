/* client/dtensor/public_dtensor.c - the public calls that ask about a tensor or end its life: nothing differentiable.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/dtensor.h"

#include <math.h>

#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

static bool enter(const char *function, const mesh_dtensor *x)
{
    if (!scope_enter(function)) {
        return false;
    }
    if (!x) {
        scope_fail(err_set(MESH_EINVAL, "the tensor is NULL"));
        return false;
    }
    return true;
}

mesh_shape mesh_shape_of(const mesh_dtensor *x)
{
    return enter(__func__, x) ? x->shape : (mesh_shape){ .ndim = 0 };
}

mesh_dtype mesh_dtype_of(const mesh_dtensor *x)
{
    return enter(__func__, x) ? x->dtype : (mesh_dtype)0;
}

mesh_device_mesh *mesh_device_mesh_of(const mesh_dtensor *x)
{
    return enter(__func__, x) ? x->mesh : NULL;
}

mesh_placements mesh_placements_of(const mesh_dtensor *x)
{
    return enter(__func__, x) ? x->placements : (mesh_placements){ .n = 0 };
}

mesh_dtensor *mesh_keep(mesh_dtensor *x)
{
    if (!enter(__func__, x)) {
        return NULL;
    }
    int r = object_keep(&x->object);
    return r < 0 ? scope_fail(r) : x;
}

mesh_dtensor *mesh_release(mesh_dtensor *x)
{
    if (x) {
        object_release(&x->object);
    }
    return NULL;
}

int mesh_compute_local_shape_and_offset(mesh_shape shape, const mesh_device_mesh *m, mesh_placements p,
                                        const int *coordinate, mesh_shape *ret_shape, mesh_shape *ret_offset)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    int r = !m ? err_set(MESH_EINVAL, "the mesh is NULL") : shape_check(shape, "the global shape");
    if (r == 0 && (!ret_shape || !ret_offset)) {
        r = err_set(MESH_EINVAL, "%s is NULL: give room for both results", ret_shape ? "ret_offset" : "ret_shape");
    }
    /* the dtype only matters to pending reductions, which do not touch a layout */
    r = r < 0 ? r : placements_check("placements", shape, MESH_F32, m->ndim, &p);
    for (int i = 0; r == 0 && coordinate && i < m->ndim; i++) {
        if (coordinate[i] < 0 || coordinate[i] >= m->size[i]) {
            r = err_set(MESH_EINVAL, "coordinate %d of mesh dim %d is not in 0..%d", coordinate[i], i, m->size[i] - 1);
        }
    }
    if (r < 0) {
        scope_fail(r);
        return r;
    }
    if (!coordinate && !m->is_member) {
        *ret_shape = MESH_SHAPE(0);
        *ret_offset = MESH_SCALAR_SHAPE;
        return 0;
    }
    struct box b;
    layout_box(shape, m->size, coordinate ? coordinate : m->coordinate, &p, &b);
    mesh_shape local = { .ndim = shape.ndim }, offset = { .ndim = shape.ndim };
    for (int d = 0; d < shape.ndim; d++) {
        local.dim[d] = b.extent[d];
        offset.dim[d] = b.offset[d];
    }
    *ret_shape = local;
    *ret_offset = offset;
    return 0;
}
