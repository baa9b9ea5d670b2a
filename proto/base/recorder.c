/* proto/base/recorder.c - reads a recorder's file and trusts none of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/recorder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

static uint64_t word(const uint8_t *place, int index)
{
    const uint8_t *b = place + (size_t)index * 8;
    uint64_t w = 0;
    for (int i = 8; i-- > 0;) {
        w = w << 8 | b[i];
    }
    return w;
}

static uint32_t low(uint64_t w)
{
    return (uint32_t)w;
}

static uint32_t high(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

/* Times are only compared and subtracted: what is not a time becomes 0. */
static int64_t time_of(uint64_t w)
{
    return w <= INT64_MAX ? (int64_t)w : 0;
}

static int check_header(const uint8_t *file)
{
    uint64_t version = word(file, RECORDER_H_VERSION), places = word(file, RECORDER_H_PLACES);
    if (word(file, RECORDER_H_MAGIC) != RECORDER_MAGIC) {
        return err_set(MESH_EPROTO, "the file does not begin like a recorder's");
    }
    if (low(version) != RECORDER_VERSION || high(version) != RECORDER_WORDS) {
        return err_set(MESH_EPROTO, "the recorder has version %" PRIu32 " with %" PRIu32 " words, not %d with %d",
                       low(version), high(version), RECORDER_VERSION, RECORDER_WORDS);
    }
    if (low(places) != RECORDER_GROUPS || high(places) != RECORDER_CALLS) {
        return err_set(MESH_EPROTO, "the recorder has places for %" PRIu32 " groups and %" PRIu32 " calls", low(places),
                       high(places));
    }
    uint64_t who = word(file, RECORDER_H_RANK);
    if (high(who) == 0 || low(who) >= high(who)) {
        return err_set(MESH_EPROTO, "the recorder is of rank %" PRIu32 " of %" PRIu32, low(who), high(who));
    }
    return 0;
}

/* It will be printed: control characters and what is not ASCII become '?'. */
static void copy_name(char *name, const uint8_t *bytes)
{
    size_t n = 0;
    for (; n < RECORDER_NAME_BYTES && bytes[n] != 0; n++) {
        name[n] = bytes[n] >= 0x20 && bytes[n] < 0x7f ? (char)bytes[n] : '?';
    }
    name[n] = 0;
}

/* The counters move while we look: the later look counts, as long as both are of the same group. */
static bool read_group(const uint8_t *first, const uint8_t *second, struct recorder_group *ret)
{
    uint64_t id = word(second, RECORDER_G_ID), size = word(second, RECORDER_G_SIZE);
    size_t name_at = RECORDER_G_NAME * 8;
    bool is_settled = id != 0 && word(first, RECORDER_G_ID) == id && word(first, RECORDER_G_SIZE) == size &&
                      memcmp(first + name_at, second + name_at, RECORDER_NAME_BYTES) == 0;
    if (!is_settled || low(size) == 0 || high(size) >= low(size)) {
        return false;
    }
    *ret = (struct recorder_group){ .id = id, .size = low(size), .rank = high(size) };
    ret->entered = word(second, RECORDER_G_ENTERED);
    ret->finished = MIN(word(second, RECORDER_G_FINISHED), ret->entered);
    ret->failed = MIN(word(second, RECORDER_G_FAILED), ret->finished);
    copy_name(ret->name, second + name_at);
    return true;
}

static size_t read_waited(const uint8_t *place, uint32_t world_size, uint32_t *waited)
{
    size_t n = MIN(low(word(place, RECORDER_C_N_WAITED)), RECORDER_MAX_WAITED), kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t two = word(place, RECORDER_C_WAITED + (int)(i / 2));
        uint32_t rank = i % 2 == 0 ? low(two) : high(two);
        if (rank < world_size) {
            waited[kept++] = rank;
        }
    }
    return kept;
}

