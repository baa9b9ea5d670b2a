/* tests/truth/programs_compare.c - random programs: a tensor's elements, kept and compared with.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "truth/programs.h"

double larger(double a, double b)
{
    return a > b ? a : b;
}

static mesh_dtensor *as_plain(mesh_dtensor *x)
{
    mesh_dtype t = mesh_dtype_of(x);
    return mesh_cast(mesh_detach(x), is_floating(t) ? MESH_F64 : MESH_I64);
}

void keep_record(struct record *r, mesh_dtensor *x)
{
    mesh_tensor *t = mesh_full_tensor(as_plain(x));
    free(r->data);
    *r = (struct record){ .shape = mesh_shape_of(x), .dtype = mesh_dtype_of(x), .n = count_of(mesh_shape_of(x)) };
    r->data = calloc((size_t)r->n + 1, 8);
    memcpy(r->data, mesh_tensor_data(t), (size_t)r->n * 8);
    r->is_finite = true;
    for (int64_t i = 0; is_floating(r->dtype) && i < r->n; i++) {
        double v = fabs(((double *)r->data)[i]);
        r->is_finite &= isfinite(v);
        r->largest = isfinite(v) ? larger(r->largest, v) : r->largest;
    }
}

/* Down to 8, by a power of two: exact. */
static bool near(const struct record *r, int64_t i, double v, double allowed)
{
    double w = ((double *)r->data)[i];
    return v == w || (isnan(v) && isnan(w)) || fabs(v - w) <= allowed;
}

int64_t differs(const struct record *r, mesh_dtensor *x, double scale, double allowed, double *ret_got)
{
    mesh_tensor *t = mesh_full_tensor(as_plain(x));
    if (mesh_get_coordinate(mesh_device_mesh_of(x)) == NULL) {
        return -1;
    }
    const void *data = t == NULL ? NULL : mesh_tensor_data(t);
    for (int64_t i = 0; i < r->n; i++) {
        if (data == NULL || (is_floating(r->dtype) ? !near(r, i, scale * ((const double *)data)[i], allowed)
                                                   : ((const int64_t *)data)[i] != ((int64_t *)r->data)[i])) {
            *ret_got = data == NULL            ? (double)NAN
                       : is_floating(r->dtype) ? scale * ((const double *)data)[i]
                                               : (double)((const int64_t *)data)[i];
            return i;
        }
    }
    return -1;
}
