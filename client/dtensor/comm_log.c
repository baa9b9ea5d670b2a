/* client/dtensor/comm_log.c - a list of the collectives that a thread began while the log was open.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"
#include "comm/group.h"
#include "core/scope.h"
#include "dtensor/watch.h"

struct mesh_comm_log {
    struct object object;
    struct mesh_comm_log *enclosing; /* records too */
    bool is_open;
    int status; /* not 0: a record is missing */
    mesh_comm_record *at;
    size_t n, capacity;
};

/* What this rank must send at least. */
static uint64_t bytes_of(const struct collective_call *c, int size, int me)
{
    uint64_t n = (uint64_t)size, item = dtype_size(c->dtype), sum = 0;
    for (int i = 0; c->in_counts && i < size; i++) {
        sum += i == me ? 0 : c->in_counts[i];
    }
    switch (c->kind) {
    case MESH_COMM_ALL_REDUCE:
        return 2 * (n - 1) * c->count * item / n;
    case MESH_COMM_ALL_GATHER:
        return (n - 1) * (c->out_counts ? c->out_counts[me] : c->count) * item;
    case MESH_COMM_REDUCE_SCATTER:
    case MESH_COMM_ALL_TO_ALL:
        return (c->in_counts ? sum : (n - 1) * c->count) * item;
    case MESH_COMM_BROADCAST:
        return me == c->root ? c->count * item : 0;
    default:
        return 0;
    }
}

static void append(struct mesh_comm_log *log, const mesh_comm_record *record)
{
    if (log->n == log->capacity) {
        size_t capacity = log->capacity ? 2 * log->capacity : 32;
        mesh_comm_record *at = mem_new_array(mesh_comm_record, capacity);
        if (!at) {
            log->status = MESH_ENOMEM;
            return;
        }
        if (log->n > 0) {
            memcpy(at, log->at, log->n * sizeof *at);
        }
        mem_free(log->at);
        log->at = at;
        log->capacity = capacity;
    }
    log->at[log->n++] = *record;
}

static void observe(const mesh_group *g, const struct collective_call *call)
{
    int size = group_size(g);
    if (size < 2) {
        return;
    }
    mesh_comm_record record = {
        .kind = call->kind, .n_ranks = size, .bytes = bytes_of(call, size, group_rank(g)), .where = err_entered()
    };
    snprintf(record.op, sizeof record.op, "%s", watch.op ? watch.op : "");
    snprintf(record.plan, sizeof record.plan, "%s", watch.plan);
    for (struct mesh_comm_log *log = watch.log; log; log = log->enclosing) {
        append(log, &record);
    }
}

void watch_move(const mesh_device_mesh *m, const struct move *move)
{
    if (!watch.log) {
        return;
    }
    watch.plan[0] = 0;
    if (move) {
        (void)move_text(move, m, watch.plan, sizeof watch.plan);
    }
}

static void close_log(struct mesh_comm_log *log)
{
    for (struct mesh_comm_log **p = &watch.log; *p; p = &(*p)->enclosing) {
        if (*p == log) {
            *p = log->enclosing;
            break;
        }
    }
    log->is_open = false;
    if (!watch.log) {
        (void)collective_observe(NULL);
    }
}

static int log_settle(struct object *o)
{
    struct mesh_comm_log *log = container_of(o, struct mesh_comm_log, object);
    if (log->is_open) {
        close_log(log);
    }
    return 0;
}

static void log_free(struct object *o)
{
    struct mesh_comm_log *log = container_of(o, struct mesh_comm_log, object);
    mem_free(log->at);
    mem_free(log);
}

static const struct object_class log_class = { .name = "communication log", .free = log_free, .settle = log_settle };

mesh_comm_log *mesh_comm_log_begin(void)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    struct mesh_comm_log *log = mem_new(struct mesh_comm_log);
    if (!log) {
        return scope_fail(err_no_memory(sizeof *log, "a communication log"));
    }
    object_init(&log->object, &log_class);
    log->is_open = true;
    log->enclosing = watch.log;
    watch.log = log;
    (void)collective_observe(observe);
    return log;
}

int mesh_comm_log_end(mesh_comm_log *log)
{
    err_enter(__func__);
    if (!log || !log->is_open) {
        return err_set(log ? MESH_ESTATE : MESH_EINVAL, "the log is %s", log ? "ended already" : "NULL");
    }
    close_log(log);
    return log->status == 0 ? 0 : err_set_local(log->status, "no memory for all records of the log");
}

size_t mesh_comm_log_size(const mesh_comm_log *log)
{
    return log ? log->n : 0;
}

const mesh_comm_record *mesh_comm_log_at(const mesh_comm_log *log, size_t i)
{
    return log && i < log->n ? &log->at[i] : NULL;
}
