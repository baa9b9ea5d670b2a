/* client/ctl/supervise.c - the step function of a running job.
 *
 * The cause is the failure that was seen first, unless meshd says that another rank died first, or was the first to say
 * that something went wrong: the others may have heard, and ended, before it did.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/supervise.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "ctl/exit_codes.h"

bool fate_is_failure(const struct rank_fate *f)
{
    return f->has_ended && !(WIFEXITED(f->wait_status) && WEXITSTATUS(f->wait_status) == 0);
}

static int64_t later(int64_t now_ms, int64_t ms)
{
    return now_ms > DEADLINE_NEVER - ms ? DEADLINE_NEVER : now_ms + ms;
}

void supervise_init(struct supervise *s, struct rank_fate *fate, int n_ranks, const struct supervise_limits *limits,
                    int64_t now_ms)
{
    memset(fate, 0, (size_t)n_ranks * sizeof *fate);
    *s = (struct supervise){
        .n_ranks = n_ranks,
        .n_alive = n_ranks,
        .fate = fate,
        .limits = *limits,
        .started_ms = now_ms,
        .deadline_ms = limits->time_limit_ms > 0 ? later(now_ms, limits->time_limit_ms) : DEADLINE_NEVER,
        .cause = -1,
        .first_told = -1,
        .first_reporter = -1,
    };
}

static int enter(struct supervise *s, enum supervise_phase phase, int64_t now_ms)
{
    s->phase = phase;
    s->deadline_ms = DEADLINE_NEVER;
    switch (phase) {
    case PHASE_REPORTING:
        s->deadline_ms = later(now_ms, s->limits.report_ms);
        return 0;
    case PHASE_STOPPING:
        s->deadline_ms = later(now_ms, s->limits.grace_ms);
        return s->user_signal;
    case PHASE_TERM:
        s->deadline_ms = later(now_ms, s->limits.grace_ms);
        return SIGTERM;
    case PHASE_KILL:
        s->deadline_ms = later(now_ms, s->limits.kill_ms);
        return SIGKILL;
    case PHASE_RUNNING:
    case PHASE_OVER:
        return 0;
    }
    return 0;
}

static bool failed_by_itself(const struct supervise *s, int rank)
{
    return rank >= 0 && fate_is_failure(&s->fate[rank]) && !s->fate[rank].is_ours;
}

/* meshd's word counts when that rank did fail, by itself; a death more than a complaint, which may be about it. */
static void correct_cause(struct supervise *s)
{
    if (s->cause < 0) {
        return;
    }
    if (failed_by_itself(s, s->first_told)) {
        s->cause = s->first_told;
    } else if (failed_by_itself(s, s->first_reporter)) {
        s->cause = s->first_reporter;
    }
}

int supervise_quitter(const struct supervise *s)
{
    const struct rank_fate *f = s->first_told >= 0 ? &s->fate[s->first_told] : NULL;
    return s->cause >= 0 && f != NULL && f->has_ended && !f->is_ours && !fate_is_failure(f) ? s->first_told : -1;
}

static int rank_ended(struct supervise *s, const struct supervise_event *e)
{
    struct rank_fate *f = &s->fate[e->rank];
    if (f->has_ended) {
        return 0;
    }
    f->has_ended = true;
    f->wait_status = e->wait_status;
    f->ended_ms = e->now_ms;
    f->is_ours = s->phase >= PHASE_STOPPING;
    s->n_alive--;
    int signal_number = 0;
    if (fate_is_failure(f) && s->phase == PHASE_RUNNING) {
        s->cause = e->rank;
        signal_number = enter(s, PHASE_REPORTING, e->now_ms);
    }
    correct_cause(s);
    if (s->n_alive == 0) {
        (void)enter(s, PHASE_OVER, e->now_ms);
        return 0;
    }
    return signal_number;
}

bool supervise_asks_to_stop(int signal_number)
{
    return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGQUIT;
}

static int death_told(struct supervise *s, const struct supervise_event *e)
{
    if (s->first_told < 0 && e->rank >= 0 && e->rank < s->n_ranks) {
        s->first_told = e->rank;
        s->is_told_absent = e->kind == EVENT_ABSENCE_TOLD;
        correct_cause(s);
    }
    return 0;
}