static bool read_call(const uint8_t *first, const uint8_t *second, uint32_t world_size, struct recorder_call *ret)
{
    uint64_t call = word(second, RECORDER_C_CALL), digest = word(second, RECORDER_C_DIGEST);
    bool is_settled = word(second, RECORDER_C_LOCK) % 2 == 0 && memcmp(first, second, RECORDER_WORDS * 8) == 0;
    uint8_t state = (uint8_t)(call >> 24);
    if (!is_settled || state < RECORDER_QUEUED || state > RECORDER_FAILED) {
        return false;
    }
    *ret = (struct recorder_call){
        .number = word(second, RECORDER_C_NUMBER),
        .group = word(second, RECORDER_C_GROUP),
        .sequence = word(second, RECORDER_C_SEQUENCE),
        .words = { .kind = (uint8_t)call,
                   .dtype = (uint8_t)(call >> 8),
                   .op = (uint8_t)(call >> 16),
                   .root = (int32_t)high(call),
                   .splits = low(digest),
                   .count = word(second, RECORDER_C_COUNT) },
        .state = (enum recorder_state)state,
        .status = (int32_t)high(digest),
        .queued_ns = time_of(word(second, RECORDER_C_QUEUED_NS)),
        .started_ns = time_of(word(second, RECORDER_C_STARTED_NS)),
        .ended_ns = time_of(word(second, RECORDER_C_ENDED_NS)),
    };
    ret->n_waited = read_waited(second, world_size, ret->waited);
    return true;
}

static int by_number(const void *a, const void *b)
{
    const struct recorder_call *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

int recorder_read(const uint8_t *first, const uint8_t *second, struct recorder_image *ret_image)
{
    struct recorder_image *r = ret_image;
    int status = check_header(second);
    if (status < 0) {
        return status;
    }
    uint64_t who = word(second, RECORDER_H_RANK), process = word(second, RECORDER_H_PROCESS);
    r->rank = low(who);
    r->world_size = high(who);
    r->pid = low(process);
    r->generation = high(process);
    r->created_ns = time_of(word(second, RECORDER_H_CREATED_NS));
    r->n_unnamed = word(second, RECORDER_H_N_UNNAMED);
    r->n_groups = r->n_calls = 0;
    for (size_t i = 0; i < RECORDER_GROUPS; i++) {
        size_t at = RECORDER_GROUPS_AT + i * RECORDER_WORDS * 8;
        r->n_groups += read_group(first + at, second + at, &r->group[r->n_groups]);
    }
    uint64_t n_given_out = word(second, RECORDER_H_N_CALLS);
    for (size_t i = 0; i < RECORDER_CALLS; i++) {
        size_t at = RECORDER_CALLS_AT + i * RECORDER_WORDS * 8;
        struct recorder_call *c = &r->call[r->n_calls];
        r->n_calls += read_call(first + at, second + at, r->world_size, c) && c->number > 0 &&
                      c->number <= n_given_out && (c->number - 1) % RECORDER_CALLS == i;
    }
    qsort(r->call, r->n_calls, sizeof r->call[0], by_number);
    return 0;
}

const struct recorder_group *recorder_find_group(const struct recorder_image *r, uint64_t group)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        if (r->group[i].id == group) {
            return &r->group[i];
        }
    }
    return NULL;
}

const struct recorder_call *recorder_find_call(const struct recorder_image *r, uint64_t group, uint64_t sequence)
{
    for (size_t i = r->n_calls; i-- > 0;) {
        if (r->call[i].group == group && r->call[i].sequence == sequence) {
            return &r->call[i];
        }
    }
    return NULL;
}

bool recorder_is_over(const struct recorder_call *c)
{
    return c->state >= RECORDER_DONE;
}

int64_t recorder_since_ns(const struct recorder_call *c)
{
    switch (c->state) {
    case RECORDER_QUEUED:
        return c->queued_ns;
    case RECORDER_RUNNING:
        return c->started_ns;
    case RECORDER_DONE:
    case RECORDER_FAILED:
        break;
    }
    return c->ended_ns;
}

/* Running calls say more about a rank than queued ones, those more than what is over. */
static int weight(const struct recorder_call *c)
{
    return c->state == RECORDER_RUNNING ? 2 : c->state == RECORDER_QUEUED;
}

const struct recorder_call *recorder_latest(const struct recorder_image *r)
{
    const struct recorder_call *latest = NULL;
    for (size_t i = 0; i < r->n_calls; i++) {
        const struct recorder_call *c = &r->call[i];
        int heavier = latest == NULL ? 1 : weight(c) - weight(latest);
        if (heavier > 0 || (heavier == 0 && recorder_since_ns(c) >= recorder_since_ns(latest))) {
            latest = c;
        }
    }
    return latest;
}

const char *recorder_state_name(enum recorder_state s)
{
    static const char *const names[] = {
        [RECORDER_QUEUED] = "queued",
        [RECORDER_RUNNING] = "running",
        [RECORDER_DONE] = "done",
        [RECORDER_FAILED] = "failed",
    };
    return (unsigned)s < ARRAY_SIZE(names) && names[s] != NULL ? names[s] : "?";
}
