/* daemon/agree.h - agreements: all members post the same descriptor under a key, or all fail alike.
 *
 *      OPEN --all posted the same--> AGREED             kept: it is what `meshctl mesh show` lists
 *        '-- a different one, other members, a death, the first deadline --> FAILED
 *
 * FAILED goes on answering members that come later with the same sentence, until every member came.  A rank that posts
 * again under a closed agreement's key begins a new one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_AGREE_H
#define DAEMON_AGREE_H

#include "daemon/liveness.h"
#include "daemon/members.h"

enum agreement_state { AGREE_OPEN, AGREE_AGREED, AGREE_FAILED };

struct agreement {
    char *key;
    struct members members;
    char **posted;      /* [members.n] descriptors; NULL: not yet */
    struct ticket *who; /* [members.n] waiting while OPEN */
    size_t n_posted;
    enum agreement_state state;
    int status; /* of FAILED */
    char sentence[256];
    int64_t begin_ms, deadline_ms;
};

struct agreements {
    VEC(struct agreement *) list; /* in order of their first post */
};

struct agree_call {
    struct ticket who;
    uint32_t rank;
    const char *key;
    const uint32_t *member; /* [n_members]; none: all ranks */
    size_t n_members;
    const char *descriptor;
    int64_t now_ms, deadline_ms;
};

int agree_post(struct agreements *a, const struct agree_call *c, const struct liveness *l, struct actions *ret);
void agree_rank_gone(struct agreements *a, uint32_t rank, const char *fate, struct actions *ret);
void agree_tick(struct agreements *a, int64_t now_ms, struct actions *ret);
int64_t agree_next_deadline(const struct agreements *a);
void agree_stop(struct agreements *a, const char *why, struct actions *ret);
void agree_fini(struct agreements *a);

/* What all posted, or the first that was posted. */
const char *agreement_descriptor(const struct agreement *a);

#endif
