/* daemon/reply_joined.c - the answer to a join, of which all but a few bytes are the same for all ranks.
 *
 *      +------- room -------+------------------ packed once ------------------+
 *      |  | envelope, rank  | job, generation, size, secret, rank table       |
 *      +------- room -------+-------------------------------------------------+
 *         '----------------- one payload, written backwards -----------------'
 *
 * That is one message on the wire: fields of protobuf may come in any order, and `Joined` ends with the envelope.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reply_joined.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/reply.h"
#include "daemon/rings.h"
#include "wire/frame.h"

#define ROOM_BYTES   (PATH_MAX + 256) /* for what differs: the path of the recorder and some numbers */
#define JOINED_TAG   (6u << 3 | 2u)   /* of DaemonMessage.joined, with its length before it */
#define VARINT_BYTES 10

static char *life_name(enum life state)
{
    static char *const names[] = { [LIFE_JOINED] = "joined", [LIFE_LEFT] = "left", [LIFE_DEAD] = "dead" };
    return names[state];
}

Mesh__V1__RankInfo **rank_table_new(const struct job *job, int64_t now_ms)
{
    size_t n = job->rendezvous.table == NULL ? 0 : job->rendezvous.size;
    size_t bytes = n * (sizeof(Mesh__V1__RankInfo *) + sizeof(Mesh__V1__RankInfo));
    Mesh__V1__RankInfo **rows = mem_alloc(bytes);
    if (rows == NULL) {
        err_no_memory(bytes, "a rank table");
        return NULL;
    }
    Mesh__V1__RankInfo *info = (Mesh__V1__RankInfo *)(void *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        struct member *m = &job->rendezvous.table[i];
        const struct life_of *life = &job->liveness.of[i];
        mesh__v1__rank_info__init(&info[i]);
        info[i].rank = m->rank;
        info[i].host = m->host;
        info[i].pid = m->pid;
        info[i].local_rank = m->local_rank;
        info[i].n_address = m->n_addresses;
        info[i].address = m->address;
        info[i].state = life_name(life->state);
        info[i].age_ms = (uint64_t)(now_ms - life->last_ms);
        rows[i] = &info[i];
    }
    return rows;
}

void packed_table_forget(struct packed_table *t)
{
    mem_free(t->bytes);
    *t = (struct packed_table){ .bytes = NULL };
}

static int pack(const struct job *job, struct packed_table *t)
{
    const struct rendezvous *v = &job->rendezvous;
    Mesh__V1__RankInfo **rows = rank_table_new(job, clock_now_ms());
    if (rows == NULL) {
        return mesh_last_error()->status;
    }
    Mesh__V1__Joined body = MESH__V1__JOINED__INIT;
    body.job = (char *)v->job;
    body.generation = v->running;
    body.size = v->size;
    body.secret = (ProtobufCBinaryData){ .len = SECRET_BYTES, .data = (uint8_t *)v->secret };
    body.n_rank_table = v->size;
    body.rank_table = rows;
    size_t len = mesh__v1__joined__get_packed_size(&body);
    uint8_t *bytes = mem_alloc(ROOM_BYTES + len);
    if (bytes != NULL) {
        mesh__v1__joined__pack(&body, bytes + ROOM_BYTES);
        packed_table_forget(t);
        *t = (struct packed_table){ .job = job->number, .generation = v->running, .bytes = bytes, .len = len };
    }
    mem_free(rows);
    return bytes != NULL ? 0 : err_no_memory(ROOM_BYTES + len, "a rank table");
}

static size_t write_varint(uint64_t n, uint8_t *ret_bytes)
{
    size_t len = 0;
    for (; n >= 0x80; n >>= 7) {
        ret_bytes[len++] = (uint8_t)(n | 0x80);
    }
    ret_bytes[len++] = (uint8_t)n;
    return len;
}

/* Puts `own` and the envelope before the table; returns where the payload begins. */
static const uint8_t *put_before(struct packed_table *t, uint64_t request, const Mesh__V1__Joined *own)
{
    Mesh__V1__DaemonMessage envelope = MESH__V1__DAEMON_MESSAGE__INIT;
    uint8_t number[VARINT_BYTES];
    size_t own_len = mesh__v1__joined__get_packed_size(own);
    uint8_t *at = t->bytes + ROOM_BYTES - own_len;
    mesh__v1__joined__pack(own, at);
    size_t n = write_varint(own_len + t->len, number);
    at -= n;
    memcpy(at, number, n);
    *--at = JOINED_TAG;
    envelope.request = request;
    at -= mesh__v1__daemon_message__get_packed_size(&envelope);
    mesh__v1__daemon_message__pack(&envelope, at);
    return at;
}

void reply_joined(struct client *c, struct job *job, const struct action *a)
{
    struct rendezvous *v = &job->rendezvous;
    struct packed_table *t = &c->server->packed_table;
    bool is_packed = t->bytes != NULL && t->job == job->number && t->generation == v->running;
    if (!is_packed && pack(job, t) < 0) {
        reply_status(c, a->to.request, MESH_ENOMEM, mesh_last_error()->message);
        return;
    }
    Mesh__V1__Joined own = MESH__V1__JOINED__INIT;
    own.rank = a->rank;
    own.local_rank = v->table[a->rank].local_rank;
    own.local_size = v->table[a->rank].local_size;
    char recorder[PATH_MAX];
    rings_path(c->server, job, a->rank, recorder, sizeof recorder);
    own.recorder = recorder;
    c->generation = v->running;
    const uint8_t *payload = put_before(t, a->to.request, &own);
    int r = conn_send(c->conn, payload, (size_t)(t->bytes + ROOM_BYTES + t->len - payload));
    if (r < 0 && r != MESH_EPEER) {
        const mesh_error why = *mesh_last_error();
        reply_status(c, a->to.request, r, why.message);
    }
}
