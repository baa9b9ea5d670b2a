/* client/ctl/watch.c - the redraw loop of --watch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/watch.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ctl/say.h"

#define REDRAW_MS 500

static void clear_screen(const struct ctl *ctl)
{
    bool is_table = ctl->format == FORMAT_TABLE || ctl->format == FORMAT_WIDE;
    if (is_table && isatty(STDOUT_FILENO) == 1) {
        (void)fputs("\033[H\033[J", stdout);
    }
}

int watch_run(const struct ctl *ctl, bool is_watching, int (*show)(const struct ctl *ctl, const void *arg),
              const void *arg)
{
    do {
        if (is_watching) {
            clear_screen(ctl);
        }
        int r = show(ctl, arg);
        if (r != 0) {
            return say_failure(r);
        }
        if (is_watching) {
            struct timespec pause = { .tv_nsec = REDRAW_MS * 1000000L };
            if (fflush(stdout) != 0) {
                return EXIT_FAILED;
            }
            (void)nanosleep(&pause, NULL);
        }
    } while (is_watching);
    return EXIT_OK;
}
