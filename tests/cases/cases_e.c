/* tests/cases/cases_e.c - matrix products, layers, losses (section E of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "case_list.h"

CASE(case_mm5_a_split_inner_dim_gives_a_pending_product, 4)
{
    mesh_dtensor *a = case_laid(m, SHAPE(2, 5), NULL, ON(S(1))), *b = case_laid(m, SHAPE(5, 2), NULL, ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_matmul(a, b);
    REQUIRE(case_lies(y, ON(P(MESH_SUM))) && case_n_calls() == 0);
    if (me == 3) {
        REQUIRE_OK(case_local_is(y, SHAPE(2, 2), VALUES(0, 0, 0, 0)));
    }
    return case_full_is(y, SHAPE(2, 2), VALUES(60, 70, 160, 195));
}

CASE(case_mlp_a_bias_after_a_row_layer_counts_once, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(2), VALUES(1, 2), ON(R));
    mesh_dtensor *w1 = case_laid(m, SHAPE(5, 2), VALUES(0, 1, 1, 1, 2, 1, 3, 1, 4, 1), ON(S(0)));
    mesh_dtensor *w2 = mesh_ones(SHAPE(1, 5), m, ON(S(1))), *bias = mesh_full(SHAPE(1), 10, m, ON(R));
    mesh_dtensor *hidden = mesh_linear(x, w1, NULL);
    REQUIRE(case_lies(hidden, ON(S(0))));
    return case_full_is(mesh_linear(hidden, w2, bias), SHAPE(1), VALUES(30));
}

/* Token t is [t, 1]; hidden unit i is i t + 1; their sum and the bias are 10 t + 15. */
CASE(case_mlpsp_split_tokens_go_through_a_split_layer, 4)
{
    static const int n_tokens[4] = { 2, 2, 1, 0 };
    static const double want[6] = { 15, 25, 35, 45, 55 };
    mesh_dtensor *x = case_laid(m, SHAPE(5, 2), VALUES(0, 1, 1, 1, 2, 1, 3, 1, 4, 1), ON(S(0)));
    mesh_dtensor *w1 = case_laid(m, SHAPE(5, 2), VALUES(0, 1, 1, 1, 2, 1, 3, 1, 4, 1), ON(S(0)));
    mesh_dtensor *w2 = mesh_ones(SHAPE(1, 5), m, ON(S(1))), *bias = mesh_full(SHAPE(1), 10, m, ON(R));
    mesh_dtensor *hidden = mesh_linear(mesh_redistribute(x, ON(R)), w1, NULL);
    REQUIRE(case_lies(hidden, ON(S(1))));
    mesh_dtensor *y = mesh_redistribute(mesh_linear(hidden, w2, bias), ON(S(0)));
    REQUIRE_OK(case_local_is(y, SHAPE(n_tokens[me], 1), me < 3 ? &want[2 * me] : want));
    return case_full_is(y, SHAPE(5, 1), want);
}

/* Heads that are all alike, each with one value of its own: that is what comes out, whatever is attended to. */
static int attend(mesh_device_mesh *m, int n_heads, int n_kv_heads)
{
    double want[8 * 3 * 2];
    mesh_shape few = SHAPE(1, n_kv_heads, 3, 2), all = SHAPE(1, n_heads, 3, 2);
    mesh_dtensor *q = mesh_ones(all, m, ON(S(1))), *k = mesh_ones(few, m, ON(n_kv_heads == n_heads ? S(1) : R));
    mesh_dtensor *number = mesh_reshape(mesh_arange(0, n_kv_heads, 1, m, ON(R)), SHAPE(1, n_kv_heads, 1, 1));
    mesh_dtensor *v = mesh_expand(number, few);
    int share = n_heads / n_kv_heads;
    for (int i = 0; i < n_heads * 6; i++) {
        want[i] = i / 6 / share;
    }
    if (share > 1) { /* each pair of query heads shares one of keys and values */
        mesh_shape wide = SHAPE(1, n_kv_heads, share, 3, 2);
        k = mesh_reshape(mesh_expand(mesh_unsqueeze(k, 2), wide), all);
        v = mesh_reshape(mesh_expand(mesh_unsqueeze(v, 2), wide), all);
    }
    mesh_dtensor *y = mesh_scaled_dot_product_attention(q, k, v);
    return case_full_is(y, all, want);
}

