/* client/ctl/supervise.h - the decisions of `meshctl run` while ranks run: whom to signal, when, who was the cause.
 *
 *                         a rank fails                        report_ms           grace_ms
 *      RUNNING -------------------------------> REPORTING --------------> TERM -----------> KILL --> OVER
 *         |   \                                                             ^                 ^
 *         |    '-- time limit, output closed -------------------------------'                 |
 *         '------- INT, QUIT or TERM from the user --> STOPPING -- grace_ms, then TERM -------'  (a second one: KILL at once)
 *
 * REPORTING is the short time in which the others, who hear of the failure through meshd, say so and end by themselves.
 * From every state: all ranks have ended --> OVER.  Pure: no clock, no processes; events carry the time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_SUPERVISE_H
#define CTL_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

enum supervise_phase {
    PHASE_RUNNING,
    PHASE_REPORTING,
    PHASE_STOPPING,
    PHASE_TERM,
    PHASE_KILL,
    PHASE_OVER,
};

struct rank_fate {
    bool has_ended;
    int wait_status; /* as waitpid() gives it */
    int64_t ended_ms;
    bool is_ours; /* it ended after we had told it to */
};

enum supervise_event_kind {
    EVENT_RANK_ENDED,    /* rank, wait_status */
    EVENT_DEATH_TOLD,    /* rank: meshd lost its connection before it had left */
    EVENT_ABSENCE_TOLD,  /* rank: meshd failed those who wanted to join, because it had ended without having joined */
    EVENT_REPORT_TOLD,   /* rank: meshd passed on what that rank said went wrong */
    EVENT_USER_SIGNAL,   /* signal_number: meshctl itself got it */
    EVENT_TIME,          /* the clock passed supervise.deadline_ms */
    EVENT_OUTPUT_CLOSED, /* nobody reads our standard output any more */
};

struct supervise_event {
    enum supervise_event_kind kind;
    int64_t now_ms;
    int rank, wait_status, signal_number;
};

struct supervise_limits {
    int64_t report_ms, grace_ms, kill_ms;
    int64_t time_limit_ms; /* 0: none */
};

struct supervise {
    int n_ranks, n_alive;
    struct rank_fate *fate; /* [n_ranks], borrowed */
    struct supervise_limits limits;
    enum supervise_phase phase;
    int64_t started_ms, deadline_ms; /* DEADLINE_NEVER: EVENT_TIME is not wanted */
    int cause;                       /* rank; -1: none */
    int first_told;                  /* the rank of the first EVENT_DEATH_TOLD or EVENT_ABSENCE_TOLD; -1: none */
    bool is_told_absent;             /* it was the latter */
    int first_reporter;              /* the rank of the first EVENT_REPORT_TOLD; -1: none */
    int user_signal;                 /* the first that asks to stop; 0: none */
    bool is_timed_out, is_output_closed, is_given_up;
};

void supervise_init(struct supervise *s, struct rank_fate *fate, int n_ranks, const struct supervise_limits *limits,
                    int64_t now_ms);

/* The signal that all living ranks are to be sent now; 0: none. */
int supervise_step(struct supervise *s, const struct supervise_event *e);

int supervise_exit_code(const struct supervise *s);
/* The rank that ended with code 0 but had not joined or not left the job, which others then failed of; -1: none. */
int supervise_quitter(const struct supervise *s);
bool fate_is_failure(const struct rank_fate *f);
bool supervise_asks_to_stop(int signal_number);

#endif
