/* tests/cases/case_list.c - how the tests of the case list make tensors and look at them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

#include <string.h>

static int64_t numel(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return n;
}

mesh_device_mesh *case_plane(int rows, int columns)
{
    return mesh_init_device_mesh("cpu", SHAPE(rows, columns), MESH_NAMES("a", "b"));
}

int case_refused(mesh_scope *s, mesh_status status, const char *words)
{
    REQUIRE(case_n_calls() == 0);
    int r = mesh_scope_end(s);
    if (r != (int)status || strstr(mesh_last_error()->message, words) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%d \"%s\" is not %d with \"%s\"", r, mesh_last_error()->message,
                              (int)status, words);
    }
    return 0;
}

mesh_tensor *case_tensor(mesh_shape s, const double *values)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    for (int64_t i = 0; t != NULL && i < numel(s); i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)(values != NULL ? values[i] : (double)i);
    }
    return t;
}

mesh_dtensor *case_laid(mesh_device_mesh *m, mesh_shape s, const double *values, mesh_placements p)
{
    return mesh_distribute_same(case_tensor(s, values), m, p);
}

mesh_dtensor *case_from_full(mesh_device_mesh *m, mesh_shape local, double value, mesh_placements p)
{
    mesh_tensor *t = mesh_tensor_new(local, MESH_F32);
    for (int64_t i = 0; t != NULL && i < numel(local); i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)value;
    }
    return mesh_from_local(t, m, p);
}

static double number_at(mesh_tensor *t, int64_t i)
{
    void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F32:
        return (double)((float *)data)[i];
    case MESH_I32:
        return ((int32_t *)data)[i];
    case MESH_I64:
        return (double)((int64_t *)data)[i];
    case MESH_BOOL:
        return ((bool *)data)[i];
    default:
        return ((double *)data)[i];
    }
}

static int holds(mesh_tensor *t, mesh_shape s, const double *values)
{
    REQUIRE(t != NULL);
    mesh_shape got = mesh_tensor_shape(t);
    REQUIRE(got.ndim == s.ndim);
    for (int d = 0; d < s.ndim; d++) {
        REQUIRE(got.dim[d] == s.dim[d]);
    }
    for (int64_t i = 0; i < numel(s); i++) {
        REQUIRE_NEAR(number_at(t, i), values != NULL ? values[i] : (double)i, 1e-6);
    }
    return 0;
}

int case_local_is(mesh_dtensor *x, mesh_shape s, const double *values)
{
    REQUIRE(x != NULL);
    return holds(mesh_to_local(x), s, values);
}

int case_full_is(mesh_dtensor *x, mesh_shape s, const double *values)
{
    REQUIRE(x != NULL);
    return holds(mesh_full_tensor(x), s, values);
}

bool case_lies(const mesh_dtensor *x, mesh_placements p)
{
    return x != NULL && mesh_placements_equal(mesh_placements_of(x), p);
}

uint64_t case_n_calls(void)
{
    uint64_t n = 0;
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        n += mesh_comm_count((mesh_comm_kind)kind);
    }
    return n;
}

uint64_t case_n_bytes(void)
{
    uint64_t n = 0;
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        n += mesh_comm_bytes((mesh_comm_kind)kind);
    }
    return n;
}

int case_elements_are(const char *file, int line, mesh_dtensor *x, const double *want, size_t n)
{
    mesh_tensor *t = x != NULL ? mesh_full_tensor(x) : NULL;
    if (t == NULL || (size_t)numel(mesh_tensor_shape(t)) != n) {
        return ranks_complain(file, line, "no tensor of %zu elements: %s", n, mesh_last_error()->message);
    }
    for (size_t i = 0; i < n; i++) {
        REQUIRE_OK(ranks_near(file, line, number_at(t, (int64_t)i), want[i], 1e-7));
    }
    return 0;
}
