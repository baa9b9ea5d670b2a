/* daemon/handle_store.c - requests to the store of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "daemon/handlers.h"

static struct bytes bytes_of(ProtobufCBinaryData data)
{
    return (struct bytes){ .data = data.data, .len = data.len };
}

/* The job is not always the client's own: what follows for it is sent here. */
static int settle(struct client *c, struct job *job, int r)
{
    if (r < 0) {
        return r;
    }
    server_settle(c->server, job);
    return 0;
}

int handle_store_set(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_job(c, m->store_set->job, &job);
    if (r < 0) {
        return r;
    }
    r = store_set(&job->store, request_ticket(c, m), bytes_of(m->store_set->key), bytes_of(m->store_set->value),
                  &c->server->actions);
    return settle(c, job, r);
}

int handle_store_get(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_job(c, m->store_get->job, &job);
    if (r < 0) {
        return r;
    }
    int64_t now_ms = clock_now_ms();
    r = store_get(&job->store, request_ticket(c, m), bytes_of(m->store_get->key), now_ms,
                  request_deadline(now_ms, m->store_get->timeout_ms), &c->server->actions);
    return settle(c, job, r);
}

int handle_store_add(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_job(c, m->store_add->job, &job);
    if (r < 0) {
        return r;
    }
    r = store_add(&job->store, request_ticket(c, m), bytes_of(m->store_add->key), m->store_add->delta,
                  &c->server->actions);
    return settle(c, job, r);
}

int handle_store_compare_set(struct client *c, const Mesh__V1__ClientMessage *m)
{
    const Mesh__V1__StoreCompareSet *request = m->store_compare_set;
    struct job *job;
    int r = client_find_job(c, request->job, &job);
    if (r < 0) {
        return r;
    }
    const struct store_compare_set call = { .key = bytes_of(request->key),
                                            .desired = bytes_of(request->desired),
                                            .expected = bytes_of(request->expected),
                                            .expect_absent = request->expect_absent };
    r = store_compare_set(&job->store, request_ticket(c, m), &call, &c->server->actions);
    return settle(c, job, r);
}

int handle_store_wait(struct client *c, const Mesh__V1__ClientMessage *m)
{
    const Mesh__V1__StoreWait *request = m->store_wait;
    struct job *job;
    int r = client_find_job(c, request->job, &job);
    if (r < 0) {
        return r;
    }
    struct bytes *key = mem_new_array(struct bytes, request->n_key);
    if (key == NULL) {
        return err_no_memory(request->n_key * sizeof *key, "the keys of a wait");
    }
    for (size_t i = 0; i < request->n_key; i++) {
        key[i] = bytes_of(request->key[i]);
    }
    int64_t now_ms = clock_now_ms();
    const struct store_wait call = {
        .key = key, .n = request->n_key, .now_ms = now_ms, .deadline_ms = request_deadline(now_ms, request->timeout_ms)
    };
    r = store_wait(&job->store, request_ticket(c, m), &call, &c->server->actions);
    mem_free(key);
    return settle(c, job, r);
}

int handle_store_delete(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_job(c, m->store_delete->job, &job);
    if (r < 0) {
        return r;
    }
    r = store_delete(&job->store, request_ticket(c, m), bytes_of(m->store_delete->key), &c->server->actions);
    return settle(c, job, r);
}
