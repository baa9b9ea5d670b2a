/* client/dtensor/remesh.c - from one mesh to another, in one exchange of just the elements that change ranks.
 *
 * Pending reductions are done before, on the old mesh, and made after, on the new one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/remesh.h"

#include "dtensor/exchange.h"
#include "dtensor/redistribute.h"

static mesh_placements without_pending(mesh_placements p)
{
    for (int i = 0; i < p.n; i++) {
        p.at[i] = p.at[i].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[i];
    }
    return p;
}

mesh_dtensor *dtensor_remesh(mesh_dtensor *x, mesh_device_mesh *m, const mesh_placements *p)
{
    mesh_placements old = without_pending(x->placements), new = without_pending(*p);
    struct exchange_end from = { x->mesh, x->shape, &old }, to = { m, x->shape, &new };
    struct mesh_tensor *whole = redistribute_run(x, &old);
    struct mesh_tensor *local = whole ? exchange_run(&from, &to, whole) : NULL;
    mesh_dtensor *y = local ? dtensor_new(m, x->shape, x->dtype, &new, local) : NULL;
    tensor_unref(whole);
    return y ? dtensor_redistribute(y, p) : NULL;
}
