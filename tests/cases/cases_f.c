/* tests/cases/cases_f.c - gradients (section F of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

static mesh_placements pending(void)
{
    return ON(P(MESH_SUM));
}

/* Of four ones in two parts, made whole: the gradient of their sum, when each rank's own work gives `mine` as `laid` says. */
static mesh_dtensor *after_own_work(mesh_device_mesh *m, double mine, mesh_placements laid)
{
    mesh_dtensor *x = mesh_requires_grad(case_laid(m, SHAPE(4), VALUES(1, 1, 1, 1), ON(S(0))), true);
    mesh_dtensor *g = case_from_full(m, SHAPE(4), mine, laid);
    return mesh_backward_from(mesh_redistribute(x, ON(R)), g) == 0 ? mesh_grad(x) : NULL;
}

CASE(case_tl_a_pending_gradient_is_summed_and_split, 2)
{
    (void)me;
    mesh_dtensor *g = after_own_work(m, 1, pending());
    REQUIRE(case_lies(g, ON(S(0))));
    return case_local_is(g, SHAPE(2), VALUES(2, 2));
}

CASE(case_tld_a_gradient_called_whole_is_taken_at_its_word, 2)
{
    REQUIRE_OK(case_local_is(after_own_work(m, me + 1, ON(R)), SHAPE(2), VALUES(me + 1, me + 1)));
    mesh_scope *s = mesh_scope_begin(); /* asked to, the border sees the divergence */
    mesh_tensor *mine = case_tensor(SHAPE(1), VALUES(me));
    REQUIRE(mesh_from_local(mine, m, ON(R), .check_replicas = true) == NULL);
    mesh_comm_reset();
    return case_refused(s, MESH_EMISMATCH, "rank 1 holds other values");
}

CASE(case_flp_each_part_of_a_sum_has_the_gradient_of_the_sum, 4)
{
    (void)me;
    mesh_dtensor *x = mesh_requires_grad(case_from_full(m, SHAPE(3), 1, pending()), true);
    mesh_dtensor *y = mesh_redistribute(x, ON(R)), *ones = mesh_ones_like(y);
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(y, ones) == 0 && case_n_calls() == 0);
    return case_local_is(mesh_grad(x), SHAPE(3), VALUES(1, 1, 1));
}

CASE(case_flr_a_gradient_asked_for_in_parts_is_not_reduced, 4)
{
    mesh_tensor *five = case_tensor(SHAPE(1), VALUES(5));
    mesh_dtensor *x = mesh_requires_grad(mesh_from_local(five, m, ON(R), .grad = pending()), true);
    mesh_dtensor *g = case_from_full(m, SHAPE(1), me + 1, pending());
    mesh_comm_reset();
    REQUIRE(mesh_backward_from(mesh_mul_scalar(x, 2), g) == 0 && case_n_calls() == 0);
    REQUIRE(case_lies(mesh_grad(x), pending()));
    return case_local_is(mesh_grad(x), SHAPE(1), VALUES(2 * me + 2));
}

CASE(case_wr_the_gradient_of_a_whole_weight_is_reduced_once, 4)
{
    mesh_dtensor *x = mesh_requires_grad(case_laid(m, SHAPE(5), NULL, ON(S(0))), true);
    mesh_dtensor *w = mesh_full(MESH_SCALAR_SHAPE, 2, m, ON(R), .requires_grad = true);
    mesh_dtensor *loss = mesh_sum(mesh_mul(w, x));
    mesh_comm_reset();
    REQUIRE(mesh_backward(loss) == 0 && mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1 && case_n_calls() == 1);
    REQUIRE_NEAR(mesh_item(mesh_grad(w)), 10, 0);
    REQUIRE(case_lies(mesh_grad(x), ON(S(0))));
    return case_local_is(mesh_grad(x), SHAPE(me < 2 ? 2 : 3 - me), VALUES(2, 2));
}

CASE(case_agb_padding_does_not_leak_into_the_gradient_of_a_gathered_tensor, 4)
{
    static const double want[4][2] = { { 1, 2 }, { 3, 4 }, { 5 }, { 0 } };
    mesh_dtensor *x = mesh_ones(SHAPE(5), m, ON(S(0)), .requires_grad = true);
    mesh_dtensor *w = case_laid(m, SHAPE(5), VALUES(1, 2, 3, 4, 5), ON(R));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(mesh_redistribute(x, ON(R)), w))) == 0);
    return case_local_is(mesh_grad(x), SHAPE(me < 2 ? 2 : 3 - me), want[me]);
}

CASES("cases F: gradients", ROW(case_tl_a_pending_gradient_is_summed_and_split),
      ROW(case_tld_a_gradient_called_whole_is_taken_at_its_word),
      ROW(case_flp_each_part_of_a_sum_has_the_gradient_of_the_sum),
      ROW(case_flr_a_gradient_asked_for_in_parts_is_not_reduced),
      ROW(case_wr_the_gradient_of_a_whole_weight_is_reduced_once),
      ROW(case_agb_padding_does_not_leak_into_the_gradient_of_a_gathered_tensor));
