/* client/examples/batch.h - the batches that train_2d learns from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_BATCH_H
#define EXAMPLES_BATCH_H

#include <mesh/tensor.h>

struct batch {
    mesh_tensor *images; /* [32,784] f32 */
    mesh_tensor *labels; /* [32] i64, 0..9 */
};

/* The rows of one training step for one coordinate of the data-parallel dim; the innermost scope owns them, NULL after
 * a failure. */
struct batch next_batch(int step, int dp_rank);

#endif
