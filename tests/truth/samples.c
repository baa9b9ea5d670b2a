/* tests/truth/samples.c - the samples: uneven extents, extents of 1 and 0, broadcasting, integers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "tensor/shape.h"
#include "truth/parts.h"

#define S(...)                                                                                                         \
    {                                                                                                                  \
        .ndim = MESH_COUNT_(int64_t, __VA_ARGS__), .dim = { __VA_ARGS__ }                                              \
    }
#define SCALAR                                                                                                         \
    {                                                                                                                  \
        .ndim = 0                                                                                                      \
    }
#define I64 MESH_I64

/* clang-format off */
const struct sample samples[] = {
    { OP_add, 2, { S(5, 3), S(5, 3) } },
    { OP_add, 2, { S(5, 1), S(3) } },
    { OP_add, 2, { S(2, 5, 3), S(5, 3) } },
    { OP_add, 2, { S(5), SCALAR } },
    { OP_add, 2, { S(0, 3), S(1, 3) } },
    { OP_add, 2, { S(5, 2), S(5, 2) }, { I64, I64 } },
    { OP_sub, 2, { S(5, 3), S(5, 3) } },
    { OP_sub, 2, { S(3), S(5, 1) } },
    { OP_sub, 2, { S(5), S(5) }, { MESH_I32, MESH_I32 } },
    { OP_mul, 2, { S(5, 3), S(5, 3) } },
    { OP_mul, 2, { S(5, 3), S(1) } },
    { OP_mul, 2, { S(5), S(5) }, { I64, I64 } },
    { OP_div, 2, { S(5, 3), S(5, 3) } },
    { OP_div, 2, { SCALAR, SCALAR } },
    { OP_div, 2, { S(5, 1), S(3) } },
    { OP_neg, 1, { S(5, 3) } },
    { OP_neg, 1, { S(5) }, { I64 } },
    { OP_mul_scalar, 1, { S(5, 3) }, .attr = { .value = { 2.5 } } },
    { OP_mul_scalar, 1, { S(5, 3) }, .attr = { .value = { -3 } } },
    { OP_mul_scalar, 1, { S(5) }, .attr = { .value = { 0 } } },
    { OP_mul_scalar, 1, { S(5) }, { I64 }, .attr = { .value = { 3 } } },
    { OP_mul_scalar, 1, { S(5) }, .attr = { .value = { INFINITY } } },
    { OP_add_scalar, 1, { S(5, 3) }, .attr = { .value = { 2.5 } } },
    { OP_add_scalar, 1, { S(5) }, .attr = { .value = { INFINITY } } },
    { OP_add_scalar, 1, { S(5) }, { I64 }, .attr = { .value = { -4 } } },
    { OP_relu, 1, { S(5, 3) } },
    { OP_relu, 1, { S(7) }, { I64 } },
    { OP_gelu, 1, { S(5, 3) } },
    { OP_gelu, 1, { S(5) }, .attr = { .mode = 1 } },
    { OP_tanh, 1, { S(5, 3) } },
    { OP_relu_backward, 2, { S(5, 3), S(5, 3) } },
    { OP_gelu_backward, 2, { S(5, 3), S(5, 3) } },
    { OP_gelu_backward, 2, { S(5), S(5) }, .attr = { .mode = 1 } },
    { OP_tanh_backward, 2, { S(5, 3), S(5, 3) } },
    { OP_matmul, 2, { S(5, 3), S(3, 4) } },
    { OP_matmul, 2, { S(5, 6), S(6) } },
    { OP_matmul, 2, { S(6), S(6, 5) } },
    { OP_matmul, 2, { S(5), S(5) } },
    { OP_matmul, 2, { S(5, 2, 3), S(3, 2) } },
    { OP_matmul, 2, { S(1, 2, 3), S(5, 3, 2) } },
    { OP_matmul, 2, { S(2, 0), S(0, 3) } },
    { OP_matmul, 2, { S(3, 5), S(5, 2) }, { I64, I64 } },
    { OP_linear, 3, { S(5, 3), S(4, 3), S(4) } },
    { OP_linear, 2, { S(5, 3), S(4, 3) } },
    { OP_linear, 3, { S(3), S(5, 3), S(5) } },
    { OP_linear, 2, { S(2, 3, 5), S(2, 5) } },
    { OP_linear_grad_input, 2, { S(5, 4), S(4, 3) } },
    { OP_linear_grad_input, 2, { S(4), S(4, 5) } },
    { OP_linear_grad_weight, 2, { S(5, 4), S(5, 3) } },
    { OP_linear_grad_weight, 2, { S(2, 5, 2), S(2, 5, 3) } },
    { OP_linear_grad_weight, 2, { S(4), S(5) } },
    { OP_conv2d, 2, { S(5, 3, 4, 3), S(2, 3, 2, 2) }, .attr = { .dim = { 1, 1 } } },
    { OP_conv2d, 2, { S(2, 2, 5, 4), S(3, 2, 3, 2) }, .attr = { .dim = { 2, 1 }, .index = { 1, 0 } } },
    { OP_conv2d, 2, { S(1, 5, 2, 2), S(5, 5, 1, 1) }, .attr = { .dim = { 1, 2 } } },
    { OP_conv2d, 2, { S(2, 6, 4, 3), S(6, 1, 2, 2) }, .attr = { .dim = { 1, 1 }, .groups = 6, .dilation = { 2, 1 } } },
    { OP_conv2d_grad_input, 2, { S(2, 6, 2, 2), S(6, 1, 2, 2) }, .attr = { .shape = S(2, 6, 4, 3), .dim = { 1, 1 }, .groups = 6, .dilation = { 2, 1 } } },
    { OP_conv2d_grad_weight, 2, { S(2, 6, 2, 2), S(2, 12, 4, 3) }, .attr = { .shape = S(6, 2, 2, 2), .dim = { 1, 1 }, .groups = 6, .dilation = { 2, 1 } } },
    { OP_conv2d_grad_input, 2, { S(2, 3, 3, 3), S(3, 2, 3, 2) }, .attr = { .shape = S(2, 2, 5, 4), .dim = { 2, 1 }, .index = { 1, 0 } } },
    { OP_conv2d_grad_weight, 2, { S(5, 3, 3, 3), S(5, 2, 5, 4) }, .attr = { .shape = S(3, 2, 3, 2), .dim = { 2, 1 }, .index = { 1, 0 } } },
    { OP_conv2d, 2, { S(2, 2, 7, 5), S(2, 2, 1, 2) }, .attr = { .dim = { 3, 3 } } },
    { OP_conv2d_grad_input, 2, { S(2, 2, 3, 2), S(2, 2, 1, 2) }, .attr = { .shape = S(2, 2, 7, 5), .dim = { 3, 3 } } },
    { OP_conv2d_grad_weight, 2, { S(2, 2, 3, 2), S(2, 2, 7, 5) }, .attr = { .shape = S(2, 2, 1, 2), .dim = { 3, 3 } } },
    { OP_attention, 3, { S(2, 4, 5, 3), S(2, 2, 6, 3), S(2, 2, 6, 2) }, .attr = { .value = { 0.5 }, .index = { 1 }, .mode = 1 } },
    { OP_attention, 3, { S(5, 3, 2), S(5, 4, 2), S(5, 4, 3) }, .attr = { .value = { 0.7 } } },
    { OP_attention, 3, { S(5, 2), S(4, 2), S(4, 1) }, .attr = { .value = { 1 }, .mode = 1 } },
    { OP_attention_stats, 3, { S(2, 5, 3), S(2, 5, 3), S(2, 5) } },
    { OP_attention_grad_q, 5, { S(2, 4, 5, 2), S(2, 4, 5, 3), S(2, 2, 6, 3), S(2, 2, 6, 2), S(2, 4, 5, 2) }, .attr = { .value = { 0.5 }, .index = { 1 }, .mode = 1 } },
    { OP_attention_grad_kv, 5, { S(2, 4, 5, 2), S(2, 4, 5, 3), S(2, 2, 6, 3), S(2, 2, 6, 2), S(2, 4, 5, 2) }, .attr = { .value = { 0.5 }, .index = { 1 }, .mode = 1 } },
    { OP_attention_grad_kv, 5, { S(5, 3, 3), S(5, 3, 2), S(5, 4, 2), S(5, 4, 3), S(5, 3, 2) }, .attr = { .value = { 0.7 } } },
    { OP_attention_grad_q, 5, { S(3, 1), S(3, 2), S(7, 2), S(7, 1), S(3, 2) }, .attr = { .value = { 0.5 }, .index = { 2 }, .mode = 1 } },
    { OP_attention_grad_kv, 5, { S(3, 1), S(3, 2), S(7, 2), S(7, 1), S(3, 2) }, .attr = { .value = { 0.5 }, .index = { 2 }, .mode = 1 } },
    { OP_transpose, 1, { S(5, 3) }, .attr = { .dim = { 0, 1 } } },
    { OP_transpose, 1, { S(2, 5, 3) }, .attr = { .dim = { -1, 0 } } },
    { OP_reshape, 1, { S(5, 3) }, .attr = { .shape = S(15) } },
    { OP_reshape, 1, { S(6, 4) }, .attr = { .shape = S(2, 3, 4) } },
    { OP_reshape, 1, { S(4, 6) }, .attr = { .shape = S(2, 2, 6) } },
    { OP_reshape, 1, { S(2, 12) }, .attr = { .shape = S(2, 4, 3) } },
    { OP_reshape, 1, { S(12, 2) }, .attr = { .shape = S(4, 6) } },
    { OP_reshape, 1, { S(2, 3, 4) }, .attr = { .shape = S(24) } },
    { OP_reshape, 1, { S(1, 5, 1) }, .attr = { .shape = S(5) } },
    { OP_reshape, 1, { S(0, 3) }, .attr = { .shape = S(3, 0) } },
    { OP_reshape, 1, { S(1, 1) }, .attr = { .shape = SCALAR } },
    { OP_reshape, 1, { S(6, 2) }, { I64 }, .attr = { .shape = S(3, 4) } },
    { OP_expand, 1, { S(5, 1) }, .attr = { .shape = S(5, 3) } },
    { OP_expand, 1, { S(3) }, .attr = { .shape = S(5, 3) } },
    { OP_expand, 1, { SCALAR }, .attr = { .shape = S(5) } },
    { OP_sum_to, 1, { S(5, 3) }, .attr = { .shape = S(5, 1) } },
    { OP_sum_to, 1, { S(5, 3) }, .attr = { .shape = S(3) } },
    { OP_sum_to, 1, { S(5, 3) }, .attr = { .shape = SCALAR } },
    { OP_sum_to, 1, { S(5, 1, 3) }, .attr = { .shape = S(1, 3) } },
    { OP_sum, 1, { S(5, 3) }, .attr = { .dims = 3 } },
    { OP_sum, 1, { S(5, 3) }, .attr = { .dims = 1 } },
    { OP_sum, 1, { S(2, 5, 3) }, .attr = { .dims = 5, .keepdim = 1 } },
    { OP_sum, 1, { S(0, 3) }, .attr = { .dims = 1 } },
    { OP_sum, 1, { S(5, 3) }, { I64 }, .attr = { .dims = 2 } },
    { OP_sum, 1, { S(5, 3) }, { MESH_I32 }, .attr = { .dims = 2 } },
    { OP_mean, 1, { S(5, 3) }, .attr = { .dims = 3 } },
    { OP_mean, 1, { S(5, 3) }, .attr = { .dims = 2, .keepdim = 1 } },
    { OP_mean, 1, { S(2, 5, 3) }, .attr = { .dims = 3 } },
    { OP_softmax, 1, { S(5, 3) }, .attr = { .dim = { 1 } } },
    { OP_softmax, 1, { S(2, 5, 3) }, .attr = { .dim = { -2 } } },
    { OP_softmax, 1, { S(5) }, .attr = { .dim = { 0 } } },
    { OP_log_softmax, 1, { S(5, 3) }, .attr = { .dim = { 0 } } },
    { OP_log_softmax, 1, { S(2, 3, 5) }, .attr = { .dim = { 1 } } },
    { OP_softmax_backward, 2, { S(5, 3), S(5, 3) }, .attr = { .dim = { 1 } } },
    { OP_log_softmax_backward, 2, { S(5, 3), S(5, 3) }, .attr = { .dim = { 1 } } },
    { OP_cross_entropy_rows, 2, { S(5, 3), S(5) }, { 0, I64 }, .attr = { .index = { -100 } } },
    { OP_cross_entropy_rows, 2, { S(3), SCALAR }, { 0, I64 }, .attr = { .index = { -100 } } },
    { OP_cross_entropy_rows, 2, { S(5, 3, 2), S(5, 2) }, { 0, I64 }, .attr = { .index = { 1 }, .value = { 0.1 } } },
    { OP_cross_entropy_sum, 2, { S(5, 3), S(5) }, { 0, I64 }, .attr = { .index = { 1 }, .value = { 0.1 } } },
    { OP_cross_entropy_sum, 2, { S(5, 3), S(5) }, { MESH_F64, MESH_I32 }, .attr = { .index = { -100 } } },
    { OP_cross_entropy_sum, 2, { S(3), SCALAR }, { 0, I64 }, .attr = { .index = { -100 } } },
    { OP_cross_entropy_grad, 3, { SCALAR, S(5, 3), S(5) }, { 0, 0, I64 }, .attr = { .index = { 1 }, .value = { 0.1 } } },
    { OP_cross_entropy_grad, 3, { S(5), S(5, 3), S(5) }, { 0, 0, I64 }, .attr = { .index = { -100 } } },
    { OP_cross_entropy_grad, 3, { S(5, 2), S(5, 3, 2), S(5, 2) }, { 0, 0, I64 }, .attr = { .index = { -100 } } },
#include "truth/samples_pointwise.def"
#include "truth/samples_reduce.def"
    { OP_permute, 1, { S(2, 5, 3) }, .attr = { .shape = S(-1, 0, 1) } },
    { OP_permute, 1, { S(5, 3) }, { I64 }, .attr = { .shape = S(1, 0) } },
    { OP_flip, 1, { S(5, 3) }, .attr = { .dims = 2 } },
    { OP_flip, 1, { S(2, 5, 3) }, { I64 }, .attr = { .dims = 5 } },
    { OP_roll, 1, { S(5, 3) }, .attr = { .index = { 2 } } },
    { OP_roll, 1, { S(2, 5) }, { I64 }, .attr = { .dim = { -1 }, .index = { -7 } } },
    { OP_roll, 1, { S(0, 5) }, .attr = { .index = { 1 } } },
    { OP_cat, 1, { S(5, 3) }, .attr = { .dim = { 1 } } },
    { OP_cat, 2, { S(5, 3), S(5, 2) }, .attr = { .dim = { -1 } } },
    { OP_cat, 3, { S(2, 5), S(0, 5), S(3, 5) } },
    { OP_cat, 2, { S(5), S(2) }, { I64, I64 } },
    { OP_narrow, 1, { S(5, 3) }, .attr = { .index = { 1, 2 } } },
    { OP_narrow, 1, { S(7, 5) }, .attr = { .dim = { -1 }, .index = { -4, 2 } } },
    { OP_narrow, 1, { S(5, 3) }, .attr = { .index = { 1, 4 } } },
    { OP_narrow, 1, { S(5, 3) }, .attr = { .index = { 0, 5 } } },
    { OP_narrow, 1, { S(7) }, { I64 }, .attr = { .index = { 3, 3 } } },
    { OP_narrow, 1, { S(5, 3) }, .attr = { .index = { 5, 0 } } },
    { OP_select, 1, { S(5, 3) }, .attr = { .index = { 3 } } },
    { OP_select, 1, { S(2, 3, 5) }, .attr = { .dim = { -2 }, .index = { -1 } } },
    { OP_select, 1, { S(5) }, { I64 }, .attr = { .index = { 4 } } },
    { OP_pad, 1, { S(5, 3) }, .attr = { .index = { 1, 2 }, .value = { 0.5 } } },
    { OP_pad, 1, { S(5, 3) }, .attr = { .dim = { -1 }, .index = { 2, 0 } } },
    { OP_pad, 1, { S(5) }, { I64 }, .attr = { .index = { 0, 1 }, .value = { -2 } } },
    { OP_pad, 1, { S(0, 5) }, .attr = { .index = { 1, 2 }, .value = { 3 } } },
    { OP_repeat, 1, { S(5, 3) }, .attr = { .shape = S(10, 3) } },
    { OP_repeat, 1, { S(5, 1, 2) }, .attr = { .shape = S(2, 5, 3, 4) } },
    { OP_repeat, 1, { SCALAR }, .attr = { .shape = S(3) } },
    { OP_repeat, 1, { S(2, 5) }, { I64 }, .attr = { .shape = S(2, 15) } },
    { OP_repeat_backward, 1, { S(10, 3) }, .attr = { .shape = S(5, 3) } },
    { OP_repeat_backward, 1, { S(2, 5, 3, 4) }, .attr = { .shape = S(5, 1, 2) } },
    { OP_repeat_backward, 1, { S(3) }, .attr = { .shape = SCALAR } },
    { OP_embedding, 2, { S(5, 3), S(4) }, { 0, I64 }, .attr = { .mode = 2 } },
    { OP_embedding, 2, { S(3, 5), S(2, 5) }, { 0, MESH_I32 }, .attr = { .mode = 2 } },
    { OP_embedding, 2, { S(5, 3), SCALAR }, { 0, I64 }, .attr = { .mode = 2 } },
    { OP_index_select, 2, { S(5, 3), S(4) }, { 0, I64 }, .attr = { .mode = 1 } },
    { OP_index_select, 2, { S(2, 5, 3), S(5) }, { 0, I64 }, .attr = { .dim = { -2 }, .mode = 1 } },
    { OP_index_select, 2, { S(5), S(7) }, { I64, I64 }, .attr = { .mode = 1 } },
    { OP_take_backward, 3, { S(5, 3), S(4, 3), S(4) }, { 0, 0, I64 } },
    { OP_take_backward, 3, { S(2, 5, 3), S(2, 3, 2, 3), S(3, 2) }, { 0, 0, I64 }, .attr = { .dim = { 1 }, .mode = 1 } },
    { OP_gather, 2, { S(5, 3), S(5, 2) }, { 0, I64 }, .attr = { .dim = { 1 }, .mode = 1 } },
    { OP_gather, 2, { S(5, 3), S(2, 3) }, { 0, I64 }, .attr = { .mode = 1 } },
    { OP_gather, 2, { S(2, 5, 3), S(1, 7, 3) }, { I64, I64 }, .attr = { .dim = { -2 }, .mode = 1 } },
    { OP_gather, 2, { S(5, 3), S(3, 2) }, { 0, I64 }, .attr = { .dim = { 1 }, .mode = 1 } },
    { OP_scatter_add, 3, { S(5, 3), S(5, 4), S(5, 4) }, { 0, I64 }, .attr = { .dim = { 1 }, .mode = 1 } },
    { OP_scatter_add, 3, { S(5, 3), S(3, 4), S(3, 4) }, { 0, I64 }, .attr = { .dim = { 1 }, .mode = 1 } },
    { OP_scatter_add, 3, { S(5, 3), S(4, 3), S(4, 3) }, { 0, I64 }, .attr = { .mode = 5 } },
    { OP_scatter_add, 3, { S(5, 3), S(5, 2), S(5, 2) }, { I64, I64, I64 }, .attr = { .mode = 1 } },
    { OP_one_hot, 1, { S(5) }, { I64 }, .attr = { .index = { 4 } } },
    { OP_one_hot, 1, { S(2, 5) }, { MESH_I32 }, .attr = { .index = { 3 } } },
};
/* clang-format on */
const int n_samples = (int)ARRAY_SIZE(samples);

