/* tests/harness/check_main.c - runs the suite of the file it is linked with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdlib.h>

/* A case without a limit of its own: the library's 4 s would let a slow machine decide. */
#define DEFAULT_LIMIT_S "30"

int main(void)
{
    (void)setenv("CK_DEFAULT_TIMEOUT", DEFAULT_LIMIT_S, 0);
    SRunner *runner = srunner_create(test_suite());
    srunner_run_all(runner, CK_ENV);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#ifdef __SANITIZE_THREAD__
/* libuv closes its descriptors by raw system calls, which ThreadSanitizer does not see: another thread that gets the
 * same number later then looks like a race with the making of the old one. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race_top:epoll_create1\nrace_top:eventfd\nrace_top:pipe2\n";
}
#endif
