/* client/dtensor/print.c - the values of a tensor as nested lists, long dims by their ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/inspect.h>

#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/dtensor.h"
#include "tensor/shape.h"

#define SHOWN_WHOLE 1000 /* elements */
#define SHOWN_ENDS  3    /* of a dim of a longer tensor, at each end */

static void print_number(FILE *f, const struct mesh_tensor *t, int64_t i)
{
    const char *at = (const char *)t->data + (size_t)i * dtype_size(t->dtype);
    if (t->dtype == MESH_I64) {
        int64_t v;
        memcpy(&v, at, sizeof v);
        fprintf(f, "%" PRId64, v);
    } else {
        fprintf(f, "%.*g", t->dtype == MESH_F64 ? 10 : 6, dtensor_number(at, t->dtype));
    }
}

/* The elements below index `at` of dim d - 1, as a list; nesting is bounded by MESH_MAX_NDIM. */
static void print_dim(FILE *f, const struct mesh_tensor *t, int d, int64_t at)
{
    if (d == t->shape.ndim) {
        print_number(f, t, at);
        return;
    }
    int64_t n = t->shape.dim[d];
    bool is_inner = d == t->shape.ndim - 1;
    bool is_cut = t->n > SHOWN_WHOLE && n > 2 * SHOWN_ENDS;
    fprintf(f, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            fprintf(f, "%s%*s", is_inner ? ", " : ",\n", is_inner ? 0 : d + 1, "");
        }
        if (is_cut && i == SHOWN_ENDS) {
            fprintf(f, "..., ");
            i = n - SHOWN_ENDS;
        }
        print_dim(f, t, d + 1, at * n + i);
    }
    fprintf(f, "]");
}

int mesh_print(mesh_dtensor *x, FILE *f)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    struct mesh_tensor *whole = x ? dtensor_full(x) : NULL;
    int r = whole ? 0 : x ? err_status() : err_set(MESH_EINVAL, "the tensor is NULL");
    if (r == 0 && f) {
        char text[DTENSOR_TEXT_BYTES];
        fprintf(f, "%s\n", dtensor_text(x, text, sizeof text));
        if (x->mesh->is_member) {
            print_dim(f, whole, 0, 0);
            fprintf(f, "\n");
        }
        r = ferror(f) ? err_set_local(MESH_EIO, "print: the file does not take what is written") : 0;
    }
    tensor_unref(whole);
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}
