/* tests/unit/wire/test_machine.c - state machines check their moves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "wire/machine.h"

enum { ASLEEP, AWAKE, GONE, N_STATES };

static const struct machine_state states[N_STATES] = {
    [ASLEEP] = { "ASLEEP", TO(AWAKE), MACHINE_INITIAL },
    [AWAKE] = { "AWAKE", TO(ASLEEP) | TO(GONE), 0 },
    [GONE] = { "GONE", 0, MACHINE_FINAL },
};

static const struct machine_state no_beginning[] = { { "ONLY", 0, MACHINE_FINAL } };

static char last_line[256];

static void keep_line(enum log_level level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    snprintf(last_line, sizeof last_line, "%s", line);
}

START_TEST(moves_of_the_table_are_traced)
{
    struct machine m;
    char want[64];
    log_set_sink(keep_line, NULL);
    ck_assert_int_eq(log_configure("wire:trace"), 0);
    machine_init(&m, "cat", states, N_STATES);
    ck_assert_int_eq(m.state, ASLEEP);
    machine_move(&m, AWAKE);
    snprintf(want, sizeof want, "cat#%u ASLEEP -> AWAKE", m.id);
    ck_assert_ptr_nonnull(strstr(last_line, want));
    machine_move(&m, GONE);
    ck_assert_int_eq(m.state, GONE);
}
END_TEST

START_TEST(a_move_that_is_not_in_the_table_is_a_bug)
{
    struct machine m;
    machine_init(&m, "cat", states, N_STATES);
    machine_move(&m, GONE);
}
END_TEST

START_TEST(a_table_without_an_initial_state_is_a_bug)
{
    struct machine m;
    machine_init(&m, "stone", no_beginning, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("machine");
    TCase *t = tcase_create("machine");
    tcase_add_test(t, moves_of_the_table_are_traced);
    tcase_add_test_raise_signal(t, a_move_that_is_not_in_the_table_is_a_bug, SIGABRT);
    tcase_add_test_raise_signal(t, a_table_without_an_initial_state_is_a_bug, SIGABRT);
    suite_add_tcase(s, t);
    return s;
}
