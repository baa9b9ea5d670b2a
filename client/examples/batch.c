/* client/examples/batch.c - makes up images: ten faint patterns, one per class, under noise.
 * SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

enum { ROWS = 32, PIXELS = 784, CLASSES = 10 };

/* Knuth's linear congruential generator; the upper bits as a number in [0, 1). */
static float draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) / (float)(1 << 24);
}

static void draw_image(float *image, int64_t label, uint64_t *noise)
{
    uint64_t pattern = (uint64_t)label + 1;
    for (int i = 0; i < PIXELS; i++) {
        float shape = draw(&pattern) > 0.5F ? 0.1F : 0.0F;
        image[i] = shape + draw(noise) - 0.5F;
    }
}

struct batch next_batch(int step, int dp_rank)
{
    struct batch b = { .images = mesh_tensor_new(MESH_SHAPE(ROWS, PIXELS), MESH_F32),
                       .labels = mesh_tensor_new(MESH_SHAPE(ROWS), MESH_I64) };
    if (b.images == NULL || b.labels == NULL) {
        return b;
    }
    float *images = mesh_tensor_data(b.images);
    int64_t *labels = mesh_tensor_data(b.labels);
    uint64_t noise = (uint64_t)(step + 1) * 1000 + (uint64_t)dp_rank;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = (int64_t)(draw(&noise) * CLASSES);
        draw_image(images + (size_t)i * PIXELS, labels[i], &noise);
    }
    return b;
}
