/* client/tensor/kernels.h - arithmetic in one process: one function per row of dtensor/ops.def, and the copies that
 * redistribution needs.
 *
 * A kernel gets dense row-major inputs and outputs of the right shapes and dtypes (the dispatcher has checked and
 * allocated them); empty tensors are ordinary.  It returns 0, or a status with the sentence set (err_set_local(): what
 * it found, e.g.  a class index out of range, only this rank has seen).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_KERNELS_H
#define TENSOR_KERNELS_H

#include "base/rng.h"
#include "tensor/tensor.h"

#define OP_MAX_INPUTS  5
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
    int32_t groups;   /* of a convolution's channels; attention: heads of q per head of k */
    int32_t dilation[2];
};

struct kernel_call {
    const struct mesh_tensor *in[OP_MAX_INPUTS]; /* NULL: an optional input that is absent (linear's bias) */
    struct mesh_tensor *out[OP_MAX_OUTPUTS];
    const struct op_attr *attr;
    /* Where this rank's part of input 0 begins in the global tensor: offset[d] of dim d. */
    int64_t offset[MESH_MAX_NDIM];
    /* For messages: the row (place of dim 0) of the whole that row i of this part is, where they lie in strides.  NULL:
     * row offset[0] + i. */
    int64_t (*row_of)(const void *rows, int64_t i);
    const void *rows;
    const void *user; /* of an operator that a program registered: whose it is */
    /* All of input i where every rank of the job has it: what is wrong with it they all see.  Else NULL. */
    const struct mesh_tensor *whole[OP_MAX_INPUTS];
};
typedef int (*kernel_fn)(const struct kernel_call *c);

/* Calls the kernel; tensors of 16-bit floats, which no kernel but k_cast knows, go through f32 copies. */
int kernel_run(kernel_fn kernel, const struct kernel_call *c);

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

/* Pointwise family.  Of unary.def: k_NAME, and k_NAME_backward with in: dy, then x or y. */
#define UNARY(name, ...)                                                                                               \
    int k_##name(const struct kernel_call *c);                                                                         \
    int k_##name##_backward(const struct kernel_call *c);
#include "tensor/unary.def"
int k_eq(const struct kernel_call *c); /* comparisons and logic: out[0] is bool */
int k_ne(const struct kernel_call *c);
int k_lt(const struct kernel_call *c);
int k_le(const struct kernel_call *c);
int k_gt(const struct kernel_call *c);
int k_ge(const struct kernel_call *c);
int k_logical_and(const struct kernel_call *c);
int k_logical_or(const struct kernel_call *c);
int k_logical_not(const struct kernel_call *c);
int k_isnan(const struct kernel_call *c);
int k_bitwise_and(const struct kernel_call *c); /* integers and bool */
int k_bitwise_or(const struct kernel_call *c);
int k_bitwise_xor(const struct kernel_call *c);
int k_bitwise_not(const struct kernel_call *c);
int k_maximum(const struct kernel_call *c);
int k_minimum(const struct kernel_call *c);
int k_pow(const struct kernel_call *c);
int k_lerp(const struct kernel_call *c);             /* value[0]: the weight of in[1] */
int k_maximum_backward(const struct kernel_call *c); /* in: dy, a, b; the slope by a */
int k_minimum_backward(const struct kernel_call *c);
int k_pow_backward(const struct kernel_call *c);
int k_pow_backward_exponent(const struct kernel_call *c); /* the slope by b */
int k_where(const struct kernel_call *c);                 /* in: bool, a, b */
int k_masked_fill(const struct kernel_call *c);           /* in: x, bool; value[0] */
int k_cast(const struct kernel_call *c);                  /* to the dtype of out[0] */
int k_tril(const struct kernel_call *c);                  /* index[0]: the diagonal; by global indices (offset) */
int k_triu(const struct kernel_call *c);

/* Matrix products by OpenBLAS (f32 f64), plain loops for integers. */
int k_matmul(
    const struct kernel_call *c); /* a [*,m,k] b [*,k,n]: leading dims broadcast; a or b may be 1-d, as NumPy */
int k_linear(const struct kernel_call *c);             /* x [*,k], w [n,k], bias [n] or NULL -> [*,n] */
int k_linear_grad_input(const struct kernel_call *c);  /* dy [*,n], w [n,k] -> [*,k] */
int k_linear_grad_weight(const struct kernel_call *c); /* dy [*,n], x [*,k] -> [n,k]: summed over * */