CASE(case_heads_uneven_and_shared_heads_have_the_right_numbers, 4)
{
    (void)me;
    REQUIRE_OK(attend(m, 6, 6));
    return attend(m, 8, 2);
}

EVERYWHERE(case_sm_of_logarithms)
{
    IS(mesh_softmax(LAY(at, SHAPE(4), 0, log(2), log(3), log(4)), 0), .1, .2, .3, .4);
    return 0;
}

EVERYWHERE(case_smb_of_large_numbers)
{
    IS(mesh_softmax(LAY(at, SHAPE(3), 1000, 1001, 999), 0), 0.24472847105479764, 0.66524095577482178,
       0.09003057317038046);
    return 0;
}

EVERYWHERE(case_smi_of_a_part_that_is_all_minus_infinity)
{
    double inf = INFINITY;
    IS(mesh_log_softmax(SPLIT(at, SHAPE(4), -inf, -inf, 0, 0), 0), -inf, -inf, -log(2), -log(2));
    return 0;
}

EVERYWHERE(case_sme_uneven_classes_and_their_gradient)
{
    mesh_dtensor *x = mesh_requires_grad(SPLIT(at, SHAPE(1, 5), 0, 1, 2, 3, 4), true), *y = mesh_softmax(x, 1);
    double e = 1 + exp(1) + exp(2) + exp(3) + exp(4), p[5], dx[5];
    for (int i = 0; i < 5; i++) {
        p[i] = exp(i) / e;
        dx[i] = (i == 0 ? p[0] : 0) - p[0] * p[i];
    }
    REQUIRE_OK(case_elements_are(__FILE__, __LINE__, y, p, 5));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, LAY(at, SHAPE(1, 5), 1, 0, 0, 0, 0)))) == 0);
    REQUIRE_OK(case_elements_are(__FILE__, __LINE__, mesh_grad(x), dx, 5));
    return 0;
}

/* n rows of the logits whose softmax is .1 .2 .3 .4 */
static mesh_dtensor *logits(struct spot *at, int64_t n)
{
    const double l[8] = { 0, log(2), log(3), log(4), 0, log(2), log(3), log(4) };
    return mesh_requires_grad(spot_lay(at, MESH_F64, SHAPE(n, 4), l, false), true);
}

EVERYWHERE(case_ce_loss_and_gradient_of_one_row)
{
    mesh_dtensor *x = logits(at, 1), *loss = mesh_cross_entropy(x, INTS(at, SHAPE(1), 2));
    IS(loss, 1.2039728043259361);
    REQUIRE(mesh_backward(loss) == 0);
    IS(mesh_grad(x), .1, .2, -.7, .4);
    return 0;
}

EVERYWHERE(case_ceu_of_five_classes)
{
    IS(mesh_cross_entropy(LAY(at, SHAPE(1, 5), 0, 1, 2, 3, 4), INTS(at, SHAPE(1), 4)), 0.4519143987);
    return 0;
}

EVERYWHERE(case_ces_smoothing_counts_all_classes)
{
    IS(mesh_cross_entropy(logits(at, 1), INTS(at, SHAPE(1), 2), .label_smoothing = 0.1), 1.2343827);
    return 0;
}

EVERYWHERE(case_cei_no_row_counts)
{
    static const int64_t ignored = 2;
    mesh_dtensor *x = logits(at, 1), *two = INTS(at, SHAPE(1), 2);
    IS(mesh_cross_entropy(x, two, .ignore_index = &ignored), NAN);
    IS(mesh_cross_entropy(x, two, .ignore_index = &ignored, .reduction = MESH_REDUCTION_SUM), 0);
    return 0;
}

