/* tests/unit/comm/test_record.c - the recorder while several threads write and another process's eyes look.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/record.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "harness/check_main.h"

enum { N_WRITERS = 3, N_CALLS = 20000 };

static char folder[64], path[96];
static struct recorder *r;
static struct recorder_image *image;
static uint8_t *bytes;

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/recordXXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/0.ring", folder);
    r = recorder_new(&(struct recorder_owner){ .path = path, .rank = 1, .world_size = 4, .generation = 3 });
    bytes = malloc(2 * RECORDER_FILE_BYTES);
    image = malloc(sizeof *image);
    ck_assert(r != NULL && bytes != NULL && image != NULL);
}

static void tear_down(void)
{
    r = recorder_free(r);
    (void)unlink(path);
    (void)rmdir(folder);
    free(bytes);
    free(image);
}

static int look(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(pread(fd, bytes + i * RECORDER_FILE_BYTES, RECORDER_FILE_BYTES, 0), RECORDER_FILE_BYTES);
    }
    close(fd);
    return recorder_read(bytes, bytes + RECORDER_FILE_BYTES, image);
}

static struct record record_of(uint64_t sequence, int place)
{
    return (struct record){ .group = 5,
                            .sequence = sequence,
                            .place = place,
                            .words = { MESH_COMM_ALL_REDUCE, MESH_F32, MESH_SUM, .root = -1, .count = 3 * sequence },
                            .queued_ns = (int64_t)sequence };
}

START_TEST(a_call_is_seen_from_start_to_end)
{
    int place = recorder_add_group(r, 5, "tp", 4, 1);
    struct record c = record_of(1, place);
    uint64_t number = record_call(r, &c);
    ck_assert_int_eq(look(), 0);
    ck_assert_uint_eq(image->generation, 3);
    ck_assert_uint_eq(image->n_calls, 1);
    ck_assert_int_eq(image->call[0].state, RECORDER_QUEUED);
    ck_assert_uint_eq(image->group[0].entered, 1);
    record_running(r, number, 9);
    record_waiting(r, number, (const uint32_t[]){ 3, 2, 0 }, 3);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(image->call[0].state, RECORDER_RUNNING);
    ck_assert_uint_eq(image->call[0].n_waited, 3);
    ck_assert_uint_eq(image->call[0].waited[1], 2);
    record_over(r, number, place, MESH_EPEER);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(image->call[0].state, RECORDER_FAILED);
    ck_assert_int_eq(image->call[0].status, MESH_EPEER);
    ck_assert_uint_eq(image->group[0].finished, 1);
    ck_assert_uint_eq(image->group[0].failed, 1);
}
END_TEST

START_TEST(a_call_that_a_later_one_has_replaced_is_left_alone)
{
    struct record c = record_of(1, -1);
    uint64_t old = record_call(r, &c);
    for (uint64_t i = 2; i <= RECORDER_CALLS + 1; i++) {
        c = record_of(i, -1);
        (void)record_call(r, &c);
    }
    record_over(r, old, -1, MESH_EPEER);
    ck_assert_int_eq(look(), 0);
    ck_assert_uint_eq(image->n_calls, RECORDER_CALLS);
    ck_assert_uint_eq(image->call[RECORDER_CALLS - 1].sequence, RECORDER_CALLS + 1);
    ck_assert_int_eq(image->call[RECORDER_CALLS - 1].state, RECORDER_QUEUED);
}
END_TEST

START_TEST(groups_take_free_places_until_there_are_none)
{
    int first = recorder_add_group(r, 1, "first", 2, 0);
    for (int i = 1; i < RECORDER_GROUPS; i++) {
        ck_assert_int_ge(recorder_add_group(r, 1 + (uint64_t)i, "more", 2, 0), 0);
    }
    ck_assert_int_eq(recorder_add_group(r, 9999, "none", 2, 0), -1);
    recorder_remove_group(r, first);
    ck_assert_int_eq(recorder_add_group(r, 9999, "now", 2, 0), first);
    ck_assert_int_eq(look(), 0);
    ck_assert_uint_eq(image->n_unnamed, 1);
    ck_assert_str_eq(recorder_find_group(image, 9999)->name, "now");
}
END_TEST

static _Atomic int n_writing;

static void *write_calls(void *arg)
{
    int place = recorder_add_group(r, 5, "tp", 4, (int)(intptr_t)arg % 4);
    for (uint64_t i = 1; i <= N_CALLS; i++) {
        struct record c = record_of(i, place);
        uint64_t number = record_call(r, &c);
        record_running(r, number, (int64_t)i + 1);
        record_waiting(r, number, (const uint32_t[]){ (uint32_t)i % 4, (uint32_t)i % 4 }, 2);
        record_over(r, number, place, 0);
    }
    recorder_remove_group(r, place);
    atomic_fetch_sub(&n_writing, 1);
    return NULL;
}

/* Every call says the same thing in several words. */
static void check_whole(const struct recorder_call *c)
{
    ck_assert_uint_eq(c->words.count, 3 * c->sequence);
    ck_assert_int_eq(c->queued_ns, (int64_t)c->sequence);
    ck_assert(c->started_ns == 0 || c->started_ns == c->queued_ns + 1);
    ck_assert(c->n_waited == 0 || (c->waited[0] == c->sequence % 4 && c->waited[1] == c->waited[0]));
    ck_assert((c->ended_ns != 0) == recorder_is_over(c));
}

