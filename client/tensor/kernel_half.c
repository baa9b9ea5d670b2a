/* client/tensor/kernel_half.c - runs any kernel on tensors of 16-bit floats: stored in 16 bits, computed in f32, rounded once.
 *
 * The inputs are widened, the kernel fills f32 results, and those are rounded to the dtype that was asked for.  The copies
 * live as long as the call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tensor/kernels.h"

static bool is_half(const struct mesh_tensor *t)
{
    return t != NULL && (t->dtype == MESH_F16 || t->dtype == MESH_BF16);
}

static bool has_half(const struct kernel_call *c)
{
    bool found = false;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        found = found || is_half(c->in[i]);
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        found = found || is_half(c->out[o]);
    }
    return found;
}

static struct mesh_tensor *cast(const struct mesh_tensor *from, struct mesh_tensor *to)
{
    if (to != NULL) {
        (void)k_cast(&(struct kernel_call){ .in = { from }, .out = { to } }); /* cannot fail: it knows every dtype */
    }
    return to;
}

/* Wide copies of what is half, in their places of *inout; copy[] keeps what is to be freed. */
static int widen(struct kernel_call *inout, struct mesh_tensor **copy)
{
    int r = 0;
    for (int i = 0; r == 0 && i < OP_MAX_INPUTS; i++) {
        if (is_half(inout->in[i])) {
            inout->in[i] = copy[i] = cast(inout->in[i], tensor_new(inout->in[i]->shape, MESH_F32));
            r = copy[i] == NULL ? (int)mesh_last_error()->status : 0;
        }
    }
    for (int o = 0; r == 0 && o < OP_MAX_OUTPUTS; o++) {
        if (is_half(inout->out[o])) {
            inout->out[o] = copy[OP_MAX_INPUTS + o] = tensor_new(inout->out[o]->shape, MESH_F32);
            r = inout->out[o] == NULL ? (int)mesh_last_error()->status : 0;
        }
    }
    return r;
}

int kernel_run(kernel_fn kernel, const struct kernel_call *c)
{
    struct mesh_tensor *copy[OP_MAX_INPUTS + OP_MAX_OUTPUTS] = { NULL };
    struct kernel_call wide = *c;
    if (kernel == k_cast || !has_half(c)) {
        return kernel(c);
    }
    int r = widen(&wide, copy);
    r = r < 0 ? r : kernel(&wide);
    for (int o = 0; r == 0 && o < OP_MAX_OUTPUTS; o++) {
        if (wide.out[o] != c->out[o]) {
            cast(wide.out[o], c->out[o]);
        }
    }
    for (int k = 0; k < OP_MAX_INPUTS + OP_MAX_OUTPUTS; k++) {
        tensor_unref(copy[k]);
    }
    return r;
}