static int report_told(struct supervise *s, const struct supervise_event *e)
{
    if (s->first_reporter < 0 && e->rank >= 0 && e->rank < s->n_ranks) {
        s->first_reporter = e->rank;
        correct_cause(s);
    }
    return 0;
}

static int user_signal(struct supervise *s, const struct supervise_event *e)
{
    if (!supervise_asks_to_stop(e->signal_number)) {
        return e->signal_number;
    }
    if (s->user_signal != 0) {
        return enter(s, PHASE_KILL, e->now_ms);
    }
    s->user_signal = e->signal_number;
    if (s->phase == PHASE_RUNNING) {
        return enter(s, PHASE_STOPPING, e->now_ms);
    }
    return s->phase == PHASE_REPORTING ? enter(s, PHASE_TERM, e->now_ms) : 0;
}

static int time_passed(struct supervise *s, const struct supervise_event *e)
{
    if (e->now_ms < s->deadline_ms) {
        return 0;
    }
    switch (s->phase) {
    case PHASE_RUNNING:
        s->is_timed_out = true;
        return enter(s, PHASE_TERM, e->now_ms);
    case PHASE_REPORTING:
        return enter(s, PHASE_TERM, e->now_ms);
    case PHASE_STOPPING:
        return enter(s, s->user_signal == SIGTERM ? PHASE_KILL : PHASE_TERM, e->now_ms);
    case PHASE_TERM:
        return enter(s, PHASE_KILL, e->now_ms);
    case PHASE_KILL:
        s->is_given_up = true;
        return enter(s, PHASE_OVER, e->now_ms);
    case PHASE_OVER:
        return 0;
    }
    return 0;
}

int supervise_step(struct supervise *s, const struct supervise_event *e)
{
    bool is_told = e->kind == EVENT_DEATH_TOLD || e->kind == EVENT_ABSENCE_TOLD || e->kind == EVENT_REPORT_TOLD;
    if (s->phase == PHASE_OVER && !is_told) {
        return 0;
    }
    switch (e->kind) {
    case EVENT_RANK_ENDED:
        return rank_ended(s, e);
    case EVENT_DEATH_TOLD:
    case EVENT_ABSENCE_TOLD:
        return death_told(s, e);
    case EVENT_REPORT_TOLD:
        return report_told(s, e);
    case EVENT_USER_SIGNAL:
        return user_signal(s, e);
    case EVENT_TIME:
        return time_passed(s, e);
    case EVENT_OUTPUT_CLOSED:
        s->is_output_closed = true;
        return s->phase < PHASE_TERM ? enter(s, PHASE_TERM, e->now_ms) : 0;
    }
    return 0;
}

static int code_of(const struct rank_fate *f)
{
    return WIFSIGNALED(f->wait_status) ? EXIT_SIGNAL + WTERMSIG(f->wait_status) : WEXITSTATUS(f->wait_status);
}

/* After the user's signal: what the program made of it, unless we had to help. */
static int code_after_user_signal(const struct supervise *s)
{
    const struct rank_fate *first = NULL;
    for (int i = 0; i < s->n_ranks; i++) {
        const struct rank_fate *f = &s->fate[i];
        if (fate_is_failure(f) && (first == NULL || f->ended_ms < first->ended_ms)) {
            first = f;
        }
    }
    if (first == NULL) {
        return EXIT_OK;
    }
    return WIFSIGNALED(first->wait_status) ? EXIT_SIGNAL + s->user_signal : code_of(first);
}

int supervise_exit_code(const struct supervise *s)
{
    if (s->cause >= 0) {
        return code_of(&s->fate[s->cause]);
    }
    if (s->is_given_up) {
        return EXIT_LAUNCHER;
    }
    if (s->is_timed_out) {
        return EXIT_RUN_TIMEOUT;
    }
    if (s->is_output_closed) {
        return EXIT_SIGNAL + SIGPIPE;
    }
    return s->user_signal != 0 ? code_after_user_signal(s) : EXIT_OK;
}
