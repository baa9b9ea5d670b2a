/* mesh/ops_matrix.h - operators made of matrix products; the product itself is mesh_matmul() in mesh/ops.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_MATRIX_H
#define MESH_OPS_MATRIX_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A product for each matrix of two stacks.
 *
 * Shapes      a [b, m, k], b [b, k, n] -> [b, m, n].
 * Placements  as mesh_matmul(): the stack, m or n sharded: the result alike.  k sharded on both: Partial(sum).
 * Errors      MESH_ESHAPE. */
MESH_API mesh_dtensor *mesh_bmm(mesh_dtensor *a, mesh_dtensor *b);

/* bias + a b.
 *
 * Shapes      a [m, k], b [k, n]; bias broadcasts to the result, [m, n].
 * Placements  as mesh_matmul(); where the product is Partial(sum), bias is added once.
 * Errors      MESH_ESHAPE. */
MESH_API mesh_dtensor *mesh_addmm(mesh_dtensor *bias, mesh_dtensor *a, mesh_dtensor *b);

/* The product of two tensors that an equation names: mesh_einsum("bmk,bkn->bmn", a, b).
 *
 * One letter per dim, a to z, none twice in one operand; blanks do not count.  Letters missing from the result are
 * summed over.
 *
 * Shapes      each letter has one extent; the result's follow.
 * Placements  any letter may be sharded, where it stands in both inputs on both: a letter of the result gives a result
 *             sharded there, another one Partial(sum).  One input Partial(sum) or Partial(avg), the other Replicate:
 *             the result alike.
 * Cost        one product of matrices for each value of the letters that all three have.  Scratch: a copy of an input
 *             whose letters stand in another order than theirs, its own, the summed ones (the second: the summed ones,
 *             its own), and of a result in another order than theirs, the first's, the second's; none for
 *             "bmk,bkn->bmn".
 * Errors      MESH_EINVAL for an equation that is none; MESH_ESHAPE; MESH_EUNSUPPORTED for bool. */
MESH_API mesh_dtensor *mesh_einsum(const char *equation, mesh_dtensor *a, mesh_dtensor *b);

typedef struct MESH_BY_NAME mesh_conv2d_options {
    size_t size;
    int stride[2];   /* of rows and columns; 0: 1 */
    int padding[2];  /* zeros on both sides of rows and columns */
    int dilation[2]; /* from one row or column of the weight to the next; 0: 1 */
    int groups;      /* of channels, each convolved by itself; 0: 1 */
} mesh_conv2d_options;

/* A convolution of images: y[n, o, i, j] = bias[o] + sum over c, k, l of x[n, c, stride i + dilation k, stride j +
 * dilation l] w[o, c, k, l], counted from -padding.  bias may be NULL: mesh_conv2d(x, w, NULL, .stride = { 2, 2 }).  Of
 * several groups the channels of x and y are cut into as many runs, and each run of y sees its run of x only.
 *
 * Shapes      x [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] -> [n, o, (h + 2 padding - dilation (kh - 1) -
 *             1) / stride + 1, likewise].
 * Placements  x Shard(0): the result alike.  One group, weight Shard(0): the result Shard(1); both Shard(1):
 *             Partial(sum).  Groups of one channel each, or in a number that the ranks which split them divide: x
 *             Shard(1), weight Shard(0): the result Shard(1).  Rows or columns split, or both (Shard(2), Shard(3), on
 *             any mesh dims): the result alike, and each rank fetches the rows and columns its own look at beyond those
 *             it holds, corners too; the weight becomes Replicate on these mesh dims, and on all others the above
 *             holds.  Strided shards of the batch and of channels, where these are of one group: as plain ones; all
 *             others are redistributed to plain ones.
 * Cost        rows split: one all_to_all of what is fetched; columns: another one.  Backward likewise for each
 *             gradient, and that of the weight is Partial(sum).  Scratch of c / groups kh kw numbers for each place of
 *             the result that is worked on: at most 4 MiB, or 64 places.
 * Errors      MESH_ESHAPE; MESH_EINVAL for a stride or a dilation below 0, a padding below 0, groups that do not divide
 *             the channels; MESH_EUNSUPPORTED for integers. */
MESH_API mesh_dtensor *mesh_conv2d_opt(mesh_dtensor *x, mesh_dtensor *weight, mesh_dtensor *bias,
                                       const mesh_conv2d_options *o);
#define mesh_conv2d(x, weight, ...)        mesh_conv2d_((x), (weight), __VA_ARGS__, .size = sizeof(mesh_conv2d_options))
#define mesh_conv2d_(x, weight, bias, ...) mesh_conv2d_opt((x), (weight), (bias), &(mesh_conv2d_options){ __VA_ARGS__ })

typedef struct MESH_BY_NAME mesh_attention_options {
    size_t size;
    bool is_causal; /* row i of q sees places 0 to first + i of k only */
    double scale;   /* of q k'; 0: 1 / sqrt(e) */
    int64_t first;  /* the place of k that row 0 of q stands at, such as the length of a cache of earlier keys */
} mesh_attention_options;

/* Attention: softmax(scale q k') v, the softmax over the places of k.
 *
 * Shapes      q [..., l, e], k [..., s, e], v [..., s, f] -> [..., l, f]; the leading dims (batch, heads) are the same,
 *             but k and v may have fewer heads (the last of the leading dims), a divisor of q's: each serves as many of
 *             q's, one after another.
 * Placements  q, k and v sharded alike over the batch or over heads: the result too, and nothing moves.  Where k has
 *             fewer heads than q, the ranks that split them must divide them; else something is redistributed.  q over
 *             rows, k and v Replicate: the result over rows.  q over heads, k and v Replicate: the result over heads,
 *             on a mesh of one dim or when k has one head.  k and v over places (Shard(-2), on any mesh dims, also
 *             beside rows or heads of q on others): each rank attends to its own places, and what they found is put
 *             together, split where q is split; or k and v are gathered, or heads exchanged for places; whatever moves
 *             fewest bytes.
 * Cost        tile by tile: the scores are never held as a whole.  Scratch of 2 x 64 x 256 numbers; for the gradient
 *             one number per row is kept, and the scores are computed again, twice.  Where each rank attends to its own
 *             places: an all_gather of a number per row and part, and one all_reduce of the result, or one
 *             reduce_scatter after an all_gather of q where the same mesh dim splits its rows.  Backward then moves no
 *             k, v nor their gradients; that of q is Partial(sum).
 * Rounding    of 16-bit floats: computed in f32, rounded once; places on several ranks: once more per rank.
 * Errors      MESH_ESHAPE; MESH_EINVAL for a `first` below 0; MESH_EUNSUPPORTED for integers.
 * Source      Vaswani et al. 2017, "Attention is all you need"; Dao et al. 2022, "FlashAttention", for the tiles;
 *             Ainslie et al.  2023, "GQA", for fewer heads of k. */
MESH_API mesh_dtensor *mesh_scaled_dot_product_attention_opt(mesh_dtensor *q, mesh_dtensor *k, mesh_dtensor *v,
                                                             const mesh_attention_options *o);
#define mesh_scaled_dot_product_attention(q, k, ...)                                                                   \
    mesh_scaled_dot_product_attention_((q), (k), __VA_ARGS__, .size = sizeof(mesh_attention_options))
#define mesh_scaled_dot_product_attention_(q, k, v, ...)                                                               \
    mesh_scaled_dot_product_attention_opt((q), (k), (v), &(mesh_attention_options){ __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#endif
