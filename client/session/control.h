/* client/session/control.h - what a session asks of its job's control plane, whoever provides it.
 *
 * Two providers: meshd over a socket (control_meshd.c), and the local one (control_local.c) for a world of one and for
 * worlds of threads.  Every call blocks its caller at most until the deadline and returns a status with the sentence
 * set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_CONTROL_H
#define SESSION_CONTROL_H

#include <mesh/base.h>

#include "base/buf.h"

struct control;
struct mesh_session;

#define SESSION_SECRET_BYTES  32
#define SESSION_MAX_ADDRESSES 4
#define SESSION_PATH_BYTES    256

struct peer {
    char host[64];
    int pid;
    int local_rank;
    int n_addresses;
    char *address[SESSION_MAX_ADDRESSES]; /* owned by the session */
};

struct join_request {
    const char *job;
    int world_size;               /* 0: as created */
    int rank;                     /* -1: assign */
    const char *const *addresses; /* ends with NULL */
    int64_t timeout_ms;
};

struct join_reply {
    char job[128];
    int rank, world_size, local_rank, local_world_size;
    uint32_t generation;
    uint8_t secret[SESSION_SECRET_BYTES];
    char recorder[SESSION_PATH_BYTES]; /* the file this rank makes for its recorder; "": none is asked for */
    struct peer *peers;                /* [world_size], taken by the caller */
};

enum report_kind { REPORT_ABORT, REPORT_MISMATCH, REPORT_TIMEOUT };

struct report {
    enum report_kind kind;
    int status;
    uint64_t group, sequence;
    int culprit; /* world rank, -1: this rank */
    const char *sentence;
};

struct bytes {
    const void *data;
    size_t len;
};

struct store_swap {
    struct bytes key, expected, desired;
    bool expect_absent; /* instead of `expected` */
};

/* ranks, n: the members, in the caller's order; n 0: all ranks.  timeout_ms: MESH_NO_WAIT, or how long. */
struct control_ops {
    int (*join)(struct control *c, const struct join_request *request, struct join_reply *ret_reply);
    int (*leave)(struct control *c, int64_t timeout_ms);
    /* inout_told NULL: waits for nobody's answer.  Else waits a moment, and puts there the sentence and the culprit
     * that the others are told, who hear of the cause where meshd knows it; without an answer it stays. */
    void (*report)(struct control *c, const struct report *r, mesh_error *inout_told);
    void (*record_group)(struct control *c, uint64_t group, const char *name, const int *ranks,
                         int n); /* waits for nobody's answer */
    int (*agree)(struct control *c, const char *key, const int *ranks, int n, const char *descriptor,
                 int64_t timeout_ms);
    int (*barrier)(struct control *c, const char *name, const int *ranks, int n, int64_t timeout_ms);
    int (*store_set)(struct control *c, struct bytes key, struct bytes value);
    int (*store_get)(struct control *c, struct bytes key, int64_t timeout_ms, struct buf *ret_value);
    int (*store_add)(struct control *c, struct bytes key, int64_t delta, int64_t *ret_value);
    /* MESH_EEXIST: the value that stands is in ret_value (MESH_ENOTFOUND: the key is absent). */
    int (*store_compare_set)(struct control *c, const struct store_swap *swap, struct buf *ret_value);
    int (*store_wait)(struct control *c, const struct bytes *keys, size_t n, int64_t timeout_ms);
    int (*store_delete)(struct control *c, struct bytes key);
    void (*free)(struct control *c);
};

/* Notices go to session_peer_news() and session_report_news() (session.h), from whatever thread hears them. */
struct control {
    const struct control_ops *ops;
    struct mesh_session *session;
};

struct control *control_meshd_new(struct mesh_session *s, const char *address); /* NULL: error set */

/* A world inside this process: made once, then one control per rank.  The world of one has size 1. */
struct local_world;
struct local_world *local_world_new(int size);
void local_world_free(struct local_world *w); /* after every control of it is gone */
struct control *control_local_new(struct mesh_session *s, struct local_world *w, int rank);

#endif