static bool is_class_number(const struct trial *t, int i)
{
    const char *name = t->op->name;
    return (strncmp(name, "cross_entropy", 13) == 0 || strncmp(name, "nll_", 4) == 0) && i == t->op->n_in - 1;
}

/* Which input names places of a dim, and of how long a dim; -1: none. */
static int index_input(const struct trial *t, int64_t *ret_extent)
{
    int dim = t->sample->attr.dim[0];
    mesh_shape x = t->sample->in[0];
    *ret_extent = x.ndim > 0 ? x.dim[dim < 0 ? dim + x.ndim : dim] : 1;
    switch (t->sample->op) {
    case OP_one_hot:
        *ret_extent = t->sample->attr.index[0];
        return 0;
    case OP_put_along:
        *ret_extent = t->sample->attr.index[0];
        return 1;
    case OP_embedding:
    case OP_index_select:
    case OP_gather:
    case OP_scatter_add:
        return 1;
    case OP_take_backward:
        return 2;
    default:
        return -1;
    }
}

/* Places of both ends of the dim, several times each; negative ones where the operator counts them from the end. */
static void make_index(const struct trial *t, int i, struct mesh_tensor *x)
{
    int64_t extent = 0;
    bool may_be_negative = (t->sample->attr.mode & INDEX_FROM_END) != 0;
    for (int64_t k = 0; index_input(t, &extent) == i && k < x->n; k++) {
        int64_t at = (k * 2 + 1) % extent;
        tensor_set_number(x, k, (double)(may_be_negative && k % 3 == 2 ? at - extent : at));
    }
}

