/* client/ctl/summary.h - what `meshctl run` says about how a job ended, root cause first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_SUMMARY_H
#define CTL_SUMMARY_H

#include <sys/types.h>

#include "base/buf.h"
#include "ctl/supervise.h"

/* One sentence without a newline; nothing is appended when all is well.  pids [n_ranks]. */
void summary_write(const struct supervise *s, const pid_t *pids, struct buf *text);

/* "rank 2 (pid 4711) was killed by signal 9 (Killed) after 3.2 s" */
void summary_write_rank(const struct supervise *s, const pid_t *pids, int rank, struct buf *text);

#endif
