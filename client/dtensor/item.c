/* client/dtensor/item.c - the one number of a tensor of one element.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/dtensor.h"
#include "tensor/shape.h"

double dtensor_number(const void *element, mesh_dtype t)
{
    union {
        float f32;
        double f64;
        uint16_t half;
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        int64_t i64;
    } v = { .i64 = 0 };
    memcpy(&v, element, dtype_size(t));
    switch (t) {
    case MESH_F32:
        return (double)v.f32;
    case MESH_F64:
        return v.f64;
    case MESH_F16:
        return (double)float_from_f16(v.half);
    case MESH_BF16:
        return (double)float_from_bf16(v.half);
    case MESH_I8:
        return v.i8;
    case MESH_U8:
    case MESH_BOOL:
        return v.u8;
    case MESH_I32:
        return v.i32;
    case MESH_I64:
        return (double)v.i64;
    }
    return NAN;
}

static int item(mesh_dtensor *x, double *ret_value)
{
    char text[DTENSOR_TEXT_BYTES];
    if (!x) {
        return err_set(MESH_EINVAL, "the tensor is NULL");
    }
    if (shape_numel(x->shape) != 1) {
        return err_set(MESH_ESHAPE, "item: %s has %lld elements, not one: mesh_full_tensor() gives them all",
                       dtensor_text(x, text, sizeof text), (long long)shape_numel(x->shape));
    }
    struct mesh_tensor *whole = dtensor_full(x);
    if (!whole) {
        return err_status();
    }
    *ret_value = x->mesh->is_member ? dtensor_number(whole->data, whole->dtype) : NAN;
    tensor_unref(whole);
    return 0;
}

double mesh_item(mesh_dtensor *scalar)
{
    double value = NAN;
    if (!scope_enter(__func__)) {
        return NAN;
    }
    int r = item(scalar, &value);
    if (r < 0) {
        scope_fail(r);
        return NAN;
    }
    return value;
}
