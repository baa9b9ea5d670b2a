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
 * Errors      MESH_ESHAPE; MESH_EINVAL for different dtypes. */
MESH_API mesh_dtensor *mesh_addmm(mesh_dtensor *bias, mesh_dtensor *a, mesh_dtensor *b);

/* The product of two tensors that an equation names: mesh_einsum("bmk,bkn->bmn", a, b).
 *
 * One letter per dim, a to z, none twice in one operand; blanks do not count.  Letters missing from the result are summed
 * over.
 *
 * Shapes      each letter has one extent; the result's follow.
 * Placements  any letter may be sharded, where it stands in both inputs on both: a letter of the result gives a result
 *             sharded there, another one Partial(sum).  One input Partial(sum) or Partial(avg), the other Replicate: the
 *             result alike.
 * Errors      MESH_EINVAL for an equation that is none, or different dtypes; MESH_ESHAPE; MESH_EUNSUPPORTED for bool. */
MESH_API mesh_dtensor *mesh_einsum(const char *equation, mesh_dtensor *a, mesh_dtensor *b);

typedef struct mesh_attention_options {
    size_t size;
    bool is_causal; /* place i of q sees places 0 to i of k only */
    double scale;   /* of q k'; 0: 1 / sqrt(e) */
} mesh_attention_options;

/* Attention: softmax(scale q k') v, the softmax over the places of k.
 *
 * Shapes      q [..., l, e], k [..., s, e], v [..., s, f] -> [..., l, f]; the leading dims (batch, heads) are the same.
 * Placements  q, k and v sharded alike over a leading dim: the result too, and nothing moves.  q over l, k and v
 *             Replicate: the result over l.
 * Cost        the scores [..., l, s] of the own part are held, as are the probabilities for the gradient.
 * Errors      MESH_ESHAPE.
 * Source      Vaswani et al. 2017, "Attention is all you need". */
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
