/* client/examples/all_reduce.c - all ranks add up a vector.
 *
 *     meshctl run -n 4 -- ./all_reduce
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>

int main(void)
{
    if (mesh_init() < 0) {
        mesh_perror("mesh_init");
        return 1;
    }
    float mine = (float)(mesh_rank() + 1);
    float x[4] = { mine, 10 * mine, 100 * mine, 1000 * mine };
    int r = mesh_all_reduce(x, 4, MESH_F32, MESH_SUM, mesh_world());
    if (r < 0) {
        mesh_perror("mesh_all_reduce");
    } else if (mesh_rank() == 0) {
        printf("the sum over %d ranks: %g %g %g %g\n", mesh_world_size(), (double)x[0], (double)x[1], (double)x[2],
               (double)x[3]);
    }
    return mesh_finalize() < 0 || r < 0;
}