EVERYWHERE(case_cew_rows_weigh_what_their_class_does)
{
    mesh_dtensor *weight = LAY(at, SHAPE(4), 1, 2, 1, 1);
    IS(mesh_cross_entropy(logits(at, 2), INTS(at, SHAPE(2), 1, 2), .weight = weight), (2 * log(5) + log(10.0 / 3)) / 3);
    return 0;
}

EVERYWHERE(case_ceo_a_target_that_is_no_class_is_refused_everywhere)
{
    mesh_dtensor *x = logits(at, 1);
    mesh_dtensor *high = mesh_full(SHAPE(1), 4, at->m, spot_whole(at), .dtype = MESH_I64);
    mesh_dtensor *low = mesh_full(SHAPE(1), -1, at->m, spot_whole(at), .dtype = MESH_I64);
    REFUSED(mesh_cross_entropy(x, high), MESH_EINVAL, "row 0 is 4");
    REFUSED(mesh_cross_entropy(x, low), MESH_EINVAL, "row 0 is -1");
    return 0;
}

EVERYWHERE(case_emb_rows_of_a_split_table)
{
    double table[20];
    for (int i = 0; i < 20; i++) {
        table[i] = i % 2 == 0 ? i / 2 : 10 * (i / 2);
    }
    mesh_dtensor *w = spot_lay(at, MESH_F64, SHAPE(10, 2), table, true);
    IS(mesh_embedding(w, INTS(at, SHAPE(8), 0, 2, 3, 5, 6, 8, 9, 9)), 0, 0, 2, 20, 3, 30, 5, 50, 6, 60, 8, 80, 9, 90, 9,
       90);
    return 0;
}

CASE(case_emb_the_ranks_that_lack_a_row_hold_zeros, 4)
{
    double table[20];
    for (int i = 0; i < 20; i++) {
        table[i] = i % 2 == 0 ? i / 2 : 10 * (i / 2);
    }
    mesh_dtensor *ids = mesh_full(SHAPE(1), 9, m, ON(R), .dtype = MESH_I64);
    mesh_dtensor *y = mesh_embedding(case_laid(m, SHAPE(10, 2), table, ON(S(0))), ids);
    REQUIRE(case_lies(y, ON(P(MESH_SUM))));
    return case_local_is(y, SHAPE(1, 2), me == 3 ? VALUES(9, 90) : VALUES(0, 0));
}

CASE(case_embh_rows_have_the_dtype_of_their_table, 4)
{
    (void)me;
    mesh_dtensor *table = mesh_cast(case_laid(m, SHAPE(10, 2), NULL, ON(S(0))), MESH_F16);
    mesh_dtensor *ids = mesh_arange(3, 9, 3, m, ON(R), .dtype = MESH_I64);
    mesh_dtensor *y = mesh_embedding(table, ids);
    REQUIRE(y != NULL && mesh_dtype_of(y) == MESH_F16 && case_lies(y, ON(P(MESH_SUM))));
    return case_full_is(mesh_cast(y, MESH_F32), SHAPE(2, 2), VALUES(6, 7, 12, 13));
}

CASES("cases E: layers and losses", ROW(case_mm5_a_split_inner_dim_gives_a_pending_product),
      ROW(case_mlp_a_bias_after_a_row_layer_counts_once), ROW(case_mlpsp_split_tokens_go_through_a_split_layer),
      ROW(case_heads_uneven_and_shared_heads_have_the_right_numbers), ROW(case_sm_of_logarithms),
      ROW(case_smb_of_large_numbers), ROW(case_smi_of_a_part_that_is_all_minus_infinity),
      ROW(case_sme_uneven_classes_and_their_gradient), ROW(case_ce_loss_and_gradient_of_one_row),
      ROW(case_ceu_of_five_classes), ROW(case_ces_smoothing_counts_all_classes), ROW(case_cei_no_row_counts),
      ROW(case_cew_rows_weigh_what_their_class_does), ROW(case_ceo_a_target_that_is_no_class_is_refused_everywhere),
      ROW(case_emb_rows_of_a_split_table), ROW(case_emb_the_ranks_that_lack_a_row_hold_zeros),
      ROW(case_embh_rows_have_the_dtype_of_their_table));
