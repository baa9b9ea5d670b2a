/* proto/base/dtype.c - the table of dtypes and reductions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

#include "base/util.h"

/* clang-format off */
static const struct dtype_row {
    const char     *name;
    size_t          size; /* bytes */
    enum dtype_kind kind;
} dtypes[] = {
    [MESH_F32]  = { "f32",  4, DTYPE_FLOAT },
    [MESH_F64]  = { "f64",  8, DTYPE_FLOAT },
    [MESH_F16]  = { "f16",  2, DTYPE_FLOAT },
    [MESH_BF16] = { "bf16", 2, DTYPE_FLOAT },
    [MESH_I8]   = { "i8",   1, DTYPE_INT },
    [MESH_U8]   = { "u8",   1, DTYPE_INT },
    [MESH_I32]  = { "i32",  4, DTYPE_INT },
    [MESH_I64]  = { "i64",  8, DTYPE_INT },
    [MESH_BOOL] = { "bool", 1, DTYPE_BOOL },
};

static const char *const reduce_ops[] = {
    [MESH_SUM] = "sum", [MESH_AVG] = "avg",   [MESH_PROD] = "prod", [MESH_MIN] = "min",
    [MESH_MAX] = "max", [MESH_BAND] = "band", [MESH_BOR] = "bor",   [MESH_BXOR] = "bxor",
};
/* clang-format on */

/* Row 0 belongs to no dtype: a forgotten field must not read as one. */
bool dtype_is_valid(int t)
{
    return t > 0 && (size_t)t < ARRAY_SIZE(dtypes);
}

size_t dtype_size(mesh_dtype t)
{
    return dtype_is_valid((int)t) ? dtypes[t].size : 0;
}

const char *dtype_name(mesh_dtype t)
{
    return dtype_is_valid((int)t) ? dtypes[t].name : "?";
}

enum dtype_kind dtype_kind(mesh_dtype t)
{
    return dtype_is_valid((int)t) ? dtypes[t].kind : DTYPE_BOOL;
}

bool dtype_from_name(const char *name, mesh_dtype *ret_dtype)
{
    for (size_t t = 1; t < ARRAY_SIZE(dtypes); t++) {
        if (strcmp(dtypes[t].name, name) == 0) {
            *ret_dtype = (mesh_dtype)t;
            return true;
        }
    }
    return false;
}

bool reduce_op_is_valid(int op)
{
    return op > 0 && (size_t)op < ARRAY_SIZE(reduce_ops);
}

const char *reduce_op_name(mesh_reduce_op op)
{
    return reduce_op_is_valid((int)op) ? reduce_ops[op] : "?";
}
