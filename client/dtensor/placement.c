/* client/dtensor/placement.c - lists of placements: comparing, printing, checking.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/layout.h"

#include <stdio.h>

#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"

static bool placement_equal(mesh_placement a, mesh_placement b)
{
    if (placement_is_shard(a)) { /* strided into one chunk is not strided */
        return placement_splits(b, a.dim) && placement_factor(a) == placement_factor(b);
    }
    return a.kind == b.kind && (a.kind != MESH_IS_PARTIAL || a.op == b.op);
}

bool mesh_placements_equal(mesh_placements a, mesh_placements b)
{
    if (a.n != b.n) {
        return false;
    }
    for (int i = 0; i < a.n && i < MESH_MAX_MESH_NDIM; i++) {
        if (!placement_equal(a.at[i], b.at[i])) {
            return false;
        }
    }
    return true;
}

const char *placement_text(mesh_placement p, char *buf, size_t cap)
{
    switch (p.kind) {
    case MESH_IS_REPLICATE:
        snprintf(buf, cap, "R");
        break;
    case MESH_IS_SHARD:
        snprintf(buf, cap, "S(%d)", p.dim);
        break;
    case MESH_IS_STRIDED_SHARD:
        snprintf(buf, cap, "_S(%d, %d)", p.dim, p.split_factor);
        break;
    case MESH_IS_PARTIAL:
        snprintf(buf, cap, "P(%s)", reduce_op_is_valid((int)p.op) ? reduce_op_name(p.op) : "?");
        break;
    default:
        snprintf(buf, cap, "?");
        break;
    }
    return buf;
}

const char *mesh_placements_text(mesh_placements p, char *buf, size_t cap)
{
    char one[sizeof "_S(-2147483648, -2147483648)"], text[MESH_MAX_MESH_NDIM * (sizeof one + 2) + 2] = "[";
    size_t at = 1;
    for (int i = 0; i < p.n && i < MESH_MAX_MESH_NDIM; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "",
                               placement_text(p.at[i], one, sizeof one));
    }
    snprintf(text + at, sizeof text - at, "]");
    if (buf) {
        snprintf(buf, cap, "%s", text);
    }
    return buf;
}

static int check_shard(const char *what, mesh_shape global, int mesh_dim, mesh_placement *p)
{
    if (p->dim < -global.ndim || p->dim >= global.ndim) {
        char text[24];
        return err_set(MESH_EINVAL, "%s: %s on mesh dim %d, but the tensor has %d dim%s%s", what,
                       placement_text(*p, text, sizeof text), mesh_dim, global.ndim, global.ndim == 1 ? "" : "s",
                       global.ndim == 0 ? ": a scalar is R or Partial" : "");
    }
    if (placement_factor(*p) < 1) {
        return err_set(MESH_EINVAL, "%s: a strided shard of %d chunks on mesh dim %d: at least 1", what,
                       p->split_factor, mesh_dim);
    }
    int d = p->dim < 0 ? p->dim + global.ndim : p->dim;
    *p = placement_factor(*p) == 1 ? mesh_shard(d) : mesh_strided_shard(d, p->split_factor);
    return 0;
}

static int check_partial(const char *what, mesh_dtype t, int mesh_dim, mesh_placement *p)
{
    if (!reduce_op_is_valid((int)p->op)) {
        return err_set(MESH_EINVAL, "%s: Partial on mesh dim %d with unknown reduction %d", what, mesh_dim, (int)p->op);
    }
    bool is_bitwise = p->op == MESH_BAND || p->op == MESH_BOR || p->op == MESH_BXOR;
    bool is_float = dtype_kind(t) == DTYPE_FLOAT;
    if ((p->op == MESH_AVG && !is_float) || (is_bitwise && is_float)) {
        return err_set(MESH_EPLACEMENT, "%s: P(%s) on mesh dim %d has no meaning for %s", what, reduce_op_name(p->op),
                       mesh_dim, dtype_name(t));
    }
    *p = mesh_partial(p->op);
    return reduce_check(t, p->op);
}

bool placements_mix_reductions(const mesh_placements *p)
{
    mesh_reduce_op first = 0;
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind != MESH_IS_PARTIAL) {
            continue;
        }
        mesh_reduce_op op = p->at[i].op == MESH_AVG ? MESH_SUM : p->at[i].op;
        if (first != 0 && op != first) {
            return true;
        }
        first = op;
    }
    return false;
}

int placements_check(const char *what, mesh_shape global, mesh_dtype t, int mesh_ndim, mesh_placements *inout)
{
    if (inout->n != mesh_ndim) {
        return err_set(MESH_EINVAL, "%s: %d placement%s for a mesh of %d dim%s: give one per mesh dim", what, inout->n,
                       inout->n == 1 ? "" : "s", mesh_ndim, mesh_ndim == 1 ? "" : "s");
    }
    mesh_placements p = { .n = mesh_ndim };
    for (int i = 0; i < mesh_ndim; i++) {
        int r = 0;
        p.at[i] = inout->at[i];
        if (placement_is_shard(p.at[i])) {
            r = check_shard(what, global, i, &p.at[i]);
        } else if (p.at[i].kind == MESH_IS_PARTIAL) {
            r = check_partial(what, t, i, &p.at[i]);
        } else if (p.at[i].kind == MESH_IS_REPLICATE) {
            p.at[i] = mesh_replicate();
        } else {
            r = err_set(MESH_EINVAL, "%s: placement of mesh dim %d has unknown kind %d", what, i, (int)p.at[i].kind);
        }
        if (r < 0) {
            return r;
        }
    }
    if (placements_mix_reductions(&p)) {
        char text[96];
        return err_set(MESH_EPLACEMENT, "%s: %s mixes pending reductions that do not commute: only sum with avg", what,
                       mesh_placements_text(p, text, sizeof text));
    }
    *inout = p;
    return 0;
}
