/* tests/harness/check_main.h - the main() of every test program: one Check suite per file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_CHECK_MAIN_H
#define HARNESS_CHECK_MAIN_H

#include <check.h>

/* Each test file defines this. */
Suite *test_suite(void);

#endif
