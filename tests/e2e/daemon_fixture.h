/* tests/e2e/daemon_fixture.h - a meshd for each test, as a checked fixture, and the jobs in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef E2E_DAEMON_FIXTURE_H
#define E2E_DAEMON_FIXTURE_H

#include "ctl.h"

#define SOON_MS 30000

extern struct test_daemon meshd; /* from meshd_setup() to meshd_teardown() */

void meshd_setup(void);
void meshd_teardown(void);

/* Until `text` stands n times in what the ranks of this `meshctl run` print; fails the test when it does not SOON. */
void wait_until_printed(struct proc *run, const char *text, int n);

#endif
