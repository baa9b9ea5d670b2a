/* tests/unit/base/test_error.c - the error record of a thread, and what users see of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void set_up(void)
{
    err_clear();
    err_set_rank(-1);
    err_enter("");
}

START_TEST(a_fresh_thread_has_no_error)
{
    const mesh_error *e = mesh_last_error();
    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(e->status, MESH_OK);
    ck_assert_int_eq(e->rank, -1);
    ck_assert_str_eq(e->message, "");
    ck_assert_str_eq(e->where, "");
    ck_assert_ptr_eq(e, err_last());
}
END_TEST

START_TEST(a_function_behind_a_macro_goes_by_the_name_of_the_macro)
{
    err_enter("mesh_zeros_opt");
    err_set(MESH_EINVAL, "zeros");
    const char *where = mesh_last_error()->where;
    ck_assert_str_eq(where, "mesh_zeros");
    err_enter("mesh_sum_opt");
    ck_assert_str_eq(err_entered(), "mesh_sum");
    err_enter("mesh_zeros_opt");
    ck_assert_ptr_eq(err_entered(), where);
    err_enter("_opt");
    ck_assert_str_eq(err_entered(), "_opt");
}
END_TEST

START_TEST(who_knows_why_writes_the_sentence)
{
    err_set_rank(3);
    err_enter("mesh_matmul");
    ck_assert_int_eq(err_set(MESH_ESHAPE, "matmul: %d != %d", 784, 512), MESH_ESHAPE);
    const mesh_error *e = mesh_last_error();
    ck_assert_int_eq(e->status, MESH_ESHAPE);
    ck_assert_int_eq(e->rank, 3);
    ck_assert_str_eq(e->where, "mesh_matmul");
    ck_assert_str_eq(e->message, "matmul: 784 != 512");
}
END_TEST

START_TEST(callers_put_theirs_in_front)
{
    err_set(MESH_ESHAPE, "inner");
    ck_assert_int_eq(err_wrap(MESH_ESHAPE, "layer %d", 2), MESH_ESHAPE);
    ck_assert_int_eq(err_wrap(MESH_ESHAPE, "outer"), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message, "outer: layer 2: inner");
}
END_TEST

START_TEST(success_is_not_wrapped)
{
    err_set(MESH_ESHAPE, "inner");
    ck_assert_int_eq(err_wrap(0, "outer"), 0);
    ck_assert_str_eq(mesh_last_error()->message, "inner");
}
END_TEST

START_TEST(a_status_without_a_sentence_gets_its_text)
{
    err_set(MESH_ESHAPE, "an older one");
    ck_assert_int_eq(err_wrap(MESH_EIO, "reading digits.csv"), MESH_EIO);
    ck_assert_str_eq(mesh_last_error()->message, "reading digits.csv: input/output error");
}
END_TEST

START_TEST(a_sentence_may_quote_the_last_one)
{
    err_set(MESH_EIO, "cause");
    err_set(MESH_EDAEMON, "meshd is gone: %s", mesh_last_error()->message);
    ck_assert_str_eq(mesh_last_error()->message, "meshd is gone: cause");
}
END_TEST

START_TEST(long_sentences_are_cut_to_the_record)
{
    char text[1000];
    memset(text, 'x', sizeof text);
    text[999] = '\0';
    err_set(MESH_EIO, "%s", text);
    const char *message = mesh_last_error()->message;
    ck_assert_uint_eq(strlen(message), 255);
    ck_assert_str_eq(message + 252, "...");
    err_wrap(MESH_EIO, "outer");
    ck_assert_uint_eq(strlen(message), 255);
    ck_assert_mem_eq(message, "outer: xxx", 10);
    ck_assert_str_eq(message + 252, "...");
    err_set(MESH_EIO, "%.255s", text);
    ck_assert_uint_eq(strlen(message), 255);
    ck_assert_int_eq(message[254], 'x');
}
END_TEST

START_TEST(a_cut_never_splits_a_character)
{
    for (int shift = 0; shift < 4; shift++) {
        char text[600] = "";
        for (int i = 0; i < shift; i++) {
            strcat(text, "a");
        }
        while (strlen(text) < 500) {
            strcat(text, "\xe2\x82\xac"); /* three bytes */
        }
        err_set(MESH_EIO, "%s", text);
        size_t len = strlen(mesh_last_error()->message);
        ck_assert_uint_le(len, 255);
        ck_assert_uint_ge(len, 253);
        ck_assert_uint_eq((len - 3 - (size_t)shift) % 3, 0);
    }
}
END_TEST

START_TEST(local_failures_are_told_apart)
{
    err_set_rank(1);
    err_set(MESH_ESHAPE, "all ranks see this");
    ck_assert(!err_is_local());
    err_set_local(MESH_EIO, "only this one");
    ck_assert(err_is_local());
    err_wrap(MESH_EIO, "outer");
    ck_assert(err_is_local());
    err_set_about(MESH_EPEER, 2, "rank 2 died");
    ck_assert(!err_is_local());
    ck_assert_int_eq(mesh_last_error()->rank, 2);
    ck_assert_int_eq(err_no_memory(64, "a tensor"), MESH_ENOMEM);
    ck_assert(err_is_local());
    ck_assert_str_eq(mesh_last_error()->message, "out of memory: 64 bytes for a tensor");
}
END_TEST

