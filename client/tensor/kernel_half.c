/* client/tensor/kernel_half.c - runs any kernel on tensors of 16-bit floats: stored in 16 bits, computed in f32,
 * rounded once.
 *
 * The inputs are widened, the kernel fills f32 results, and those are rounded to the dtype that was asked for.  The
 * copies live as long as the call; a pointwise kernel's are of PART elements, or of one row (dim 0) of the result, and
 * stay in a cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/scratch.h"
#include "tensor/shape.h"

#define PART ((int64_t)16384)

static bool is_half(const struct mesh_tensor *t)
{
    return t != NULL && (t->dtype == MESH_F16 || t->dtype == MESH_BF16);
}

bool kernel_has_half(const struct kernel_call *c)
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
            r = copy[i] == NULL ? err_status() : 0;
        }
    }
    for (int o = 0; r == 0 && o < OP_MAX_OUTPUTS; o++) {
        if (is_half(inout->out[o])) {
            inout->out[o] = copy[OP_MAX_INPUTS + o] = tensor_new(inout->out[o]->shape, MESH_F32);
            r = inout->out[o] == NULL ? err_status() : 0;
        }
    }
    return r;
}

static int run_wide(kernel_fn kernel, const struct kernel_call *c)
{
    struct mesh_tensor *copy[OP_MAX_INPUTS + OP_MAX_OUTPUTS] = { NULL };
    struct kernel_call wide = *c;
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

/* --- kernels that compute every element of the result from the elements in its place: some rows at a time --------- */

static const kernel_fn pointwise[] = {
    k_add,
    k_sub,
    k_mul,
    k_div,
    k_neg,
    k_mul_scalar,
    k_add_scalar,
    k_relu,
    k_gelu,
    k_tanh,
    k_relu_backward,
    k_gelu_backward,
    k_tanh_backward,
    k_eq,
    k_ne,
    k_lt,
    k_le,
    k_gt,
    k_ge,
    k_logical_and,
    k_logical_or,
    k_logical_not,
    k_isnan,
    k_maximum,
    k_minimum,
    k_pow,
    k_lerp,
    k_maximum_backward,
    k_minimum_backward,
    k_pow_backward,
    k_pow_backward_exponent,
    k_where,
    k_masked_fill,
#define UNARY(name, ...) k_##name, k_##name##_backward,
#include "tensor/unary.def"
};

static bool is_pointwise(kernel_fn kernel)
{
    for (size_t i = 0; i < ARRAY_SIZE(pointwise); i++) {
        if (pointwise[i] == kernel) {
            return true;
        }
    }
    return false;
}

/* Places [begin, begin + n) of dim 0 of t, where t has that dim as the result does; else all of t, which is
 * broadcast. */
static struct mesh_tensor part_of(const struct mesh_tensor *t, const struct mesh_tensor *out, int64_t begin, int64_t n)
{
    struct mesh_tensor part = *t;
    if (t->shape.ndim == out->shape.ndim && t->shape.dim[0] == out->shape.dim[0]) {
        int64_t row = t->n / t->shape.dim[0];
        part.shape.dim[0] = n;
        part.n = n * row;
        part.data = (char *)t->data + (size_t)(begin * row) * dtype_size(t->dtype);
    }
    return part;
}

/* t itself, or a tensor of f32 like it at *scratch, which moves on. */
static struct mesh_tensor wide_of(const struct mesh_tensor *t, float **scratch)
{
    struct mesh_tensor wide = *t;
    if (is_half(t)) {
        wide.dtype = MESH_F32;
        wide.data = *scratch;
        *scratch += t->n;
    }
    return wide;
}

static int run_part(kernel_fn kernel, const struct kernel_call *c, int64_t begin, int64_t n, float *scratch)
{
    struct mesh_tensor in[OP_MAX_INPUTS], out = part_of(c->out[0], c->out[0], begin, n);
    struct mesh_tensor wide_out = wide_of(&out, &scratch);
    struct kernel_call part = *c;
    for (int i = 0; i < OP_MAX_INPUTS && c->in[i] != NULL; i++) {
        struct mesh_tensor from = part_of(c->in[i], c->out[0], begin, n);
        in[i] = wide_of(&from, &scratch);
        part.in[i] = is_half(&from) ? cast(&from, &in[i]) : &in[i];
    }
    part.out[0] = &wide_out;
    int r = kernel(&part);
    if (r == 0 && is_half(&out)) {
        cast(&wide_out, &out);
    }
    return r;
}

/* Of f32 copies of n places of dim 0. */
static size_t scratch_bytes(const struct kernel_call *c, int64_t n)
{
    int64_t elements = part_of(c->out[0], c->out[0], 0, n).n;
    for (int i = 0; i < OP_MAX_INPUTS && c->in[i] != NULL; i++) {
        elements += part_of(c->in[i], c->out[0], 0, n).n;
    }
    return (size_t)elements * sizeof(float);
}

static bool have_one_shape(const struct kernel_call *c)
{
    bool same = true;
    for (int i = 0; i < OP_MAX_INPUTS && c->in[i] != NULL; i++) {
        same = same && shape_equal(c->in[i]->shape, c->out[0]->shape);
    }
    return same;
}

/* As many rows at a time as PART elements have; where all shapes are the same a row may as well be one element. */
static int run_by_parts(kernel_fn kernel, const struct kernel_call *c)
{
    struct mesh_tensor in[OP_MAX_INPUTS], out = *c->out[0];
    struct kernel_call flat = *c;
    if (have_one_shape(c)) {
        flat.out[0] = &out;
        out.shape = MESH_SHAPE(out.n);
        for (int i = 0; i < OP_MAX_INPUTS && c->in[i] != NULL; i++) {
            in[i] = *c->in[i];
            in[i].shape = out.shape;
            flat.in[i] = &in[i];
        }
    }
    int64_t rows = flat.out[0]->shape.dim[0], at_once = MAX(PART / (flat.out[0]->n / rows), 1);
    size_t bytes = scratch_bytes(&flat, at_once);
    float *scratch = mem_alloc(bytes);
    int r = scratch == NULL ? err_no_memory(bytes, "f32 copies of 16-bit floats") : 0;
    for (int64_t begin = 0; r == 0 && begin < rows; begin += at_once) {
        r = run_part(kernel, &flat, begin, MIN(at_once, rows - begin), scratch);
    }
    mem_free(scratch);
    return r;
}

static bool goes_by_parts(kernel_fn kernel, const struct kernel_call *c)
{
    return c->out[0]->n > PART && c->out[0]->shape.ndim > 0 && is_pointwise(kernel);
}

size_t kernel_half_scratch(kernel_fn kernel, const struct kernel_call *c)
{
    int64_t most = goes_by_parts(kernel, c) ? MAX(PART, c->out[0]->n / c->out[0]->shape.dim[0]) : INT64_MAX;
    int64_t elements = 0;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        elements += c->in[i] != NULL ? MIN(c->in[i]->n, most) : 0;
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        elements += c->out[o] != NULL ? MIN(c->out[o]->n, most) : 0;
    }
    return (size_t)elements * sizeof(float);
}

int kernel_run(kernel_fn kernel, const struct kernel_call *c)
{
    if (kernel == k_cast || !kernel_has_half(c)) {
        return kernel(c);
    }
    return goes_by_parts(kernel, c) ? run_by_parts(kernel, c) : run_wide(kernel, c);
}
