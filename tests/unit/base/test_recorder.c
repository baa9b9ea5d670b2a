/* tests/unit/base/test_recorder.c - reading a recorder's file, whatever is in it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "harness/check_main.h"

static uint8_t *file, *later;
static struct recorder_image *image;

static void put(uint8_t *at, size_t place, int index, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[place + (size_t)index * 8 + (size_t)i] = (uint8_t)(value >> (8 * i));
    }
}

static size_t call_at(uint64_t number)
{
    return RECORDER_CALLS_AT + (size_t)((number - 1) % RECORDER_CALLS) * RECORDER_WORDS * 8;
}

static void put_call(uint64_t number, enum recorder_state state, uint64_t started_ns)
{
    size_t at = call_at(number);
    put(file, at, RECORDER_C_LOCK, 2);
    put(file, at, RECORDER_C_NUMBER, number);
    put(file, at, RECORDER_C_GROUP, 77);
    put(file, at, RECORDER_C_SEQUENCE, number);
    put(file, at, RECORDER_C_COUNT, 1024);
    put(file, at, RECORDER_C_CALL,
        recorder_pair(MESH_COMM_ALL_REDUCE | MESH_F32 << 8 | MESH_SUM << 16 | (uint32_t)state << 24, UINT32_MAX));
    put(file, at, RECORDER_C_QUEUED_NS, started_ns);
    put(file, at, RECORDER_C_STARTED_NS, started_ns);
    put(file, at, RECORDER_C_ENDED_NS, state >= RECORDER_DONE ? started_ns + 1 : 0);
}

static void put_header(uint64_t n_calls)
{
    put(file, 0, RECORDER_H_MAGIC, RECORDER_MAGIC);
    put(file, 0, RECORDER_H_VERSION, recorder_pair(RECORDER_VERSION, RECORDER_WORDS));
    put(file, 0, RECORDER_H_PLACES, recorder_pair(RECORDER_GROUPS, RECORDER_CALLS));
    put(file, 0, RECORDER_H_RANK, recorder_pair(2, 4));
    put(file, 0, RECORDER_H_PROCESS, recorder_pair(4711, 1));
    put(file, 0, RECORDER_H_N_CALLS, n_calls);
}

static void put_group(size_t place, uint64_t id, const char *name)
{
    size_t at = RECORDER_GROUPS_AT + place * RECORDER_WORDS * 8;
    put(file, at, RECORDER_G_ID, id);
    put(file, at, RECORDER_G_SIZE, recorder_pair(4, 2));
    put(file, at, RECORDER_G_ENTERED, 3);
    put(file, at, RECORDER_G_FINISHED, 2);
    memcpy(file + at + RECORDER_G_NAME * 8, name, strlen(name));
}

static void set_up(void)
{
    file = calloc(1, RECORDER_FILE_BYTES);
    later = calloc(1, RECORDER_FILE_BYTES);
    image = calloc(1, sizeof *image);
    ck_assert(file != NULL && later != NULL && image != NULL);
    put_header(3);
    put_group(0, 77, "tp");
    put_call(1, RECORDER_DONE, 100);
    put_call(2, RECORDER_DONE, 200);
    put_call(3, RECORDER_RUNNING, 300);
    memcpy(later, file, RECORDER_FILE_BYTES);
}

static void tear_down(void)
{
    free(file);
    free(later);
    free(image);
}

START_TEST(what_was_written_is_read)
{
    char text[100];
    ck_assert_int_eq(recorder_read(file, later, image), 0);
    ck_assert_uint_eq(image->rank, 2);
    ck_assert_uint_eq(image->world_size, 4);
    ck_assert_uint_eq(image->pid, 4711);
    ck_assert_uint_eq(image->n_groups, 1);
    ck_assert_str_eq(image->group[0].name, "tp");
    ck_assert_uint_eq(image->group[0].entered, 3);
    ck_assert_uint_eq(image->n_calls, 3);
    const struct recorder_call *c = recorder_latest(image);
    ck_assert_uint_eq(c->sequence, 3);
    ck_assert_int_eq(c->words.root, -1);
    ck_assert_str_eq(call_words_text(&c->words, text, sizeof text), "all_reduce sum f32[1024]");
    ck_assert_str_eq(recorder_state_name(c->state), "running");
    ck_assert_int_eq(recorder_since_ns(c), 300);
    ck_assert_ptr_null(recorder_find_call(image, 77, 4));
    ck_assert_ptr_null(recorder_find_group(image, 78));
}
END_TEST

START_TEST(the_oldest_calls_come_first_when_the_ring_has_gone_round)
{
    put_header(RECORDER_CALLS + 2);
    for (uint64_t n = 3; n <= RECORDER_CALLS + 2; n++) {
        put_call(n, RECORDER_DONE, n);
    }
    memcpy(later, file, RECORDER_FILE_BYTES);
    ck_assert_int_eq(recorder_read(file, later, image), 0);
    ck_assert_uint_eq(image->n_calls, RECORDER_CALLS);
    ck_assert_uint_eq(image->call[0].number, 3);
    ck_assert_uint_eq(image->call[RECORDER_CALLS - 1].number, RECORDER_CALLS + 2);
}
END_TEST

START_TEST(what_changes_between_two_looks_is_not_believed)
{
    put(later, call_at(2), RECORDER_C_COUNT, 5);
    put(later, call_at(3), RECORDER_C_LOCK, 3);
    put(file, call_at(3), RECORDER_C_LOCK, 3);
    ck_assert_int_eq(recorder_read(file, later, image), 0);
    ck_assert_uint_eq(image->n_calls, 1);
    ck_assert_uint_eq(image->call[0].number, 1);
}
END_TEST

START_TEST(a_call_in_the_wrong_place_or_of_no_state_is_left_out)
{
    put(file, call_at(1), RECORDER_C_NUMBER, 2);
    put(file, call_at(2), RECORDER_C_CALL, (uint64_t)9 << 24);
    put(file, call_at(3), RECORDER_C_NUMBER, 3 + RECORDER_CALLS); /* more than were given out */
    memcpy(later, file, RECORDER_FILE_BYTES);
    ck_assert_int_eq(recorder_read(file, later, image), 0);
    ck_assert_uint_eq(image->n_calls, 0);
}
END_TEST