START_TEST(a_kept_record_can_be_put_back)
{
    err_enter("mesh_add");
    err_set(MESH_ESHAPE, "first");
    mesh_error kept = *mesh_last_error();
    err_enter("mesh_mul");
    err_set(MESH_EIO, "second");
    ck_assert_int_eq(err_restore(&kept), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message, "first");
    ck_assert_str_eq(mesh_last_error()->where, "mesh_add");
    ck_assert_int_eq(err_restore(mesh_last_error()), MESH_ESHAPE);
    mesh_error news = { .status = MESH_EPEER, .rank = 1, .message = "rank 1 died" };
    err_restore(&news);
    ck_assert_str_eq(mesh_last_error()->where, "mesh_mul"); /* what the user called when it became known */
}
END_TEST

static void *other_thread(void *arg)
{
    (void)arg;
    ck_assert_int_eq(mesh_last_error()->status, MESH_OK);
    err_set(MESH_EIO, "theirs");
    return NULL;
}

START_TEST(threads_have_their_own)
{
    pthread_t thread;
    err_set(MESH_ESHAPE, "ours");
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    ck_assert_str_eq(mesh_last_error()->message, "ours");
}
END_TEST

START_TEST(statuses_have_names_and_texts)
{
#define X(name, value, text)                                                                                           \
    ck_assert_int_eq(MESH_##name, value);                                                                              \
    ck_assert_str_eq(mesh_status_name(MESH_##name), "MESH_" #name);                                                    \
    ck_assert_str_eq(mesh_status_text(MESH_##name), text);
    MESH_STATUS_MAP(X)
#undef X
    ck_assert_str_eq(mesh_status_name((mesh_status)-99), "MESH_?");
    ck_assert_str_eq(mesh_status_text((mesh_status)5), "unknown status");
}
END_TEST

/* What a call prints to stderr. */
static void print_error(const char *prefix, char ret_text[1000])
{
    int fds[2], saved = dup(2);
    ck_assert_int_eq(pipe(fds), 0);
    fflush(stderr);
    dup2(fds[1], 2);
    close(fds[1]);
    mesh_perror(prefix);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    ssize_t n = read(fds[0], ret_text, 999);
    ret_text[n > 0 ? n : 0] = '\0';
    close(fds[0]);
}

START_TEST(perror_prints_one_line_with_the_ranks)
{
    char text[1000];
    print_error(NULL, text);
    ck_assert_str_eq(text, "success [MESH_OK]\n");
    err_set_rank(2);
    err_enter("mesh_matmul");
    err_set(MESH_ESHAPE, "784 != 512");
    print_error("training", text);
    ck_assert_str_eq(text, "rank 2: training: 784 != 512 [MESH_ESHAPE in mesh_matmul]\n");
    err_set_about(MESH_EABORTED, 1, "rank 1: out of memory");
    print_error("", text);
    ck_assert_str_eq(text, "rank 2: rank 1: out of memory [MESH_EABORTED in mesh_matmul, began on rank 1]\n");
}
END_TEST

START_TEST(perror_leaves_the_rank_to_who_tags_the_lines)
{
    char text[1000];
    err_set_rank(2);
    err_enter("mesh_matmul");
    err_set(MESH_ESHAPE, "784 != 512");
    setenv("MESH_TAGGED", "1", 1);
    print_error("training", text);
    ck_assert_str_eq(text, "training: 784 != 512 [MESH_ESHAPE in mesh_matmul]\n");
    setenv("MESH_TAGGED", "", 1);
    print_error("training", text);
    ck_assert_str_eq(text, "rank 2: training: 784 != 512 [MESH_ESHAPE in mesh_matmul]\n");
    unsetenv("MESH_TAGGED");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("error");
    TCase *t = tcase_create("error");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, a_fresh_thread_has_no_error);
    tcase_add_test(t, a_function_behind_a_macro_goes_by_the_name_of_the_macro);
    tcase_add_test(t, who_knows_why_writes_the_sentence);
    tcase_add_test(t, callers_put_theirs_in_front);
    tcase_add_test(t, success_is_not_wrapped);
    tcase_add_test(t, a_status_without_a_sentence_gets_its_text);
    tcase_add_test(t, a_sentence_may_quote_the_last_one);
    tcase_add_test(t, long_sentences_are_cut_to_the_record);
    tcase_add_test(t, a_cut_never_splits_a_character);
    tcase_add_test(t, local_failures_are_told_apart);
    tcase_add_test(t, a_kept_record_can_be_put_back);
    tcase_add_test(t, threads_have_their_own);
    tcase_add_test(t, statuses_have_names_and_texts);
    tcase_add_test(t, perror_prints_one_line_with_the_ranks);
    tcase_add_test(t, perror_leaves_the_rank_to_who_tags_the_lines);
    suite_add_tcase(s, t);
    return s;
}
