/* client/comm/record.c - writes this rank's calls into its recorder.
 *
 * Every word is stored with relaxed order inside a place's sequence lock; a place that another thread is writing for more
 * than MAX_TRIES looks, or that a later call has taken, is left alone: what is lost is a line in a picture.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"

#define MAX_TRIES 100

typedef _Atomic uint64_t word;

struct recorder {
    word *words; /* the file */
};

static_assert(sizeof(word) == 8, "an atomic word is a plain one in the file");

static void put(word *place, int index, uint64_t value)
{
    atomic_store_explicit(&place[index], value, memory_order_relaxed);
}

static uint64_t get(const word *place, int index)
{
    return atomic_load_explicit(&place[index], memory_order_relaxed);
}

static word *group_place(const struct recorder *r, int place)
{
    return r->words + RECORDER_GROUPS_AT / 8 + (ptrdiff_t)place * RECORDER_WORDS;
}

static word *call_place(const struct recorder *r, uint64_t number)
{
    return r->words + RECORDER_CALLS_AT / 8 + (ptrdiff_t)((number - 1) % RECORDER_CALLS) * RECORDER_WORDS;
}

/* Making one -------------------------------------------------------------------------------------------------------- */

static int map_file(const char *path, void **ret_memory)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set(MESH_EIO, "%.200s: %s", path, strerror(errno));
    }
    int r = posix_fallocate(fd, 0, RECORDER_FILE_BYTES); /* a full disk is an error here, not a SIGBUS later */
    void *memory = r == 0 ? mmap(NULL, RECORDER_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED) {
        int cause = r != 0 ? r : errno;
        (void)unlink(path);
        (void)close(fd);
        return err_set(MESH_EIO, "%.200s: %s", path, strerror(cause));
    }
    (void)close(fd);
    *ret_memory = memory;
    return 0;
}

static int map_anonymous(void **ret_memory)
{
    void *memory = mmap(NULL, RECORDER_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return err_set(MESH_ENOMEM, "%s", strerror(errno));
    }
    *ret_memory = memory;
    return 0;
}

struct recorder *recorder_new(const struct recorder_owner *owner)
{
    void *memory;
    struct recorder *r = mem_new(struct recorder);
    int status = r == NULL ? err_no_memory(sizeof *r, "a recorder") : 0;
    if (status == 0) {
        status = owner->path[0] != 0 ? map_file(owner->path, &memory) : map_anonymous(&memory);
    }
    if (status < 0) {
        log_warn("comm", "calls are not recorded, going on without: %s", err_last()->message);
        err_clear();
        return mem_free(r);
    }
    r->words = memory;
    put(r->words, RECORDER_H_VERSION, recorder_pair(RECORDER_VERSION, RECORDER_WORDS));
    put(r->words, RECORDER_H_PLACES, recorder_pair(RECORDER_GROUPS, RECORDER_CALLS));
    put(r->words, RECORDER_H_RANK, recorder_pair((uint32_t)owner->rank, (uint32_t)owner->world_size));
    put(r->words, RECORDER_H_PROCESS, recorder_pair((uint32_t)getpid(), owner->generation));
    put(r->words, RECORDER_H_CREATED_NS, (uint64_t)clock_now_ns());
    atomic_store_explicit(&r->words[RECORDER_H_MAGIC], RECORDER_MAGIC, memory_order_release);
    return r;
}

struct recorder *recorder_free(struct recorder *r)
{
    if (r != NULL) {
        (void)munmap((void *)r->words, RECORDER_FILE_BYTES);
        (void)mem_free(r);
    }
    return NULL;
}

/* Groups ------------------------------------------------------------------------------------------------------------ */

int recorder_add_group(struct recorder *r, uint64_t id, const char *name, int size, int rank)
{
    if (r == NULL) {
        return -1;
    }
    for (int i = 0; i < RECORDER_GROUPS; i++) {
        word *place = group_place(r, i);
        uint64_t free = 0;
        /* Taken under an id that no group has, until what it says is complete. */
        if (!atomic_compare_exchange_strong(&place[RECORDER_G_SIZE], &free, UINT64_MAX)) {
            continue;
        }
        uint64_t text[RECORDER_NAME_BYTES / 8] = { 0 };
        memcpy(text, name, strnlen(name, sizeof text));
        for (int k = 0; k < (int)ARRAY_SIZE(text); k++) {
            put(place, RECORDER_G_NAME + k, text[k]);
        }
        put(place, RECORDER_G_ENTERED, 0);
        put(place, RECORDER_G_FINISHED, 0);
        put(place, RECORDER_G_FAILED, 0);
        put(place, RECORDER_G_SIZE, recorder_pair((uint32_t)size, (uint32_t)rank));
        atomic_store_explicit(&place[RECORDER_G_ID], id, memory_order_release);
        return i;
    }
    atomic_fetch_add_explicit(&r->words[RECORDER_H_N_UNNAMED], 1, memory_order_relaxed);
    return -1;
}

