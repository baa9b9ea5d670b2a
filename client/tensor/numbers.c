/* client/tensor/numbers.c - what a dtype can hold, and the sentence for a dtype that a kernel does not know.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/numbers.h"

#include <math.h>

#include "base/dtype.h"
#include "base/error.h"

int unsupported_dtype(const char *kernel, mesh_dtype t)
{
    return err_set(MESH_EUNSUPPORTED, "%s does not work on tensors of dtype %s", kernel, dtype_name(t));
}

bool number_fits(mesh_dtype t, double v)
{
    bool has_sign = t != MESH_U8;
    double limit = ldexp(1.0, (int)dtype_size(t) * 8 - (has_sign ? 1 : 0));
    return dtype_kind(t) != DTYPE_INT || (floor(v) == v && v < limit && v >= (has_sign ? -limit : 0));
}

int64_t number_saturated(mesh_dtype t, double v)
{
    bool has_sign = t != MESH_U8;
    int bits = (int)dtype_size(t) * 8 - (has_sign ? 1 : 0);
    int64_t greatest = (int64_t)((UINT64_C(1) << bits) - 1), least = has_sign ? -greatest - 1 : 0;
    double limit = ldexp(1.0, bits);
    return isnan(v) ? 0 : v >= limit ? greatest : v <= (has_sign ? -limit : 0) ? least : (int64_t)v;
}
