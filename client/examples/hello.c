/* client/examples/hello.c - every rank of a job says who it is.
 *
 *     meshctl run -n 4 -- ./hello
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>

int main(void)
{
    if (mesh_init() < 0) {
        mesh_perror("mesh_init");
        return 1;
    }
    printf("hello from rank %d of %d\n", mesh_rank(), mesh_world_size());
    return mesh_finalize() < 0;
}