void recorder_remove_group(struct recorder *r, int place)
{
    if (r != NULL && place >= 0) {
        word *p = group_place(r, place);
        atomic_store_explicit(&p[RECORDER_G_ID], 0, memory_order_release);
        atomic_store_explicit(&p[RECORDER_G_SIZE], 0, memory_order_release);
    }
}

/* Calls ------------------------------------------------------------------------------------------------------------- */

/* The place is this thread's; false: somebody else's for too long. */
static bool lock(word *place)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        uint64_t even = get(place, RECORDER_C_LOCK) & ~UINT64_C(1);
        if (atomic_compare_exchange_weak_explicit(&place[RECORDER_C_LOCK], &even, even + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            atomic_thread_fence(memory_order_release); /* nobody sees a new word under the old, even number */
            return true;
        }
    }
    return false;
}

static void unlock(word *place)
{
    atomic_store_explicit(&place[RECORDER_C_LOCK], get(place, RECORDER_C_LOCK) + 1, memory_order_release);
}

static bool lock_own(word *place, uint64_t number)
{
    if (!lock(place)) {
        return false;
    }
    if (get(place, RECORDER_C_NUMBER) == number) {
        return true;
    }
    unlock(place); /* a later call lives here */
    return false;
}

static uint64_t pack(const struct call_words *w, enum recorder_state state)
{
    return recorder_pair((uint32_t)w->kind | (uint32_t)w->dtype << 8 | (uint32_t)w->op << 16 | (uint32_t)state << 24,
                         (uint32_t)w->root);
}

static void put_state(word *place, enum recorder_state state)
{
    uint64_t call = get(place, RECORDER_C_CALL);
    put(place, RECORDER_C_CALL, (call & ~(UINT64_C(0xff) << 24)) | (uint64_t)state << 24);
}

uint64_t record_call(struct recorder *r, const struct record *c)
{
    if (r == NULL) {
        return 0;
    }
    uint64_t number = atomic_fetch_add_explicit(&r->words[RECORDER_H_N_CALLS], 1, memory_order_relaxed) + 1;
    word *place = call_place(r, number);
    if (lock(place)) {
        put(place, RECORDER_C_NUMBER, number);
        put(place, RECORDER_C_GROUP, c->group);
        put(place, RECORDER_C_SEQUENCE, c->sequence);
        put(place, RECORDER_C_COUNT, c->words.count);
        put(place, RECORDER_C_CALL, pack(&c->words, c->is_running ? RECORDER_RUNNING : RECORDER_QUEUED));
        put(place, RECORDER_C_DIGEST, recorder_pair(c->words.splits, 0));
        put(place, RECORDER_C_QUEUED_NS, (uint64_t)c->queued_ns);
        put(place, RECORDER_C_STARTED_NS, c->is_running ? (uint64_t)c->queued_ns : 0);
        put(place, RECORDER_C_ENDED_NS, 0);
        put(place, RECORDER_C_N_WAITED, 0);
        unlock(place);
    }
    if (c->place >= 0) {
        put(group_place(r, c->place), RECORDER_G_ENTERED, c->sequence);
    }
    return number;
}

void record_running(struct recorder *r, uint64_t number, int64_t now_ns)
{
    if (r == NULL || number == 0) {
        return;
    }
    word *place = call_place(r, number);
    if (lock_own(place, number)) {
        put_state(place, RECORDER_RUNNING);
        put(place, RECORDER_C_STARTED_NS, (uint64_t)now_ns);
        unlock(place);
    }
}

void record_waiting(struct recorder *r, uint64_t number, const uint32_t *ranks, size_t n)
{
    if (r == NULL || number == 0) {
        return;
    }
    word *place = call_place(r, number);
    n = MIN(n, RECORDER_MAX_WAITED);
    if (lock_own(place, number)) {
        for (size_t i = 0; i < n; i += 2) {
            put(place, RECORDER_C_WAITED + (int)(i / 2), recorder_pair(ranks[i], i + 1 < n ? ranks[i + 1] : 0));
        }
        put(place, RECORDER_C_N_WAITED, n);
        unlock(place);
    }
}

void record_over(struct recorder *r, uint64_t number, int place_of_group, int status)
{
    if (r == NULL || number == 0) {
        return;
    }
    word *place = call_place(r, number);
    uint64_t sequence = 0;
    if (lock_own(place, number)) {
        put_state(place, status == 0 ? RECORDER_DONE : RECORDER_FAILED);
        put(place, RECORDER_C_DIGEST, recorder_pair((uint32_t)get(place, RECORDER_C_DIGEST), (uint32_t)status));
        put(place, RECORDER_C_ENDED_NS, (uint64_t)clock_now_ns());
        sequence = get(place, RECORDER_C_SEQUENCE);
        unlock(place);
    }
    if (place_of_group >= 0) {
        word *group = group_place(r, place_of_group);
        sequence =
            sequence != 0 ? sequence : get(group, RECORDER_G_FINISHED) + 1; /* the calls of a group end in order */
        put(group, RECORDER_G_FINISHED, sequence);
        if (status != 0 && get(group, RECORDER_G_FAILED) == 0) {
            put(group, RECORDER_G_FAILED, sequence);
        }
    }
}