/* What an operator tells apart has to be there: zeros, equal numbers, NaN. */
static bool tells_zeros(enum op_id op)
{
    return op == OP_logical_and || op == OP_logical_or || op == OP_logical_not || op == OP_all || op == OP_any ||
           op == OP_sign || op == OP_nonzero_prod || op == OP_power_sum;
}

/* The input that shares numbers with the one before it; 0: none does. */
static int equal_input(enum op_id op)
{
    switch (op) {
    case OP_eq:
    case OP_ne:
    case OP_le:
    case OP_ge:
    case OP_equal_mask:
    case OP_maximum:
    case OP_minimum:
        return 1;
    case OP_maximum_backward:
    case OP_minimum_backward:
        return 2;
    default:
        return 0;
    }
}

/* Whose results are wider than i32: a pending sum of i32 may wrap, what comes of it must have done so. */
static bool widens(enum op_id op)
{
    return op == OP_sum || op == OP_cumsum || op == OP_cast;
}

static void make_special(const struct trial *t, int i, struct mesh_tensor *x)
{
    enum op_id op = t->sample->op;
    for (int64_t k = 0; k < x->n; k++) {
        if (tells_zeros(op) && k % 4 == 1) {
            tensor_set_number(x, k, 0);
        } else if (i > 0 && equal_input(op) == i && k % 2 == 0 && t->in[i - 1]->n > 0) {
            tensor_set_number(x, k, tensor_number(t->in[i - 1], k % t->in[i - 1]->n));
        } else if (op == OP_isnan && dtype_kind(x->dtype) == DTYPE_FLOAT && k % 4 == 2) {
            tensor_set_number(x, k, NAN);
        } else if (op == OP_prod_share && i == 2) { /* counts of zeros */
            tensor_set_number(x, k, (double)(k % 3));
        } else if (op == OP_prod_share && i == 1 && k % 3 == 1) {
            tensor_set_number(x, k, 0);
        }
    }
}

