/* daemon/diagnose.h - which rank holds a job up, in which call: from snapshots of all ranks to a verdict.
 *
 * Pure: what the ranks' recorders say, who is alive, which processes are stopped come in; findings go out.  For each
 * group
 *
 *      s         the first call that a member has entered and not finished, or in which it failed
 *      mismatch  members entered s with different calls
 *      stall     members have not entered s (missing), or have and are stopped or dead in it
 *      slow      all have entered, nothing speaks against any: large, slow or stuck, nobody can say
 *      unknown   nothing is known of a member that may be the cause: no evidence is never evidence
 *
 * A rank that is missing here may itself wait in another group.  So findings are the nodes of a graph: a finding whose
 * missing ranks all wait in other findings is a knock-on of those; a ring of them, without a cause outside, is a
 * circle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DIAGNOSE_H
#define DAEMON_DIAGNOSE_H

#include "base/recorder.h"
#include "base/vec.h"
#include "daemon/liveness.h"
#include "daemon/records.h"

enum process_state { PROCESS_UNKNOWN, PROCESS_RUNS, PROCESS_STOPPED, PROCESS_GONE };

struct diagnose_rank {
    enum life life;
    enum process_state process;
    const char *host;
    uint32_t pid;
    const struct recorder_image *image; /* NULL: nothing is known of its calls */
    const char *elsewhere;              /* what it waits for at meshd; "": nothing */
};

struct diagnose_input {
    int64_t now_ns;
    int64_t after_ms; /* who waits for less than this is not held up */
    const struct diagnose_rank *rank;
    uint32_t n_ranks;
    const struct group_record *group; /* as far as the ranks told */
    size_t n_groups;
};

enum finding_kind {
    FINDING_MISMATCH,
    FINDING_STALL,
    FINDING_CIRCLE,
    FINDING_DEAD,    /* died, and nobody waits for it */
    FINDING_STOPPED, /* likewise */
    FINDING_FAILED,  /* a call of the group failed; all were there */
    FINDING_UNKNOWN,
    FINDING_SLOW, /* not wrong by itself */
    N_FINDING_KINDS
};

struct rank_list { /* a VEC, ascending */
    uint32_t *at;
    size_t n, cap;
};

struct different_call {
    char text[120];
    struct rank_list ranks;
};

struct finding {
    enum finding_kind kind;
    bool is_knock_on;
    bool has_evidence; /* a missing rank is dead, stopped or gone: no need to wait for after_ms */
    uint64_t group;    /* 0: about ranks, not about a group */
    uint64_t sequence;
    int64_t age_ms; /* how long the first waits */
    char name[RECORDER_NAME_BYTES + 1];
    char call[120];
    struct rank_list entered, waiting; /* waiting: of those that entered, who is not through */
    struct rank_list culprits;         /* missing, stopped or dead, in the minority, or unknown */
    struct rank_list blamed;           /* of the culprits those that no other finding holds up; all, when each is */
    VEC(struct different_call) calls;
    VEC(char *) lines; /* a sentence per culprit */
};

struct verdict {
    VEC(struct finding) findings; /* causes first, then knock-ons */
    bool is_well;
    char sentence[256];
    bool has_no_memory;
};

/* 0 or MESH_ENOMEM. */
int diagnose(const struct diagnose_input *in, struct verdict *ret_verdict);
void verdict_fini(struct verdict *v);

/* diagnose_messages.c: ranks that wait in a send or receive. */
void diagnose_messages(const struct diagnose_input *in, struct verdict *v);
/* diagnose_causes.c: knock-ons and circles among the findings, causes first. */
void diagnose_causes(struct verdict *v);
/* What the finding is a consequence of: itself, unless it is a knock-on. */
const struct finding *diagnose_root(const struct verdict *v, const struct finding *f);

void rank_list_add(struct verdict *v, struct rank_list *list, uint32_t rank); /* out of memory: v says so */
bool rank_list_has(const struct rank_list *list, uint32_t rank);
bool diagnose_is_dead_weight(const struct diagnose_rank *r); /* dead, left, stopped or gone */

const char *finding_kind_name(enum finding_kind k); /* "stall" */
const char *process_state_name(enum process_state s);

/* diagnose_words.c */
const char *diagnose_age(int64_t ms, char *buf, size_t cap); /* "0.4 s", "31 s", "12 min" */
/* "rank 2 (node1, pid 4711): last finished seq 1841, in application code for 31 s"; group 0: of whatever group; returns
 * buf. */
const char *diagnose_rank_line(const struct diagnose_input *in, uint32_t rank, uint64_t group, char *buf, size_t cap);
void diagnose_sentence(const struct diagnose_input *in, struct verdict *v);

#endif
