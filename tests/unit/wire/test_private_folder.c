/* tests/unit/wire/test_private_folder.c - folders are private, bounded in length, and do not outlive their owners.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/private_folder.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mesh/base.h>

#include "harness/check_main.h"
#include "wire_fixture.h"

static char base[64];

static void set_up(void)
{
    folder_make(base);
}

static void tear_down(void)
{
    folder_remove(base);
}

static int make(struct private_folder *ret_folder, const char *first, size_t max_len)
{
    const struct folder_base bases[] = { { first, true }, { NULL, true }, { "not/absolute", true }, { base, true } };
    return private_folder_make(ret_folder, "one", max_len, bases, 4);
}

START_TEST(it_is_made_in_the_first_base_that_will_have_it)
{
    struct private_folder f;
    struct stat st;
    ck_assert_int_eq(make(&f, "/no/such/folder", 80), 0);
    ck_assert_ptr_nonnull(strstr(f.path, base));
    ck_assert_int_eq(stat(f.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    private_folder_remove(&f);
    ck_assert_str_eq(f.path, "");
    private_folder_remove(&f);
    ck_assert_int_eq(make(&f, base, strlen(base)), MESH_EIO);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "File name too long"));
}
END_TEST

/* A child makes one with a file in it, tells its path, and is killed when `fd` is closed. */
static pid_t owner(struct private_folder *ret_folder)
{
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        struct private_folder f;
        char inside[160];
        if (make(&f, base, 80) == 0 && snprintf(inside, sizeof inside, "%s/rank", f.path) > 0 &&
            mkdir(inside, 0700) == 0 && write(told[1], &f, sizeof f) > 0) {
            pause();
        }
        _exit(1);
    }
    ck_assert_int_eq(read(told[0], ret_folder, sizeof *ret_folder), sizeof *ret_folder);
    close(told[0]);
    close(told[1]);
    return child;
}

START_TEST(what_a_killed_owner_left_is_swept_and_nothing_else)
{
    struct private_folder theirs, ours;
    pid_t child = owner(&theirs);
    ck_assert_int_eq(make(&ours, base, 80), 0);
    private_folder_sweep(base, "one", 0);
    ck_assert_int_eq(access(theirs.path, F_OK), 0); /* its owner lives */
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    private_folder_sweep(base, "one", 60);
    ck_assert_int_eq(access(theirs.path, F_OK), 0); /* too young */
    private_folder_sweep(base, "two", 0);
    private_folder_sweep(base, "on", 0);
    ck_assert_int_eq(access(theirs.path, F_OK), 0); /* of another name */
    private_folder_sweep(base, "one", 0);
    ck_assert_int_ne(access(theirs.path, F_OK), 0);
    ck_assert_int_eq(access(ours.path, F_OK), 0);
    private_folder_remove(&ours);
}
END_TEST

START_TEST(an_orphan_is_removed_by_who_was_served_by_it)
{
    struct private_folder theirs, ours;
    struct folder_path held[4];
    pid_t child = owner(&theirs);
    ck_assert_int_eq(make(&ours, base, 80), 0);
    ck_assert(!private_folder_remove_orphan(theirs.path, "one"));
    ck_assert_int_eq(access(theirs.path, F_OK), 0); /* its owner lives */
    ck_assert_uint_eq(private_folder_held(base, "one", held, 4), 2);
    ck_assert_uint_eq(private_folder_held(base, "two", held, 4), 0);
    ck_assert_uint_eq(private_folder_held(base, "one", held, 1), 1);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(private_folder_held(base, "one", held, 4), 1);
    ck_assert_str_eq(held[0].text, ours.path);
    ck_assert(private_folder_remove_orphan(theirs.path, "two")); /* has another name: is left alone */
    ck_assert_int_eq(access(theirs.path, F_OK), 0);
    ck_assert(private_folder_remove_orphan(theirs.path, "one"));
    ck_assert_int_ne(access(theirs.path, F_OK), 0);
    ck_assert(private_folder_remove_orphan(base, "one"));
    ck_assert_int_eq(access(ours.path, F_OK), 0);
    private_folder_remove(&ours);
}
END_TEST

START_TEST(many_that_are_held_do_not_hide_one_that_is_left)
{
    enum { N = 80 }; /* more than one sweep removes */
    struct private_folder theirs, ours[N];
    pid_t child = owner(&theirs);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(make(&ours[i], base, 80), 0);
    }
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    private_folder_sweep(base, "one", 0);
    ck_assert_int_ne(access(theirs.path, F_OK), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(access(ours[i].path, F_OK), 0);
        private_folder_remove(&ours[i]);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("private folder");
    TCase *t = tcase_create("private folder");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, it_is_made_in_the_first_base_that_will_have_it);
    tcase_add_test(t, what_a_killed_owner_left_is_swept_and_nothing_else);
    tcase_add_test(t, an_orphan_is_removed_by_who_was_served_by_it);
    tcase_add_test(t, many_that_are_held_do_not_hide_one_that_is_left);
    suite_add_tcase(suite, t);
    return suite;
}