static struct mesh_tensor *input(const struct trial *t, int i, int variant)
{
    mesh_dtype dtype = t->sample->dtype[i] ? t->sample->dtype[i] : MESH_F64;
    struct mesh_tensor *x = sample_tensor(t->sample->in[i], dtype, i + 1 + 5 * variant);
    for (int64_t k = 0; is_class_number(t, i) && k < x->n; k++) {
        tensor_set_number(x, k, (double)((k * 2 + 1) % 3));
    }
    for (int64_t k = 0; t->sample->is_positive && k < x->n; k++) {
        tensor_set_number(x, k, fabs(tensor_number(x, k)) + 0.125);
    }
    for (int64_t k = 0; variant == N_VARIANTS - 1 && x->dtype == MESH_I32 && widens(t->sample->op) && k < x->n; k++) {
        double v = tensor_number(x, k);
        tensor_set_number(x, k, v > 0 ? INT32_MAX - v : INT32_MIN - v);
    }
    make_special(t, i, x);
    make_index(t, i, x);
    for (int64_t k = 0; t->sample->op == OP_index_of && i == 1 && k < x->n; k++) {
        tensor_set_number(x, k, tensor_number(t->in[0], t->in[0]->n - 1 - k)); /* something that is there */
    }
    return x;
}

bool sample_has_dim(const struct sample *s)
{
    switch (s->op) {
    case OP_softmax:
    case OP_log_softmax:
    case OP_softmax_backward:
    case OP_log_softmax_backward:
    case OP_roll:
    case OP_cat:
    case OP_narrow:
    case OP_select:
    case OP_pad:
    case OP_index_select:
    case OP_take_backward:
    case OP_gather:
    case OP_scatter_add:
    case OP_cumsum:
    case OP_sort:
    case OP_topk:
    case OP_put_along:
        return true;
    default:
        return false;
    }
}

