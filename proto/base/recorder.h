/* proto/base/recorder.h - the ring in which a rank records its calls: a file that meshd can read while the rank is stopped, or
 * after it died.
 *
 * The file is made of little-endian words of 64 bits, so that every one is written whole.
 *
 *      byte      what
 *      0         header                                      16 words
 *      4096      groups: RECORDER_GROUPS times 16 words      a place per group the rank is in; free: id 0
 *      36864     calls: RECORDER_CALLS times 16 words        call number n (from 1) is in place (n - 1) % RECORDER_CALLS
 *      167936    end
 *
 * The writers are the threads of the rank, without locks: a call's place has a sequence lock (its first word is odd while
 * somebody writes), and who finds the place taken by a later call leaves it alone.  The reader takes two looks one after
 * the other and believes what is the same in both and not odd; it checks everything, for the rank may have written
 * anything.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RECORDER_H
#define BASE_RECORDER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/call_words.h"

#define RECORDER_MAGIC      UINT64_C(0x474e49524853454d) /* "MESHRING" */
#define RECORDER_VERSION    1
#define RECORDER_GROUPS     256
#define RECORDER_CALLS      1024
#define RECORDER_WORDS      16 /* of the header, of a group, of a call */
#define RECORDER_NAME_BYTES 64
#define RECORDER_MAX_WAITED 10
#define RECORDER_GROUPS_AT  4096
#define RECORDER_CALLS_AT   (RECORDER_GROUPS_AT + RECORDER_GROUPS * RECORDER_WORDS * 8)
#define RECORDER_FILE_BYTES (RECORDER_CALLS_AT + RECORDER_CALLS * RECORDER_WORDS * 8)

/* Words of the header.  "a | b": a in the low 32 bits. */
enum recorder_header_word {
    RECORDER_H_MAGIC,
    RECORDER_H_VERSION,    /* version | words of each */
    RECORDER_H_PLACES,     /* places for groups | for calls */
    RECORDER_H_RANK,       /* rank | ranks of the job */
    RECORDER_H_PROCESS,    /* pid | generation of the job */
    RECORDER_H_CREATED_NS, /* all times: ns of the host's monotonic clock */
    RECORDER_H_N_CALLS,    /* numbers given out */
    RECORDER_H_N_UNNAMED,  /* groups that found no place */
};

enum recorder_group_word {
    RECORDER_G_ID,       /* 0: free; written last */
    RECORDER_G_SIZE,     /* ranks of the group | this rank's number in it */
    RECORDER_G_ENTERED,  /* sequence number of the last call begun */
    RECORDER_G_FINISHED, /* ... that ended, well or not */
    RECORDER_G_FAILED,   /* ... that was the first to fail; 0: none */
    RECORDER_G_NAME,     /* 64 bytes */
    RECORDER_G_RESERVED = RECORDER_G_NAME + RECORDER_NAME_BYTES / 8,
};

enum recorder_call_word {
    RECORDER_C_LOCK,
    RECORDER_C_NUMBER,
    RECORDER_C_GROUP,
    RECORDER_C_SEQUENCE,
    RECORDER_C_COUNT,
    RECORDER_C_CALL,   /* kind, dtype, op, state: a byte each | root */
    RECORDER_C_DIGEST, /* of split sizes | status */
    RECORDER_C_QUEUED_NS,
    RECORDER_C_STARTED_NS, /* 0: not yet */
    RECORDER_C_ENDED_NS,
    RECORDER_C_N_WAITED, /* how many of the next are valid | reserved */
    RECORDER_C_WAITED,   /* world ranks, two in each word */
    RECORDER_C_END = RECORDER_C_WAITED + RECORDER_MAX_WAITED / 2,
};

static_assert(RECORDER_H_N_UNNAMED < RECORDER_WORDS, "the header fits its words");
static_assert(RECORDER_G_RESERVED <= RECORDER_WORDS, "a group fits its words");
static_assert(RECORDER_C_END == RECORDER_WORDS, "a call fills its words");
static_assert(RECORDER_WORDS * 8 <= RECORDER_GROUPS_AT, "the header ends before the groups");
static_assert(RECORDER_CALLS_AT == 36864 && RECORDER_FILE_BYTES == 167936, "the layout in the comment is the real one");

enum recorder_state { RECORDER_QUEUED = 1, RECORDER_RUNNING, RECORDER_DONE, RECORDER_FAILED };

static inline uint64_t recorder_pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* What a reader makes of it ------------------------------------------------------------------------------------------- */

struct recorder_call {
    uint64_t number, group, sequence;
    struct call_words words;
    enum recorder_state state;
    int status; /* of a failed one */
    int64_t queued_ns, started_ns, ended_ns;
    uint32_t waited[RECORDER_MAX_WAITED]; /* world ranks it waited for when it last had to sleep */
    size_t n_waited;
};

struct recorder_group {
    uint64_t id, entered, finished, failed;
    uint32_t size, rank;
    char name[RECORDER_NAME_BYTES + 1];
};

struct recorder_image {
    uint32_t rank, world_size, pid, generation;
    int64_t created_ns;
    uint64_t n_unnamed;
    struct recorder_group group[RECORDER_GROUPS];
    size_t n_groups;
    struct recorder_call call[RECORDER_CALLS]; /* by number, the oldest first */
    size_t n_calls;
};

/* Two looks at the file, one after the other, both of RECORDER_FILE_BYTES.  MESH_EPROTO: it is no recorder's file. */
int recorder_read(const uint8_t *first, const uint8_t *second, struct recorder_image *ret_image);

const struct recorder_group *recorder_find_group(const struct recorder_image *r, uint64_t group); /* NULL: none */
/* NULL: it is not among the calls that were kept. */
const struct recorder_call *recorder_find_call(const struct recorder_image *r, uint64_t group, uint64_t sequence);
/* Where the rank stands: the latest call that is running, else one that is queued, else the one that ended last; NULL: none. */
const struct recorder_call *recorder_latest(const struct recorder_image *r);
int64_t recorder_since_ns(const struct recorder_call *c); /* when it took its state */
const char *recorder_state_name(enum recorder_state s);   /* "running" */
bool recorder_is_over(const struct recorder_call *c);     /* done or failed */

#endif
