/* client/examples/train_2d.c - train an MLP on a 2-D mesh: data parallel x tensor parallel.
 *
 *     meshctl run -n 8 -- ./train_2d
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <mesh/shorthand.h>
#include <stdio.h>
#include "batch.h" /* yours: images [B,784], labels [B] */

int main(void)
{
    if (mesh_init(.timeout_ms = 30000) < 0)
        return mesh_perror("mesh_init"), 1;

    mesh_device_mesh *mesh = mesh_init_device_mesh("cpu", Shape(2, 4), Names("dp", "tp"));
    mesh_module *mlp = mesh_nn_sequential({ "up", mesh_nn_linear(mesh, 784, 1024) }, { "gelu", mesh_nn_gelu() },
                                          { "down", mesh_nn_linear(mesh, 1024, 10) });
    mesh_parallelize_module(mlp, "tp", { "up", Colwise() }, { "down", Rowwise() });
    mesh_optimizer *sgd = mesh_sgd(mlp, .lr = 0.1, .momentum = 0.9);

    mesh_scope *step = mesh_scope_begin();
    for (int i = 0; i < 1000 && mesh_scope_next(step); i++) {
        struct batch b = next_batch(i, mesh_get_local_rank(mesh, "dp"));
        mesh_dtensor *x = mesh_from_local(b.images, mesh, Placements(Shard(0), Replicate()));
        mesh_dtensor *t = mesh_from_local(b.labels, mesh, Placements(Shard(0), Replicate()));

        mesh_dtensor *loss = mesh_cross_entropy(mesh_forward(mlp, x), t);
        mesh_backward(loss);
        mesh_optimizer_step(sgd);

        double value = mesh_item(loss); /* collective: all ranks ask, rank 0 prints */
        if (i % 100 == 0 && mesh_rank() == 0)
            printf("step %4d  loss %.4f\n", i, value);
    }
    int failed = mesh_scope_end(step) < 0;
    if (failed)
        mesh_perror("training");
    return mesh_finalize() < 0 || failed;
}