START_TEST(names_can_be_printed_and_end)
{
    memset(file + RECORDER_GROUPS_AT + RECORDER_G_NAME * 8, 0x1b, RECORDER_NAME_BYTES);
    memcpy(later, file, RECORDER_FILE_BYTES);
    ck_assert_int_eq(recorder_read(file, later, image), 0);
    ck_assert_uint_eq(strlen(image->group[0].name), RECORDER_NAME_BYTES);
    ck_assert_int_eq(image->group[0].name[0], '?');
}
END_TEST

START_TEST(another_file_is_refused)
{
    const struct {
        int word;
        uint64_t value;
    } wrong[] = {
        { RECORDER_H_MAGIC, 1 },  { RECORDER_H_VERSION, recorder_pair(2, RECORDER_WORDS) },
        { RECORDER_H_PLACES, 0 }, { RECORDER_H_RANK, recorder_pair(4, 4) },
        { RECORDER_H_RANK, 0 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(later, file, RECORDER_FILE_BYTES);
        put(later, 0, wrong[i].word, wrong[i].value);
        ck_assert_int_eq(recorder_read(file, later, image), MESH_EPROTO);
    }
}
END_TEST

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

static void check_bounds(void)
{
    char text[200];
    ck_assert(image->rank < image->world_size && image->n_groups <= RECORDER_GROUPS &&
              image->n_calls <= RECORDER_CALLS);
    for (size_t i = 0; i < image->n_calls; i++) {
        const struct recorder_call *c = &image->call[i];
        ck_assert(c->n_waited <= RECORDER_MAX_WAITED && c->started_ns >= 0 && c->ended_ns >= 0);
        ck_assert(c->n_waited == 0 || c->waited[c->n_waited - 1] < image->world_size);
        ck_assert_str_ne(recorder_state_name(c->state), "?");
        (void)call_words_text(&c->words, text, sizeof text);
    }
    for (size_t i = 0; i < image->n_groups; i++) {
        const struct recorder_group *g = &image->group[i];
        ck_assert(g->id != 0 && g->rank < g->size && g->finished <= g->entered && g->failed <= g->finished);
    }
    (void)recorder_latest(image);
}

START_TEST(damaged_files_give_an_error_or_values_within_bounds)
{
    uint64_t state = 7;
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + next(&state) % 400;
        for (size_t i = 0; i < n; i++) {
            size_t at = next(&state) % (round % 3 == 0 ? RECORDER_CALLS_AT : RECORDER_FILE_BYTES);
            file[at] = (uint8_t)next(&state);
        }
        put_header(round % 2 == 0 ? UINT64_MAX : 3 + (uint64_t)round);
        memcpy(later, file, RECORDER_FILE_BYTES);
        if (recorder_read(file, later, image) == 0) {
            check_bounds();
        }
    }
    for (size_t i = 0; i < RECORDER_FILE_BYTES; i++) {
        file[i] = (uint8_t)next(&state);
    }
    put_header(UINT64_MAX);
    ck_assert_int_eq(recorder_read(file, file, image), 0);
    check_bounds();
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("recorder");
    TCase *cases = tcase_create("recorder");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, what_was_written_is_read);
    tcase_add_test(cases, the_oldest_calls_come_first_when_the_ring_has_gone_round);
    tcase_add_test(cases, what_changes_between_two_looks_is_not_believed);
    tcase_add_test(cases, a_call_in_the_wrong_place_or_of_no_state_is_left_out);
    tcase_add_test(cases, names_can_be_printed_and_end);
    tcase_add_test(cases, another_file_is_refused);
    tcase_add_test(cases, damaged_files_give_an_error_or_values_within_bounds);
    suite_add_tcase(suite, cases);
    return suite;
}