/* Attention (f32 f64), see k_attention.c; value[0] scale, index[0] where row 0 stands among the places of k (of a part
 * of k: counted from its first, and so maybe below 0), groups heads of q per head of k, index[1] heads of k in the
 * whole. */
#define ATTENTION_IS_CAUSAL 1                         /* mode, a set */
#define ATTENTION_BY_KEYS   2                         /* a matter of layouts: dtensor/attention.h */
int k_attention(const struct kernel_call *c);         /* q, k, v -> y, lse */
int k_attention_share(const struct kernel_call *c);   /* y and lse of a part, lse of all [parts, ...] -> its y, lse */
int k_attention_stats(const struct kernel_call *c);   /* dy, y, lse -> [..., l, 2] */
int k_attention_grad_q(const struct kernel_call *c);  /* dy, q, k, v, stats -> dq */
int k_attention_grad_kv(const struct kernel_call *c); /* the same -> dk, dv */

/* Convolution (f32 f64): x [n,c,h,w], w [o,c/groups,kh,kw] -> [n,o,oh,ow]; dim: strides, index: paddings.  See
 * k_conv.c. */
int k_conv2d(const struct kernel_call *c);
int k_conv2d_grad_input(const struct kernel_call *c);  /* dy, w -> like x */
int k_conv2d_grad_weight(const struct kernel_call *c); /* dy, x -> like w */

/* Moving. */
int k_transpose(const struct kernel_call *c); /* swaps dim[0] and dim[1] */
int k_expand(const struct kernel_call *c);    /* in[0] broadcast to the shape of out[0] */
int k_permute(const struct kernel_call *c);   /* dim d of out[0] is dim shape.dim[d] of in[0] */
int k_flip(const struct kernel_call *c);      /* the dims of the set `dims` */
int k_roll(const struct kernel_call *c);      /* dim[0] by index[0] places */
int k_cat(const struct kernel_call *c);       /* all inputs up to the first NULL, along dim[0] */
/* dim[0]: index[0] times value[0] before, index[1] times after; mode: set of mesh dims that had better split the result
 * (window.c). */
int k_pad(const struct kernel_call *c);
int k_repeat(const struct kernel_call *c); /* in[0] as often as fits out[0] in every dim */
int k_repeat_backward(const struct kernel_call *c);
/* Where in[0] is a part of dim[0], the others' share of the result is 0.
 *   narrow  index[1] places from index[0] on; mode 1: that is all of the dim      select  place index[0] */
int k_narrow(const struct kernel_call *c);
int k_select(const struct kernel_call *c);

/* Choosing by index along dim[0], whose whole extent is index[0]; in[0] may be a part of it.  mode: a set of: */
enum {
    INDEX_FROM_END = 1,
    INDEX_IS_EMBEDDING = 2,
    INDEX_FROM_ZERO = 4
};                                                /* -1 is the last; names errors; adds to 0, not to in[0] */
int k_take(const struct kernel_call *c);          /* x, index [*]: dim[0] of x becomes * */
int k_take_backward(const struct kernel_call *c); /* x (its shape and offset count), dy, index -> dx */
int k_gather(const struct kernel_call *c);        /* x, index: y like index */
int k_scatter_add(const struct kernel_call *c);   /* x, index, src like index: y like x */
int k_one_hot(const struct kernel_call *c);       /* [*] -> i64 [*, index[0]] */

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
 *   cross_entropy_grad  in: scale, logits, target -> dlogits; scale [] (sum, mean: d of every counted row) or [n]
 *   (none) */
int k_cross_entropy_rows(const struct kernel_call *c);
int k_cross_entropy_sum(const struct kernel_call *c);
int k_cross_entropy_grad(const struct kernel_call *c);

/* Reductions over the dims of attr.dims; over nothing: what changes nothing.  See k_fold.c, k_moments.c, k_arg.c. */
int k_amax(const struct kernel_call *c);
int k_amin(const struct kernel_call *c);
int k_prod(const struct kernel_call *c); /* integers wrap */
int k_all(const struct kernel_call *c);  /* numbers count as true unless they are 0 */
int k_any(const struct kernel_call *c);
int k_power_sum(const struct kernel_call *c);      /* sum |x|^value[0]; value 0 counts what is not 0 */
int k_nonzero_prod(const struct kernel_call *c);   /* out[0] product of what is not 0, out[1] how many are 0 */
int k_var(const struct kernel_call *c);            /* value[0] 1 / n, value[1] 1 / (n - correction) */
int k_deviation_sums(const struct kernel_call *c); /* x, m: out[0] sum (x - m)^2, out[1] sum (x - m) */
int k_exp_sum(const struct kernel_call *c);        /* x, m: sum exp(x - m); mode 1: an infinite m counts as 0 */
int k_logsumexp(const struct kernel_call *c);
int k_argmax(const struct kernel_call *c); /* flat index among the dims that go; whole lines */
int k_argmin(const struct kernel_call *c);
int k_index_of(
    const struct kernel_call *c); /* x, m: the lowest index of m in x, of this rank's part; shape: the whole */

