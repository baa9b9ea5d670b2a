/* daemon/actions.h - what the pure parts of the daemon decide: a list of answers and notices for the glue to send.
 *
 * A step function gets a request with the ticket of who asked, and appends what follows from it: an answer to that
 * ticket, answers to others who waited, notices.  Sentences are copied; `value` is borrowed from the store until its
 * next call.  When memory runs out the list remembers `failed`, and the glue ends the connections that could miss
 * something.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_ACTIONS_H
#define DAEMON_ACTIONS_H

#include <mesh/base.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "base/vec.h"

struct ticket { /* whom an answer goes to */
    uint64_t client;
    uint64_t request; /* 0: no answer wanted */
};

struct bytes {
    const uint8_t *data;
    size_t len;
};

enum action_kind {
    ACTION_ANSWER, /* status with sentence, no body */
    ACTION_JOINED, /* rank: what the client became; the glue adds the rank table */
    ACTION_VALUE,  /* value, version, missing; with any status */
    ACTION_NUMBER,
    ACTION_NOTICE,
};

/* As in control.proto. */
enum notice_kind {
    NOTICE_RANK_DIED = 1,
    NOTICE_RANK_LEFT,
    NOTICE_REPORT,
    NOTICE_SHUTDOWN,
    NOTICE_RANK_ABSENT,
    NOTICE_STILL_JOINING
};

struct notice {
    enum notice_kind kind;
    int32_t rank, culprit; /* -1: nobody in particular */
    int status;
    uint64_t group, sequence;
};

struct action {
    enum action_kind kind;
    struct ticket to;
    int status;
    char sentence[256];
    uint32_t rank;
    int64_t number;
    struct bytes value;
    uint64_t version;
    struct bytes *missing; /* [n_missing] inside owned */
    size_t n_missing;
    void *owned; /* freed with the action */
    struct notice notice;
};

struct actions {
    VEC(struct action) list;
    bool failed;
};

void actions_done(struct actions *a, struct ticket to);
void actions_error(struct actions *a, struct ticket to, int status, const char *format, ...) PRINTF_LIKE(4, 5);
void actions_value(struct actions *a, struct ticket to, int status, struct bytes value, uint64_t version);
void actions_number(struct actions *a, struct ticket to, int64_t number);
void actions_joined(struct actions *a, struct ticket to, uint32_t rank);
/* A timed out wait: takes owned, which holds the list of missing keys. */
void actions_missing(struct actions *a, struct ticket to, struct bytes *missing, size_t n, void *owned);
/* With a request it is the answer to that, else unasked. */
void actions_notice(struct actions *a, struct ticket to, const struct notice *n, const char *sentence);
/* The sentence of the action appended last; a place to throw away when that failed. */
void actions_say(struct actions *a, const char *format, ...) PRINTF_LIKE(2, 3);
void actions_clear(struct actions *a); /* forgets them all, keeps the memory */
void actions_fini(struct actions *a);

#endif