int sample_siblings(const struct sample *s)
{
    int n = 0;
    for (int k = 0; k < n_samples; k++) {
        n += samples[k].op == s->op;
    }
    return n;
}

bool sample_is_index(const struct sample *s, int i)
{
    const struct trial t = { .sample = s, .op = &op_table[s->op] };
    int64_t extent;
    return index_input(&t, &extent) == i || is_class_number(&t, i);
}

struct op_shapes sample_shapes(const struct sample *s, int mesh_ndim)
{
    const struct op_row *op = &op_table[s->op];
    struct op_shapes shapes = {
        .name = op->name, .n_in = op->n_in, .n_out = op->n_out, .attr = s->attr, .mesh_ndim = mesh_ndim
    };
    for (int i = 0; i < s->n_in; i++) {
        shapes.has[i] = true;
        shapes.in[i] = s->in[i];
        shapes.in_dtype[i] = s->dtype[i] != 0 ? s->dtype[i] : MESH_F64;
    }
    return shapes;
}

bool sample_with_dtype(const struct sample *s, mesh_dtype t, struct sample *ret_sample)
{
    bool is_other = false;
    *ret_sample = *s;
    for (int i = 0; i < s->n_in; i++) {
        is_other = is_other || s->dtype[i] == 0;
        ret_sample->dtype[i] = s->dtype[i] == 0 ? t : s->dtype[i];
    }
    struct op_shapes shapes = sample_shapes(ret_sample, 1);
    return is_other && op_table[s->op].shape(&shapes) == 0;
}

