/* tests/cases/case_suite.c - the rows of a file of cases as tests in simulated worlds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "case_list.h"
#include "harness/check_main.h"

enum { MAX_ROWS = 64 };

static void run_row(int i)
{
    static const int every[] = { 1, 2, 3, 4, 5, 8 };
    const struct case_row *row = &cases.rows[i];
    for (size_t k = 0; row->n_ranks == 0 && k < ARRAY_SIZE(every); k++) {
        ranks_run(every[k], row->on, NULL);
    }
    if (row->n_ranks > 0) {
        ranks_run(row->n_ranks, row->on, NULL);
    }
}

Suite *test_suite(void)
{
    static TTest tests[MAX_ROWS];
    Suite *s = suite_create(cases.title);
    TCase *t = tcase_create(cases.title);
    tcase_set_timeout(t, 60);
    for (int i = 0; i < cases.n && i < MAX_ROWS; i++) {
        tests[i] = (TTest){ .name = cases.rows[i].name, .fn = run_row, .file = __FILE__, .line = __LINE__ };
        _tcase_add_test(t, &tests[i], 0, 0, i, i + 1);
    }
    suite_add_tcase(s, t);
    return s;
}
