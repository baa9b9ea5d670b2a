/* tests/unit/core/test_scope.c - what a scope remembers of failures, and what it does when rounds and scopes end.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>

#include "base/fault.h"
#include "core/scope.h"
#include "harness/check_main.h"
#include "thing.h"

static int n_told;
static mesh_error told;

static void hear(const mesh_error *e)
{
    n_told++;
    told = *e;
    err_set(MESH_EIO, "the hook failed too");
}

static void open_outermost(void)
{
    events[0] = 0;
    n_told = 0;
    scope_set_local_failure_hook(hear);
    ck_assert_int_eq(scope_open_outermost(), 0);
}

static void close_outermost(void)
{
    scope_close_outermost();
    scope_set_local_failure_hook(NULL);
}

/* A tensor call as all of them are: does nothing in a failed scope. */
static void *call(int status, const char *sentence)
{
    if (!scope_enter("mesh_call")) {
        return NULL;
    }
    return status == 0 ? thing_new('x') : scope_fail(err_set(status, "%s", sentence));
}

START_TEST(the_first_failure_stands_and_later_calls_do_nothing)
{
    mesh_scope *s = mesh_scope_begin();
    ck_assert_ptr_nonnull(call(0, ""));
    ck_assert_ptr_null(call(MESH_ESHAPE, "first"));
    ck_assert_ptr_null(call(MESH_EPLACEMENT, "second"));
    ck_assert_ptr_null(call(0, ""));
    ck_assert_str_eq(mesh_last_error()->message, "first");
    ck_assert_int_eq(mesh_scope_status(s), MESH_ESHAPE);
    ck_assert_int_eq(mesh_scope_status(NULL), MESH_ESHAPE);
    err_set(MESH_EIO, "something else meanwhile");
    ck_assert_int_eq(mesh_scope_end(s), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message, "first");
    ck_assert_str_eq(mesh_last_error()->where, "mesh_call");
}
END_TEST

START_TEST(a_loop_leaves_before_the_round_after_the_failure)
{
    mesh_scope *s = mesh_scope_begin();
    int rounds = 0;
    for (int i = 0; i < 10 && mesh_scope_next(s); i++) {
        rounds++;
        call(i == 3 ? MESH_ESHAPE : 0, "in round 3");
        call(0, "");
    }
    ck_assert_int_eq(rounds, 4);
    ck_assert_int_eq(mesh_scope_end(s), MESH_ESHAPE);
    ck_assert_str_eq(events, "x x x x x x ");
}
END_TEST

START_TEST(each_round_frees_what_the_last_one_made)
{
    mesh_scope *s = mesh_scope_begin();
    ck_assert(mesh_scope_next(s));
    thing_new('a');
    thing_new('b');
    ck_assert(mesh_scope_next(s));
    ck_assert_str_eq(events, "b a ");
    thing_new('c');
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert_str_eq(events, "b a c ");
}
END_TEST

START_TEST(a_sweep_frees_what_came_since_the_mark_but_for_what_is_kept)
{
    mesh_scope *s = mesh_scope_begin();
    scope_sweep(scope_mark(), NULL, 0); /* nothing yet */
    thing_new('a');
    struct object *mark = scope_mark();
    thing_new('b');
    struct object *kept[2] = { &thing_new('c')->object, NULL };
    thing_new('d');
    scope_sweep(mark, kept, 2);
    ck_assert_str_eq(events, "d b ");
    object_release(mark);
    scope_sweep(mark, NULL, 0); /* it is not there any more, so nothing is known to be newer */
    ck_assert_str_eq(events, "d b a ");
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert_str_eq(events, "d b a c ");
}
END_TEST

START_TEST(an_inner_failure_is_told_at_its_end_and_spares_the_outer_scope)
{
    mesh_scope *outer = mesh_scope_begin();
    mesh_scope *inner = mesh_scope_begin();
    call(MESH_ESHAPE, "inner");
    ck_assert_int_eq(mesh_scope_status(outer), MESH_OK);
    ck_assert_int_eq(mesh_scope_end(inner), MESH_ESHAPE);
    ck_assert_ptr_nonnull(call(0, ""));
    ck_assert_int_eq(mesh_scope_end(outer), 0);
}
END_TEST

