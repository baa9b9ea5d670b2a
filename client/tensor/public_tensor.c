/* client/tensor/public_tensor.c - the functions of mesh/tensor.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/tensor.h>

#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static int check(mesh_shape shape, mesh_dtype dtype)
{
    if (!dtype_is_valid((int)dtype)) {
        return err_set(MESH_EINVAL, "%d is not a dtype; take one of enum mesh_dtype, e.g. MESH_F32", (int)dtype);
    }
    return shape_check(shape, "tensor");
}

static mesh_tensor *give(struct mesh_tensor *t)
{
    return t == NULL ? scope_fail(err_status()) : tensor_give_to_scope(t);
}

MESH_API mesh_tensor *mesh_tensor_new(mesh_shape shape, mesh_dtype dtype)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = check(shape, dtype);
    return r < 0 ? scope_fail(r) : give(tensor_new_zeroed(shape, dtype));
}

MESH_API mesh_tensor *mesh_tensor_view(void *data, mesh_shape shape, mesh_dtype dtype)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = check(shape, dtype);
    if (r == 0 && data == NULL && shape_numel(shape) > 0) {
        char text[SHAPE_TEXT_BYTES];
        r = err_set(MESH_EINVAL, "the data pointer is NULL, but %s has elements", shape_text(shape, text, sizeof text));
    }
    return r < 0 ? scope_fail(r) : give(tensor_view(data, shape, dtype));
}

/* The getters answer for a good tensor also in a scope that has failed, so that a pointer is never NULL by surprise. */
static bool is_missing(const mesh_tensor *t, const char *public_function)
{
    if (t == NULL && scope_enter(public_function)) {
        scope_fail(err_set(MESH_EINVAL, "the tensor is NULL"));
    }
    return t == NULL;
}

MESH_API void *mesh_tensor_data(mesh_tensor *t)
{
    return is_missing(t, __func__) ? NULL : t->data;
}

MESH_API mesh_shape mesh_tensor_shape(const mesh_tensor *t)
{
    return is_missing(t, __func__) ? MESH_SCALAR_SHAPE : t->shape;
}

MESH_API mesh_dtype mesh_tensor_dtype(const mesh_tensor *t)
{
    return is_missing(t, __func__) ? (mesh_dtype)0 : t->dtype;
}
