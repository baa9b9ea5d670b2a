/* client/ctl/watch.h - show something again and again until Ctrl-C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_WATCH_H
#define CTL_WATCH_H

#include "ctl/ctl.h"

/* Calls show(ctl, arg) once, or with is_watching twice a second until it fails or Ctrl-C ends the program; the exit code. */
int watch_run(const struct ctl *ctl, bool is_watching, int (*show)(const struct ctl *ctl, const void *arg),
              const void *arg);

#endif