START_TEST(a_scope_opened_in_a_failed_one_starts_failed)
{
    mesh_scope *outer = mesh_scope_begin();
    call(MESH_ESHAPE, "outer");
    mesh_scope *inner = mesh_scope_begin();
    ck_assert(!mesh_scope_next(inner));
    ck_assert_ptr_null(call(0, ""));
    ck_assert_int_eq(mesh_scope_end(inner), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message, "outer");
    ck_assert_int_eq(mesh_scope_end(outer), MESH_ESHAPE);
}
END_TEST

START_TEST(ending_an_outer_scope_ends_the_inner_ones_and_takes_over_their_failure)
{
    mesh_scope *outer = mesh_scope_begin();
    thing_new('a');
    mesh_scope *middle = mesh_scope_begin();
    thing_new('b');
    mesh_scope *inner = mesh_scope_begin();
    thing_new('c');
    call(MESH_ESHAPE, "inner");
    ck_assert_int_eq(mesh_scope_end(outer), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message, "inner");
    ck_assert_str_eq(events, "c b a ");
    ck_assert_int_eq(scope_depth(scope_current()), 1);
    ck_assert_int_eq(mesh_scope_end(inner), MESH_ESTATE);
    ck_assert_int_eq(mesh_scope_end(middle), MESH_ESTATE);
}
END_TEST

START_TEST(the_next_round_of_an_outer_scope_ends_the_inner_ones)
{
    mesh_scope *outer = mesh_scope_begin();
    mesh_scope *inner = mesh_scope_begin();
    thing_new('a');
    ck_assert(mesh_scope_next(outer));
    ck_assert_str_eq(events, "a ");
    ck_assert(!mesh_scope_next(inner));
    ck_assert_int_eq(mesh_last_error()->status, MESH_ESTATE);
    ck_assert_int_eq(mesh_scope_end(outer), 0);
}
END_TEST

START_TEST(everything_is_settled_before_anything_is_freed)
{
    mesh_scope *s = mesh_scope_begin();
    thing_new('a');
    work_new('w', 0);
    thing_new('b');
    work_new('v', 0);
    ck_assert(mesh_scope_next(s));
    ck_assert_str_eq(events, "v? w? v b w a ");
    ck_assert_int_eq(mesh_scope_end(s), 0);
}
END_TEST

START_TEST(work_that_fails_to_settle_fails_its_scope)
{
    mesh_scope *s = mesh_scope_begin();
    work_new('w', MESH_ETIMEDOUT);
    work_new('v', 0);
    ck_assert(!mesh_scope_next(s));
    ck_assert_str_eq(events, "v? w? v w ");
    ck_assert_str_eq(mesh_last_error()->message, "work w did not end");
    ck_assert_int_eq(mesh_scope_end(s), MESH_ETIMEDOUT);
}
END_TEST

START_TEST(a_failure_only_this_rank_sees_is_told_once)
{
    mesh_scope *s = mesh_scope_begin();
    ck_assert(scope_enter("mesh_gather"));
    scope_fail(err_set_local(MESH_EINVAL, "index 9 of 4"));
    scope_fail(err_no_memory(10, "a tensor"));
    ck_assert_int_eq(n_told, 1);
    ck_assert_str_eq(told.message, "index 9 of 4");
    ck_assert_int_eq(mesh_scope_end(s), MESH_EINVAL);
    ck_assert_str_eq(mesh_last_error()->message, "index 9 of 4");
}
END_TEST

START_TEST(a_failure_all_ranks_share_is_told_to_nobody)
{
    call(MESH_ESHAPE, "alike everywhere");
    ck_assert_int_eq(n_told, 0);
}
END_TEST

START_TEST(running_out_of_memory_for_a_scope_fails_the_enclosing_one)
{
    mesh_scope *outer = mesh_scope_begin();
    fault_arm(FAULT_ALLOC, 1, 0);
    mesh_scope *inner = mesh_scope_begin();
    fault_disarm(FAULT_ALLOC);
    ck_assert_ptr_null(inner);
    ck_assert_int_eq(n_told, 1);
    ck_assert(!mesh_scope_next(inner));
    ck_assert_int_eq(mesh_scope_end(inner), MESH_ENOMEM);
    ck_assert_int_eq(mesh_scope_end(outer), MESH_ENOMEM);
}
END_TEST

