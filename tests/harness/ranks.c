/* tests/harness/ranks.c - runs ranks and carries the first complaint out of their threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/ranks.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char complaint[600];

const char *ranks_complaint(void)
{
    return complaint;
}

int ranks_complain(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    if (complaint[0] == '\0') {
        int n = snprintf(complaint, sizeof complaint, "%s:%d: rank %d: ", file, line, mesh_rank());
        vsnprintf(complaint + n, sizeof complaint - (size_t)n, format, args);
    }
    pthread_mutex_unlock(&lock);
    va_end(args);
    return -1;
}

int ranks_near(const char *file, int line, double got, double want, double tolerance)
{
    if ((isnan(got) && isnan(want)) || got == want || fabs(got - want) <= tolerance * (1 + fabs(want))) {
        return 0;
    }
    return ranks_complain(file, line, "got %.12g, want %.12g", got, want);
}

void ranks_run(int n, rank_fn fn, void *arg)
{
    complaint[0] = '\0';
    int r = mesh_world_run(n, fn, arg);
    ck_assert_msg(complaint[0] == '\0', "%s", complaint);
    ck_assert_msg(r == 0, "a rank failed: %s", mesh_last_error()->message);
}
