/* client/ctl/summary.c - sentences about the end of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/summary.h"

#include <string.h>
#include <sys/wait.h>

void summary_write_rank(const struct supervise *s, const pid_t *pids, int rank, struct buf *text)
{
    const struct rank_fate *f = &s->fate[rank];
    buf_printf(text, "rank %d (pid %d) ", rank, (int)pids[rank]);
    if (!f->has_ended) {
        buf_printf(text, "does not end even after SIGKILL");
        return;
    }
    if (WIFSIGNALED(f->wait_status)) {
        int n = WTERMSIG(f->wait_status);
        buf_printf(text, "was killed by signal %d (%s)", n, strsignal(n));
    } else {
        buf_printf(text, "exited with code %d", WEXITSTATUS(f->wait_status));
    }
    buf_printf(text, " after %.1f s", (double)(f->ended_ms - s->started_ms) / 1000.0);
}

static int cause_of(const struct supervise *s)
{
    int quitter = supervise_quitter(s);
    return quitter >= 0 ? quitter : s->cause;
}

/* Ended neither well nor as the cause: because of what happened elsewhere. */
static bool is_knock_on(const struct supervise *s, int rank)
{
    return rank != cause_of(s) && s->fate[rank].has_ended && (fate_is_failure(&s->fate[rank]) || s->fate[rank].is_ours);
}

static int count_knock_on(const struct supervise *s)
{
    int n = 0;
    for (int i = 0; i < s->n_ranks; i++) {
        n += is_knock_on(s, i);
    }
    return n;
}

/* "rank 3", "ranks 0, 1, 3", runs of three and more as "0-5". */
static void write_knock_on(const struct supervise *s, struct buf *text)
{
    const char *before = count_knock_on(s) > 1 ? "ranks " : "rank ";
    for (int i = 0; i < s->n_ranks;) {
        int last = i;
        while (last < s->n_ranks && is_knock_on(s, last)) {
            last++;
        }
        int n = last - i;
        if (n >= 3) {
            buf_printf(text, "%s%d-%d", before, i, last - 1);
        }
        for (int k = i; n < 3 && k < last; k++) {
            buf_printf(text, "%s%d", before, k);
            before = ", ";
        }
        before = n > 0 ? ", " : before;
        i = last > i ? last : i + 1;
    }
}

static void write_stuck(const struct supervise *s, const pid_t *pids, struct buf *text)
{
    for (int i = 0; i < s->n_ranks; i++) {
        if (!s->fate[i].has_ended) {
            buf_printf(text, "; ");
            summary_write_rank(s, pids, i, text);
        }
    }
}

/* What happened, when no rank was the cause; "" when nothing did. */
static const char *other_cause(const struct supervise *s)
{
    if (s->is_timed_out) {
        return "the job ran longer than --timeout";
    }
    if (s->is_output_closed) {
        return "nobody reads the output any more";
    }
    return "";
}

/* What the rank of the cause had not done when it ended; "" when that is no matter. */
static const char *what_it_missed(const struct supervise *s)
{
    if (s->is_told_absent && s->first_told == cause_of(s)) {
        return " without having joined the job (mesh_init())";
    }
    return supervise_quitter(s) >= 0 ? " without leaving the job (mesh_finalize())" : "";
}

void summary_write(const struct supervise *s, const pid_t *pids, struct buf *text)
{
    if (s->cause >= 0) {
        summary_write_rank(s, pids, cause_of(s), text);
        buf_printf(text, "%s", what_it_missed(s));
    } else if (other_cause(s)[0] != '\0') {
        buf_printf(text, "%s", other_cause(s));
    } else if (s->user_signal != 0 && supervise_exit_code(s) != 0) {
        buf_printf(text, "stopped by signal %d (%s)", s->user_signal, strsignal(s->user_signal));
    } else {
        return;
    }
    if (count_knock_on(s) > 0) {
        buf_printf(text, "; ");
        write_knock_on(s, text);
        buf_printf(text, " ended because of it");
    }
    write_stuck(s, pids, text);
}