START_TEST(wrong_handles_are_errors_and_not_crashes)
{
    ck_assert(!mesh_scope_next(NULL));
    ck_assert_int_eq(mesh_last_error()->status, MESH_EINVAL);
    ck_assert_int_eq(mesh_scope_end(NULL), MESH_EINVAL);
    mesh_scope *s = mesh_scope_begin();
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert_int_eq(mesh_scope_end(s), MESH_ESTATE);
    ck_assert(!mesh_scope_next(s));
    ck_assert_int_eq(mesh_scope_status(s), MESH_ESTATE);
}
END_TEST

START_TEST(without_a_session_there_is_no_scope)
{
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_ptr_null(mesh_scope_begin());
    ck_assert_int_eq(mesh_scope_end(NULL), MESH_ESTATE);
    ck_assert_int_eq(mesh_scope_status(NULL), MESH_ESTATE);
    ck_assert_ptr_null(call(0, ""));
    ck_assert_int_eq(mesh_last_error()->status, MESH_ESTATE);
    ck_assert_str_eq(mesh_last_error()->where, "mesh_call");
}
END_TEST

START_TEST(the_outermost_scope_opens_once_and_closes_with_all_inside)
{
    ck_assert_int_eq(scope_open_outermost(), MESH_ESTATE);
    thing_new('a');
    ck_assert_ptr_nonnull(mesh_scope_begin());
    thing_new('b');
    call(MESH_ESHAPE, "left behind");
    ck_assert_int_eq(scope_close_outermost(), MESH_ESHAPE);
    ck_assert_str_eq(events, "b a ");
    ck_assert_ptr_null(scope_current());
}
END_TEST

static void *end_of_another_thread(void *scope)
{
    return (void *)(intptr_t)mesh_scope_end(scope);
}

START_TEST(a_scope_of_another_thread_is_refused)
{
    mesh_scope *s = mesh_scope_begin();
    pthread_t thread;
    void *status;
    ck_assert_int_eq(pthread_create(&thread, NULL, end_of_another_thread, s), 0);
    ck_assert_int_eq(pthread_join(thread, &status), 0);
    ck_assert_int_eq((int)(intptr_t)status, MESH_ESTATE);
    ck_assert_int_eq(mesh_scope_end(s), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("scope");
    TCase *tcase = tcase_create("scope");
    tcase_add_checked_fixture(tcase, open_outermost, close_outermost);
    tcase_add_test(tcase, the_first_failure_stands_and_later_calls_do_nothing);
    tcase_add_test(tcase, a_loop_leaves_before_the_round_after_the_failure);
    tcase_add_test(tcase, each_round_frees_what_the_last_one_made);
    tcase_add_test(tcase, a_sweep_frees_what_came_since_the_mark_but_for_what_is_kept);
    tcase_add_test(tcase, an_inner_failure_is_told_at_its_end_and_spares_the_outer_scope);
    tcase_add_test(tcase, a_scope_opened_in_a_failed_one_starts_failed);
    tcase_add_test(tcase, ending_an_outer_scope_ends_the_inner_ones_and_takes_over_their_failure);
    tcase_add_test(tcase, the_next_round_of_an_outer_scope_ends_the_inner_ones);
    tcase_add_test(tcase, everything_is_settled_before_anything_is_freed);
    tcase_add_test(tcase, work_that_fails_to_settle_fails_its_scope);
    tcase_add_test(tcase, a_failure_only_this_rank_sees_is_told_once);
    tcase_add_test(tcase, a_failure_all_ranks_share_is_told_to_nobody);
    tcase_add_test(tcase, running_out_of_memory_for_a_scope_fails_the_enclosing_one);
    tcase_add_test(tcase, wrong_handles_are_errors_and_not_crashes);
    tcase_add_test(tcase, without_a_session_there_is_no_scope);
    tcase_add_test(tcase, the_outermost_scope_opens_once_and_closes_with_all_inside);
    tcase_add_test(tcase, a_scope_of_another_thread_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
