/* tests/harness/check_main.c - runs the suite of the file it is linked with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdlib.h>

int main(void)
{
    SRunner *runner = srunner_create(test_suite());
    srunner_run_all(runner, CK_ENV);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
