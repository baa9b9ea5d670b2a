/* tests/e2e/daemon_fixture.c - the meshd of the running test.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon_fixture.h"

#include <check.h>

struct test_daemon meshd;

void meshd_setup(void)
{
    test_daemon_start(&meshd);
}

void meshd_teardown(void)
{
    test_daemon_stop(&meshd);
}

void wait_until_printed(struct proc *run, const char *text, int n)
{
    int64_t end_ms = now_ms() + SOON_MS;
    while (count_text(run->out.text, text) < n && now_ms() < end_ms && !run->has_ended) {
        (void)proc_wait(run, 10);
    }
    ck_assert_msg(count_text(run->out.text, text) >= n, "'%s' is not there %d times: %.3000s%.3000s", text, n,
                  run->out.text, run->err.text);
}