mesh_dtype trial_precision(const struct trial *t)
{
    mesh_dtype least = MESH_F64;
    for (int k = 0; k < t->sample->n_in + t->op->n_out; k++) {
        mesh_dtype one = k < t->sample->n_in ? t->shapes.in_dtype[k] : t->shapes.out_dtype[k - t->sample->n_in];
        bool is_less = tolerance_of(one, 0) > tolerance_of(least, 0);
        least = dtype_kind(one) == DTYPE_FLOAT && is_less ? one : least;
    }
    return least;
}

void trial_init(struct trial *t, const struct sample *s, int mesh_ndim)
{
    trial_init_variant(t, s, mesh_ndim, 0);
}

/* A status: some kernels refuse arguments that the dtype cannot hold. */
static int trial_start(struct trial *t, const struct sample *s, int mesh_ndim, int variant)
{
    memset(t, 0, sizeof *t);
    t->sample = s;
    t->op = &op_table[s->op];
    t->shapes = sample_shapes(s, mesh_ndim);
    struct kernel_call call = { .attr = &t->shapes.attr };
    for (int i = 0; i < s->n_in; i++) {
        call.in[i] = t->in[i] = input(t, i, variant);
    }
    parts_must(t->op->shape(&t->shapes) == 0, mesh_last_error()->message);
    for (int o = 0; o < t->op->n_out; o++) {
        call.out[o] = t->out[o] = tensor_new(t->shapes.out[o], t->shapes.out_dtype[o]);
        parts_must(t->out[o] != NULL, mesh_last_error()->message);
    }
    return kernel_run(t->op->kernel, &call);
}

void trial_init_variant(struct trial *t, const struct sample *s, int mesh_ndim, int variant)
{
    parts_must(trial_start(t, s, mesh_ndim, variant) == 0, mesh_last_error()->message);
}

bool sample_is_allowed(const struct sample *s)
{
    struct trial t;
    bool is_allowed = trial_start(&t, s, 1, 0) == 0;
    trial_fini(&t);
    return is_allowed;
}

void trial_fini(struct trial *t)
{
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        tensor_unref(t->in[i]);
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        tensor_unref(t->out[o]);
    }
}