static void look_at_whole_calls(void)
{
    ck_assert_int_eq(look(), 0);
    for (size_t i = 0; i < image->n_calls; i++) {
        check_whole(&image->call[i]);
    }
}

START_TEST(nobody_ever_sees_half_a_call)
{
    pthread_t writer[N_WRITERS];
    n_writing = N_WRITERS;
    for (intptr_t i = 0; i < N_WRITERS; i++) {
        ck_assert_int_eq(pthread_create(&writer[i], NULL, write_calls, (void *)i), 0);
    }
    while (atomic_load(&n_writing) > 0) {
        look_at_whole_calls();
    }
    for (int i = 0; i < N_WRITERS; i++) {
        pthread_join(writer[i], NULL);
    }
    look_at_whole_calls();
    ck_assert_uint_eq(image->n_groups, 0);
    ck_assert_uint_ge(image->n_calls, RECORDER_CALLS - N_WRITERS); /* one that was locked for too long is skipped */
}
END_TEST

START_TEST(what_cannot_be_made_is_done_without)
{
    struct recorder_owner taken = { .path = path, .rank = 0, .world_size = 1 };
    ck_assert_int_eq(log_configure("off"), 0);
    ck_assert_ptr_null(recorder_new(&taken)); /* never another one's file */
    char link_path[96];
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    ck_assert_int_eq(symlink("/dev/null", link_path), 0);
    taken.path = link_path;
    ck_assert_ptr_null(recorder_new(&taken));
    (void)unlink(link_path);
    ck_assert_int_eq(log_configure(NULL), 0);
    struct record c = record_of(1, -1);
    ck_assert_uint_eq(record_call(NULL, &c), 0);
    record_running(NULL, 0, 0);
    record_over(NULL, 0, -1, 0);
    ck_assert_int_eq(recorder_add_group(NULL, 1, "g", 1, 0), -1);
    recorder_remove_group(NULL, -1);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(without_a_path_it_is_memory)
{
    struct recorder *own = recorder_new(&(struct recorder_owner){ .path = "", .rank = 0, .world_size = 1 });
    ck_assert_ptr_nonnull(own);
    struct record c = record_of(1, recorder_add_group(own, 5, "world", 1, 0));
    record_over(own, record_call(own, &c), c.place, 0);
    ck_assert_ptr_null(recorder_free(own));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("record");
    TCase *cases = tcase_create("record");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_call_is_seen_from_start_to_end);
    tcase_add_test(cases, a_call_that_a_later_one_has_replaced_is_left_alone);
    tcase_add_test(cases, groups_take_free_places_until_there_are_none);
    tcase_add_test(cases, nobody_ever_sees_half_a_call);
    tcase_add_test(cases, what_cannot_be_made_is_done_without);
    tcase_add_test(cases, without_a_path_it_is_memory);
    suite_add_tcase(suite, cases);
    return suite;
}