/* Elementwise pieces of reductions over shards: see k_pieces.c. */
int k_equal_mask(const struct kernel_call *c); /* 1 where a = b, else 0 */
int k_squared_difference(const struct kernel_call *c);
int k_exp_shifted(const struct kernel_call *c);
int k_softmax_piece(const struct kernel_call *c); /* x, the line's m and sum: exp(x - m) / sum; mode 1: its logarithm */
int k_plus_log(const struct kernel_call *c);
int k_variance(const struct kernel_call *c);      /* in: the sums of k_deviation_sums; value as for k_var */
int k_root(const struct kernel_call *c);          /* x^(1 / value[0]) */
int k_inverse_root(const struct kernel_call *c);  /* 1 / sqrt(x + value[0]) */
int k_norm_backward(const struct kernel_call *c); /* dy, x, norm; value[0] p */
int k_prod_share(const struct kernel_call *c);

/* Along dim[0]. */
int k_cumsum(
    const struct kernel_call *c); /* mode 1: from the end; in[1] or NULL: what each line begins with, f64 or i64 */
int k_sort(const struct kernel_call *c);      /* out: values, indices (i64); mode 1: descending; in[1] as for topk */
int k_topk(const struct kernel_call *c);      /* out: values, indices; in[1] or NULL: the elements' indices */
int k_put_along(const struct kernel_call *c); /* dy, indices: the adjoint of sort and topk; index[0] the extent */

/* Over rows of the last index[0] dims, eps = value[0]; weight and bias may be NULL; mode 0 layer_norm, 1 rms_norm. */
int k_layer_norm(const struct kernel_call *c);            /* x, weight, bias */
int k_rms_norm(const struct kernel_call *c);              /* x, weight */
int k_normalize_grad_input(const struct kernel_call *c);  /* dy, x, weight */
int k_normalize_grad_weight(const struct kernel_call *c); /* dy, x: summed over rows */

/* Of log-probabilities [n,C], [C] or [n,C,...], arguments as for cross_entropy; the classes may be a part: see
 * k_nll.c. */
int k_nll_loss_rows(const struct kernel_call *c); /* lp, target */
int k_nll_loss_sum(const struct kernel_call *c);
int k_nll_grad(const struct kernel_call *c); /* lp, scale, target; mode 1: by the logits under a log_softmax */

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
/* All of s but for dim d, which goes from offset on. */
struct box box_along(mesh_shape s, int d, int64_t offset, int64_t extent);
void box_pack(void *dst, const void *src, mesh_shape src_shape, const struct box *b, size_t item_bytes);
void box_unpack(void *dst, mesh_shape dst_shape, const void *src, const struct box *b, size_t item_bytes);
/* From one dense tensor to another; the boxes are equally large. */
struct box_in {
    void *data;
    mesh_shape shape;
    const struct box *box;
};
void box_copy(struct box_in to, struct box_in from, size_t item_bytes);

/* Filling: element i of out is a function of its *global* row-major index: out is the box of a tensor of shape
 * global. */
enum fill_kind {
    FILL_VALUE,
    FILL_UNIFORM,
    FILL_NORMAL,
    FILL_MASK,
    FILL_STEPS,
    FILL_LINEAR,
    FILL_POWER,
    FILL_WHOLE,
    FILL_ORDER
};
struct fill {
    enum fill_kind kind;
    double a,
        b; /* value; low, high; mean, deviation; chance of 0, else; first, step; first, last; exponents of first, last; whole: low, high */
    struct rng_key key;
    int64_t n;   /* linear, power, order: elements of the whole */
    double base; /* power */
};
/* Element i of steps, linear, power: a + i b; n points from a to b, both exact; base to the power of those. */
double fill_point(const struct fill *f, int64_t i);
int fill_check(const struct fill *f, mesh_dtype t); /* what tensor_fill() refuses, whatever the shape */
int tensor_fill(struct mesh_tensor *out, mesh_shape global, const struct box *b, const struct fill *f);
/* Only the box `local` of out, which is the box b of the whole. */
int tensor_fill_box(struct mesh_tensor *out, const struct box *local, mesh_shape global, const struct box *b,
                    const struct fill *f);

#endif
