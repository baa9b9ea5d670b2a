/* tests/unit/core/test_object.c - who owns an object, and when it is freed.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "core/scope.h"
#include "harness/check_main.h"
#include "thing.h"

static void open_outermost(void)
{
    events[0] = 0;
    ck_assert_int_eq(scope_open_outermost(), 0);
}

static void close_outermost(void)
{
    ck_assert_int_eq(scope_close_outermost(), 0);
}

START_TEST(a_scope_frees_its_objects_newest_first)
{
    mesh_scope *s = mesh_scope_begin();
    thing_new('a');
    thing_new('b');
    thing_new('c');
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert_str_eq(events, "c b a ");
}
END_TEST

START_TEST(an_object_with_another_reference_outlives_its_scope)
{
    mesh_scope *s = mesh_scope_begin();
    struct thing *a = thing_new('a');
    ck_assert_ptr_eq(object_ref(&a->object), &a->object);
    thing_new('b');
    ck_assert_int_eq(mesh_scope_end(s), 0);
    ck_assert_str_eq(events, "b ");
    ck_assert_ptr_null(a->object.scope);
    object_unref(&a->object);
    ck_assert_str_eq(events, "b a ");
}
END_TEST

START_TEST(keeping_moves_an_object_out_one_scope_at_a_time)
{
    mesh_scope *outer = mesh_scope_begin();
    mesh_scope *inner = mesh_scope_begin();
    struct thing *a = thing_new('a');
    thing_new('b');
    ck_assert_int_eq(object_keep(&a->object), 0);
    ck_assert_ptr_eq(a->object.scope, outer);
    ck_assert_int_eq(mesh_scope_end(inner), 0);
    ck_assert_str_eq(events, "b ");
    ck_assert_int_eq(object_keep(&a->object), 0);
    ck_assert_int_eq(mesh_scope_end(outer), 0);
    ck_assert_str_eq(events, "b ");
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_str_eq(events, "b a ");
}
END_TEST

START_TEST(keeping_beyond_the_outermost_scope_is_refused)
{
    struct thing *a = thing_new('a');
    ck_assert_int_eq(object_keep(&a->object), MESH_ESTATE);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "outermost"));
    ck_assert_ptr_eq(a->object.scope, scope_current());
}
END_TEST

START_TEST(keeping_what_no_scope_owns_is_refused)
{
    struct thing *a = thing_new('a');
    object_disown(&a->object);
    ck_assert_int_eq(object_keep(&a->object), MESH_ESTATE);
    object_unref(&a->object);
}
END_TEST

START_TEST(releasing_frees_at_once_and_only_once)
{
    thing_new('a');
    struct thing *b = thing_new('b');
    thing_new('c');
    object_ref(&b->object);
    object_release(&b->object);
    ck_assert_str_eq(events, "");
    object_release(&b->object); /* owned by no scope: nothing happens */
    object_unref(&b->object);
    ck_assert_str_eq(events, "b ");
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_str_eq(events, "b c a ");
}
END_TEST

START_TEST(releasing_the_oldest_and_the_newest_keeps_the_list_whole)
{
    struct thing *a = thing_new('a');
    thing_new('b');
    struct thing *c = thing_new('c');
    object_release(&a->object);
    object_release(&c->object);
    thing_new('d');
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_str_eq(events, "a c d b ");
}
END_TEST

START_TEST(an_unscoped_object_belongs_to_its_maker)
{
    struct thing *a = mem_new(struct thing);
    a->name = 'a';
    object_init_unscoped(&a->object, &plain_class);
    ck_assert_int_eq(scope_close_outermost(), 0);
    ck_assert_str_eq(events, "");
    object_unref(&a->object);
    ck_assert_str_eq(events, "a ");
    object_unref(NULL);
    object_release(NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("object");
    TCase *tcase = tcase_create("ownership");
    tcase_add_checked_fixture(tcase, open_outermost, close_outermost);
    tcase_add_test(tcase, a_scope_frees_its_objects_newest_first);
    tcase_add_test(tcase, an_object_with_another_reference_outlives_its_scope);
    tcase_add_test(tcase, keeping_moves_an_object_out_one_scope_at_a_time);
    tcase_add_test(tcase, keeping_beyond_the_outermost_scope_is_refused);
    tcase_add_test(tcase, keeping_what_no_scope_owns_is_refused);
    tcase_add_test(tcase, releasing_frees_at_once_and_only_once);
    tcase_add_test(tcase, releasing_the_oldest_and_the_newest_keeps_the_list_whole);
    tcase_add_test(tcase, an_unscoped_object_belongs_to_its_maker);
    suite_add_tcase(suite, tcase);
    return suite;
}
