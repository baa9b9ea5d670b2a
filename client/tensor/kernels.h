/* client/tensor/kernels.h - arithmetic in one process: one function per row of dtensor/ops.def, and the copies that
 * redistribution needs.
 *
 * A kernel gets dense row-major inputs and outputs of the right shapes and dtypes (the dispatcher has checked and allocated
 * them); empty tensors are ordinary.  It returns 0, or a status with the sentence set (err_set_local(): what it found, e.g.
 * a class index out of range, only this rank has seen).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_KERNELS_H
#define TENSOR_KERNELS_H

#include "base/rng.h"
#include "tensor/tensor.h"

#define OP_MAX_INPUTS  4
#define OP_MAX_OUTPUTS 2

/* Arguments of an operator that are not tensors.  Zeroed before use, so that it can be compared and hashed as bytes. */
struct op_attr {
    mesh_shape shape; /* reshape, expand: the global result; sum_to likewise */
    uint32_t dims;    /* reductions: bit d set: dim d goes (dims normalised; all set for a full reduction) */
    int32_t keepdim;
    int32_t dim[2]; /* transpose: both; softmax...: dim[0] */
    double
        value[2]; /* mul_scalar, add_scalar: value[0]; mean: value[0] = 1 / global count; cross_entropy: value[0] label
                         smoothing, value[1] number of classes */
    int64_t index[2]; /* cross_entropy: index[0] the ignored class */
    int32_t mode;     /* gelu: 1 tanh approximation; cross_entropy: mesh_reduction */
    int32_t reserved;
};

struct kernel_call {
    const struct mesh_tensor *in[OP_MAX_INPUTS]; /* NULL: an optional input that is absent (linear's bias) */
    struct mesh_tensor *out[OP_MAX_OUTPUTS];
    const struct op_attr *attr;
    /* Where this rank's part of input 0 begins in the global tensor: offset[d] of dim d.  Messages count rows by it. */
    int64_t offset[MESH_MAX_NDIM];
};
typedef int (*kernel_fn)(const struct kernel_call *c);

/* Elementwise: f32 f64, and i8 u8 i32 i64 (which wrap) except where a result would not be whole (div, gelu, tanh:
 * MESH_EUNSUPPORTED).  Binary ones broadcast in[0] and in[1] to out, which must not be one of them. */
int k_add(const struct kernel_call *c); /* a + b */
int k_sub(const struct kernel_call *c);
int k_mul(const struct kernel_call *c);
int k_div(const struct kernel_call *c); /* a / b */
int k_neg(const struct kernel_call *c);
int k_mul_scalar(const struct kernel_call *c); /* x * value[0] */
int k_add_scalar(const struct kernel_call *c); /* x + value[0] */
int k_copy(const struct kernel_call *c);       /* also reshape: the bytes of in[0] */
int k_relu(const struct kernel_call *c);
int k_gelu(const struct kernel_call *c); /* mode 0: erf; 1: tanh approximation */
int k_tanh(const struct kernel_call *c);
int k_relu_backward(const struct kernel_call *c); /* in: dy, x */
int k_gelu_backward(const struct kernel_call *c); /* in: dy, x; mode */
int k_tanh_backward(const struct kernel_call *c); /* in: dy, y */

/* Matrix products by OpenBLAS (f32 f64), plain loops for integers. */
int k_matmul(
    const struct kernel_call *c); /* a [*,m,k] b [*,k,n]: leading dims broadcast; a or b may be 1-d, as NumPy */
int k_linear(const struct kernel_call *c);             /* x [*,k], w [n,k], bias [n] or NULL -> [*,n] */
int k_linear_grad_input(const struct kernel_call *c);  /* dy [*,n], w [n,k] -> [*,k] */
int k_linear_grad_weight(const struct kernel_call *c); /* dy [*,n], x [*,k] -> [n,k]: summed over * */

/* Moving. */
int k_transpose(const struct kernel_call *c); /* swaps dim[0] and dim[1] */
int k_expand(const struct kernel_call *c);    /* in[0] broadcast to the shape of out[0] */

/* Reductions. */
int k_sum(const struct kernel_call *c);        /* over dims; empty: 0; floats accumulate in f64, integers in 64 bits */
int k_sum_scaled(const struct kernel_call *c); /* sum * value[0]: mean with value[0] = 1 / global count */
int k_sum_to(const struct kernel_call *c);     /* adjoint of expand: sums in[0] down to the shape of out[0] */

/* Along dim[0]; the other dims are rows. */
int k_softmax(const struct kernel_call *c);
int k_log_softmax(const struct kernel_call *c);
int k_softmax_backward(const struct kernel_call *c);     /* in: dy, y */
int k_log_softmax_backward(const struct kernel_call *c); /* in: dy, y */

/* logits [n,c], [c] or [n,c,d...] (f32 f64), target the same without c (integers); per row the loss with smoothing
 * (value[0]) over all value[1] classes; ignored rows (index[0]) count 0.
 *   cross_entropy_rows  -> out[0] the loss per row (reduction none)
 *   cross_entropy_sum   -> out[0] [] the sum of the rows' losses, out[1] [] how many rows counted
 *   cross_entropy_grad  in: scale, logits, target -> dlogits; scale [] (sum, mean: d of every counted row) or [n] (none) */
int k_cross_entropy_rows(const struct kernel_call *c);
int k_cross_entropy_sum(const struct kernel_call *c);
int k_cross_entropy_grad(const struct kernel_call *c);

/* In-place update of one parameter's local part (all the same shape): no operator, no rule.
 *   g' = g + weight_decay p;  m = momentum m + g' (m = g' at the first step);  p -= lr (nesterov ? g' + momentum m : m) */
struct sgd_step {
    double lr, momentum, weight_decay;
    bool nesterov, is_first;
};
int k_sgd_step(struct mesh_tensor *p, const struct mesh_tensor *g, struct mesh_tensor *m, const struct sgd_step *s);

/* Likewise, with both moments, zero before step number 1:
 *   p -= lr weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
 *   p -= lr (m / (1 - beta1^number)) / (sqrt(v / (1 - beta2^number)) + eps) */
struct adamw_step {
    double lr, beta1, beta2, eps, weight_decay;
    uint64_t number;
};
int k_adamw_step(struct mesh_tensor *p, const struct mesh_tensor *g, struct mesh_tensor *m, struct mesh_tensor *v,
                 const struct adamw_step *s);

/* Boxes: a part of a dense tensor, given by offset and extent per dim. */
struct box {
    int ndim;
    int64_t offset[MESH_MAX_NDIM], extent[MESH_MAX_NDIM];
};
/* Copies the box of src (shape src_shape) to dense dst, and back. */
void box_pack(void *dst, const void *src, mesh_shape src_shape, const struct box *b, size_t item_bytes);
void box_unpack(void *dst, mesh_shape dst_shape, const void *src, const struct box *b, size_t item_bytes);

/* Filling: element i of out is a function of its *global* row-major index: out is the box of a tensor of shape global. */
enum fill_kind { FILL_VALUE, FILL_UNIFORM, FILL_NORMAL };
struct fill {
    enum fill_kind kind;
    double a, b; /* value; low, high; mean, deviation */
    struct rng_key key;
};
int tensor_fill(struct mesh_tensor *out, mesh_shape global, const struct box *b, const struct fill *f);

#endif
