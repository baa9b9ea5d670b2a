/* tests/cases/cases_i.c - collectives as a program sees them (section I of the case list; dtypes, operators and failures over
 * every kind of link are in tests/world/test_comm_*.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "case_list.h"

/* Calls that agree in everything cannot be told apart: what rank 0 gives first meets what rank 1 gives first. */
CASE(case_mord_an_exchanged_order_shows_between_groups_only, 2)
{
    (void)m;
    static const int both[2] = { 0, 1 };
    mesh_group *a = mesh_new_group(both, 2), *b = mesh_new_group(both, 2);
    int32_t x[2] = { 1 + me, 10 * (1 + me) }, *first = &x[me], *second = &x[1 - me];
    mesh_work *w = mesh_all_reduce_async(first, 1, MESH_I32, MESH_SUM, me == 0 ? a : b);
    mesh_work *v = mesh_all_reduce_async(second, 1, MESH_I32, MESH_SUM, me == 0 ? b : a);
    REQUIRE(mesh_wait(w, 0) == 0 && mesh_wait(v, 0) == 0);
    REQUIRE(x[0] == 3 && x[1] == 30);
    int32_t y[2] = { 1 + me, 10 * (1 + me) };
    REQUIRE(mesh_all_reduce(&y[me], 1, MESH_I32, MESH_SUM, a) == 0);
    REQUIRE(mesh_all_reduce(&y[1 - me], 1, MESH_I32, MESH_SUM, a) == 0);
    REQUIRE(y[me] == 21 && y[1 - me] == 12);
    mesh_free_group(a);
    mesh_free_group(b);
    return 0;
}

/* A buffer that is too short, one that is longer, a message to oneself, two tags in the other order. */
CASE(case_p2p1_messages_that_do_not_fit_are_named_and_nothing_else_is_lost, 2)
{
    (void)m;
    mesh_group *g = mesh_world();
    int32_t out[3] = { 7, 8, 9 }, in[4] = { 0 };
    if (me == 0) {
        for (int tag = 1; tag <= 4; tag++) {
            REQUIRE(mesh_send(out, 3, MESH_I32, 1, tag, g) == 0);
        }
    } else {
        mesh_message longer = { .peer = 0, .tag = 2, .count = 4 };
        REQUIRE(mesh_recv(in, 2, MESH_I32, 0, 1, g) == MESH_EMISMATCH && in[0] == 0);
        REQUIRE(mesh_recv_message(in, MESH_I32, &longer, g) == 0 && longer.count == 3 && in[2] == 9 && in[3] == 0);
        memset(in, 0, sizeof in);
        REQUIRE(mesh_recv(in, 3, MESH_I32, 0, 4, g) == 0 && in[0] == 7);
        REQUIRE(mesh_recv(in, 3, MESH_I32, 0, 3, g) == 0 && in[2] == 9);
    }
    mesh_transfer self[2] = { { MESH_SEND, out, 3, MESH_I32, me, 5 }, { MESH_RECV, in, 3, MESH_I32, me, 5 } };
    memset(in, 0, sizeof in);
    REQUIRE(mesh_batch_send_recv(self, 2, g) == 0 && memcmp(in, out, sizeof out) == 0);
    return mesh_barrier(g);
}

/* Even ranks make {0,1} first, odd ranks {2,3}. */
CASE(case_gord_groups_may_be_made_in_any_order, 4)
{
    (void)m;
    static const int pair[2][2] = { { 0, 1 }, { 2, 3 } };
    mesh_group *g[2];
    for (int k = 0; k < 2; k++) {
        int which = me % 2 == 0 ? k : 1 - k;
        g[which] = mesh_new_group(pair[which], 2);
        REQUIRE(g[which] != NULL);
    }
    int32_t one = 1;
    REQUIRE(mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, g[me / 2]) == 0 && one == 2);
    REQUIRE(mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, g[1 - me / 2]) == MESH_ENOTMEMBER && one == 2);
    mesh_free_group(g[0]);
    mesh_free_group(g[1]);
    return 0;
}

CASE(case_gsrt_the_rank_in_a_group_is_the_place_in_its_list, 4)
{
    (void)m;
    static const int list[4] = { 3, 1, 2, 0 }, place[4] = { 3, 1, 2, 0 };
    mesh_group *g = mesh_new_group(list, 4);
    int32_t all[4] = { -1 }, mine = me;
    REQUIRE(mesh_group_rank(g) == place[me]);
    REQUIRE(mesh_all_gather(all, &mine, 1, MESH_I32, g) == 0);
    REQUIRE(all[0] == 3 && all[1] == 1 && all[2] == 2 && all[3] == 0);
    mesh_free_group(g);
    return 0;
}

CASE(case_gmem_only_members_make_a_group, 4)
{
    (void)m;
    static const int odd[2] = { 1, 3 };
    if (me % 2 == 0) {
        return 0;
    }
    int32_t one = 1;
    mesh_group *g = mesh_new_group(odd, 2);
    REQUIRE(mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, g) == 0 && one == 2);
    mesh_free_group(g);
    return 0;
}

CASE(case_govl_groups_that_overlap_take_turns, 4)
{
    (void)m;
    static const int low[3] = { 0, 1, 2 }, high[3] = { 1, 2, 3 };
    mesh_group *a = mesh_new_group(low, 3), *b = mesh_new_group(high, 3);
    for (int i = 0; i < 100; i++) {
        int32_t x = i + me, y = i - me;
        REQUIRE(me == 3 || (mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, a) == 0 && x == 3 * i + 3));
        REQUIRE(me == 0 || (mesh_all_reduce(&y, 1, MESH_I32, MESH_SUM, b) == 0 && y == 3 * i - 6));
    }
    mesh_free_group(a);
    mesh_free_group(b);
    return 0;
}

CASE(case_many_a_thousand_sums_in_flight, 4)
{
    (void)m;
    static _Thread_local int32_t x[1000];
    mesh_work *w[1000];
    for (int i = 0; i < 1000; i++) {
        x[i] = i + me;
        w[i] = mesh_all_reduce_async(&x[i], 1, MESH_I32, MESH_SUM, mesh_world());
    }
    for (int i = 999; i >= 0; i--) {
        REQUIRE(mesh_wait(w[i], 0) == 0 && x[i] == 4 * i + 6);
    }
    return 0;
}

CASES("cases I: collectives", ROW(case_mord_an_exchanged_order_shows_between_groups_only),
      ROW(case_p2p1_messages_that_do_not_fit_are_named_and_nothing_else_is_lost),
      ROW(case_gord_groups_may_be_made_in_any_order), ROW(case_gsrt_the_rank_in_a_group_is_the_place_in_its_list),
      ROW(case_gmem_only_members_make_a_group), ROW(case_govl_groups_that_overlap_take_turns),
      ROW(case_many_a_thousand_sums_in_flight));
