/* client/session/control_meshd.c - the control plane of ranks that are processes: what a session asks is asked of
 * meshd.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/control.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "session/engine.h"
#include "session/store_check.h"

#define BLAME_LIMIT_MS 500

struct meshd_control {
    struct control base;
    struct engine *engine;
};

static struct engine *engine_of(struct control *c)
{
    return container_of(c, struct meshd_control, base)->engine;
}

/* Protobuf's structs want strings and bytes they could write to; packing only reads. */
static char *text(const char *s)
{
    return (char *)(uintptr_t)(s != NULL ? s : "");
}

static ProtobufCBinaryData binary(struct bytes b)
{
    return (ProtobufCBinaryData){ .len = b.len, .data = (uint8_t *)(uintptr_t)b.data };
}

/* Asks, and gives back the answer when it is a success with the body that is wanted, or a refusal (with its status). */
static int ask(struct control *c, const struct engine_request *request, Mesh__V1__DaemonMessage__BodyCase body,
               Mesh__V1__DaemonMessage **ret_answer)
{
    Mesh__V1__DaemonMessage *answer;
    struct engine *e = engine_of(c);
    int r = engine_call(e, request, &answer);
    if (r < 0) {
        return r;
    }
    if (answer->status < 0) {
        r = err_set(answer->status, "%s", answer->error);
    } else if (body != MESH__V1__DAEMON_MESSAGE__BODY__NOT_SET && answer->body_case != body) {
        r = err_set(MESH_EPROTO, "%s: meshd at %s answered something else", request->what, engine_address(e));
    }
    *ret_answer = answer;
    return r;
}

/* Asks for something whose answer is its status. */
static int ask_plainly(struct control *c, const struct engine_request *request)
{
    Mesh__V1__DaemonMessage *answer = NULL;
    int r = ask(c, request, MESH__V1__DAEMON_MESSAGE__BODY__NOT_SET, &answer);
    codec_free_daemon(answer);
    return r;
}

/* News ------------------------------------------------------------------------------------------------------------- */

static void hear(const Mesh__V1__Notice *n, void *arg)
{
    struct mesh_session *s = arg;
    switch (n->kind) {
    case MESH__V1__NOTICE__KIND__RANK_DIED:
        session_peer_news(s, n->rank, PEER_DEAD, n->sentence);
        break;
    case MESH__V1__NOTICE__KIND__RANK_LEFT:
        session_peer_news(s, n->rank, PEER_LEFT, n->sentence);
        break;
    case MESH__V1__NOTICE__KIND__REPORT:
        session_report_news(s, n->rank, n->culprit, n->status, n->group, n->sentence);
        break;
    case MESH__V1__NOTICE__KIND__STILL_JOINING:
        log_warn("session", "%s", n->sentence);
        break;
    default:
        log_debug("session", "a notice of kind %d is not known here, ignored", (int)n->kind);
        break;
    }
}

/* The answer is what the others are told.  Who must not wait for the loop, or is not answered in time, goes without. */
static void ask_who_is_blamed(struct control *c, Mesh__V1__ClientMessage *m, mesh_error *inout_told)
{
    Mesh__V1__DaemonMessage *answer = NULL;
    const struct engine_request q = {
        .message = m, .what = "report", .limit_ms = BLAME_LIMIT_MS, .even_if_aborted = true
    };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY_NOTICE, &answer);
    if (r == 0) {
        inout_told->rank = answer->notice->culprit;
        snprintf(inout_told->message, sizeof inout_told->message, "%s", answer->notice->sentence);
    } else {
        log_debug("session", "the cause is not known: %s", err_last()->message);
    }
    codec_free_daemon(answer);
}

static void meshd_report(struct control *c, const struct report *report, mesh_error *inout_told)
{
    Mesh__V1__Report body = MESH__V1__REPORT__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.status = report->kind == REPORT_ABORT ? MESH_EABORTED : report->status;
    body.group = report->group;
    body.sequence = report->sequence;
    body.rank = report->culprit;
    body.sentence = text(report->sentence);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_REPORT;
    m.report = &body;
    if (inout_told != NULL && engine_may_wait(engine_of(c))) {
        ask_who_is_blamed(c, &m, inout_told);
    } else {
        engine_send(engine_of(c), &m);
    }
}

/* Joining and leaving ---------------------------------------------------------------------------------------------- */

static void free_peers(struct peer *peers, uint32_t n)
{
    for (uint32_t i = 0; peers != NULL && i < n; i++) {
        for (int k = 0; k < peers[i].n_addresses; k++) {
            mem_free(peers[i].address[k]);
        }
    }
    mem_free(peers);
}

static int copy_peer(const Mesh__V1__RankInfo *info, struct peer *peer)
{
    snprintf(peer->host, sizeof peer->host, "%s", info->host);
    peer->pid = (int)info->pid;
    peer->local_rank = (int)info->local_rank;
    for (size_t i = 0; i < info->n_address && i < SESSION_MAX_ADDRESSES; i++) {
        peer->address[i] = mem_strdup(info->address[i]);
        if (peer->address[i] == NULL) {
            return err_no_memory(strlen(info->address[i]) + 1, "an address of a rank");
        }
        peer->n_addresses++;
    }
    return 0;
}

static int copy_peers(const Mesh__V1__Joined *j, struct peer **ret_peers)
{
    struct peer *peers = mem_zalloc(j->size * sizeof *peers);
    if (peers == NULL) {
        return err_no_memory(j->size * sizeof *peers, "the table of ranks");
    }
    for (uint32_t i = 0; i < j->size; i++) {
        int r = j->rank_table[i]->rank == i
                    ? copy_peer(j->rank_table[i], &peers[i])
                    : err_set(MESH_EPROTO, "join: the table of ranks from meshd has rank %u in place %u",
                              j->rank_table[i]->rank, i);
        if (r < 0) {
            free_peers(peers, j->size);
            return r;
        }
    }
    *ret_peers = peers;
    return 0;
}

static int take_reply(const Mesh__V1__Joined *j, struct join_reply *ret_reply)
{
    if (j->size == 0 || j->rank >= j->size || j->n_rank_table != j->size || j->secret.len != SESSION_SECRET_BYTES) {
        return err_set(MESH_EPROTO,
                       "join: meshd sent rank %u of %u, %zu rows and a secret of %zu bytes, which do not fit", j->rank,
                       j->size, j->n_rank_table, j->secret.len);
    }
    struct join_reply reply = { .rank = (int)j->rank,
                                .world_size = (int)j->size,
                                .local_rank = (int)j->local_rank,
                                .local_world_size = (int)j->local_size,
                                .generation = j->generation };
    int r = copy_peers(j, &reply.peers);
    if (r < 0) {
        return r;
    }
    snprintf(reply.job, sizeof reply.job, "%s", j->job);
    memcpy(reply.secret, j->secret.data, sizeof reply.secret);
    if (strlen(j->recorder) < sizeof reply.recorder) {
        snprintf(reply.recorder, sizeof reply.recorder, "%s", j->recorder);
    }
    *ret_reply = reply;
    return 0;
}

static size_t count_addresses(const char *const *addresses)
{
    size_t n = 0;
    while (addresses != NULL && addresses[n] != NULL) {
        n++;
    }
    return n;
}

static int meshd_join(struct control *c, const struct join_request *request, struct join_reply *ret_reply)
{
    char host[64] = "";
    Mesh__V1__Join body = MESH__V1__JOIN__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    gethostname(host, sizeof host - 1);
    body.job = text(request->job);
    body.size = (uint32_t)request->world_size;
    body.rank = request->rank;
    body.host = host;
    body.pid = (uint32_t)getpid();
    body.n_address = count_addresses(request->addresses);
    body.address = (char **)(uintptr_t)request->addresses;
    body.timeout_ms = (uint64_t)MAX(request->timeout_ms, 1); /* 0 would ask for the default */
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_JOIN;
    m.join = &body;
    const struct engine_request q = { .message = &m, .what = "join", .wait_ms = request->timeout_ms };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY_JOINED, &answer);
    if (r == 0) {
        r = take_reply(answer->joined, ret_reply);
    }
    codec_free_daemon(answer);
    return r;
}

static int meshd_leave(struct control *c, int64_t timeout_ms)
{
    Mesh__V1__Leave body = MESH__V1__LEAVE__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    (void)timeout_ms; /* meshd answers at once: the limit for that is the engine's */
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LEAVE;
    m.leave = &body;
    return ask_plainly(c, &(struct engine_request){ .message = &m, .what = "leave", .even_if_aborted = true });
}

/* Meetings --------------------------------------------------------------------------------------------------------- */

static int copy_members(const int *ranks, int n, uint32_t **ret_members)
{
    uint32_t *members = mem_new_array(uint32_t, (size_t)n);
    if (members == NULL) {
        return err_no_memory((size_t)n * sizeof *members, "a list of ranks");
    }
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0) {
            mem_free(members);
            return err_set(MESH_EINVAL, "rank %d is not in the job", ranks[i]);
        }
        members[i] = (uint32_t)ranks[i];
    }
    *ret_members = members;
    return 0;
}

static void meshd_record_group(struct control *c, uint64_t group, const char *name, const int *ranks, int n)
{
    uint32_t *members = NULL;
    if (copy_members(ranks, n, &members) < 0) {
        log_warn("session", "meshctl will not show group %s: %s", name, err_last()->message);
        return;
    }
    Mesh__V1__GroupRecord body = MESH__V1__GROUP_RECORD__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.group = group;
    body.name = text(name);
    body.n_member = (size_t)n;
    body.member = members;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_GROUP_RECORD;
    m.group_record = &body;
    engine_send(engine_of(c), &m);
    mem_free(members);
}

/* A message of the ranks that meet, and where in it they are said. */
struct meeting_message {
    Mesh__V1__ClientMessage *message;
    const char *what;
    size_t *n_member;
    uint32_t **member;
    uint64_t *timeout_ms;
};

static int ask_to_meet(struct control *c, const struct meeting_message *m, const int *ranks, int n, int64_t timeout_ms)
{
    uint32_t *members = NULL;
    int r = copy_members(ranks, n, &members);
    if (r < 0) {
        return r;
    }
    *m->n_member = (size_t)n;
    *m->member = members;
    *m->timeout_ms = (uint64_t)MAX(timeout_ms, 1); /* 0 would ask for the default */
    r = ask_plainly(c, &(struct engine_request){ .message = m->message, .what = m->what, .wait_ms = timeout_ms });
    mem_free(members);
    return r;
}

static int meshd_agree(struct control *c, const char *key, const int *ranks, int n, const char *descriptor,
                       int64_t timeout_ms)
{
    Mesh__V1__Agree body = MESH__V1__AGREE__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.key = text(key);
    body.descriptor = text(descriptor);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_AGREE;
    m.agree = &body;
    const struct meeting_message asks = { &m, "agree", &body.n_member, &body.member, &body.timeout_ms };
    return ask_to_meet(c, &asks, ranks, n, timeout_ms);
}

static int meshd_barrier(struct control *c, const char *name, const int *ranks, int n, int64_t timeout_ms)
{
    Mesh__V1__Barrier body = MESH__V1__BARRIER__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.name = text(name);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_BARRIER;
    m.barrier = &body;
    const struct meeting_message asks = { &m, "barrier", &body.n_member, &body.member, &body.timeout_ms };
    return ask_to_meet(c, &asks, ranks, n, timeout_ms);
}

/* The store -------------------------------------------------------------------------------------------------------- */

static int meshd_store_set(struct control *c, struct bytes key, struct bytes value)
{
    Mesh__V1__StoreSet body = MESH__V1__STORE_SET__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.key = binary(key);
    body.value = binary(value);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET;
    m.store_set = &body;
    return ask_plainly(c, &(struct engine_request){ .message = &m, .what = "store set" });
}

static int take_value(const Mesh__V1__DaemonMessage *answer, struct buf *ret_value)
{
    buf_clear(ret_value);
    buf_append(ret_value, answer->store_value->value.data, answer->store_value->value.len);
    return buf_status(ret_value);
}

static int meshd_store_get(struct control *c, struct bytes key, int64_t timeout_ms, struct buf *ret_value)
{
    Mesh__V1__StoreGet body = MESH__V1__STORE_GET__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    body.key = binary(key);
    body.timeout_ms = timeout_ms;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET;
    m.store_get = &body;
    const struct engine_request q = { .message = &m, .what = "store get", .wait_ms = timeout_ms };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE, &answer);
    if (r == 0) {
        r = take_value(answer, ret_value);
    }
    codec_free_daemon(answer);
    return r;
}

static int meshd_store_add(struct control *c, struct bytes key, int64_t delta, int64_t *ret_value)
{
    Mesh__V1__StoreAdd body = MESH__V1__STORE_ADD__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    body.key = binary(key);
    body.delta = delta;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_ADD;
    m.store_add = &body;
    const struct engine_request q = { .message = &m, .what = "store add" };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY_STORE_NUMBER, &answer);
    if (r == 0) {
        *ret_value = answer->store_number->value;
    }
    codec_free_daemon(answer);
    return r;
}

static int meshd_store_compare_set(struct control *c, const struct store_swap *swap, struct buf *ret_value)
{
    Mesh__V1__StoreCompareSet body = MESH__V1__STORE_COMPARE_SET__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    body.key = binary(swap->key);
    body.expect_absent = swap->expect_absent;
    body.expected = binary(swap->expect_absent ? (struct bytes){ NULL, 0 } : swap->expected);
    body.desired = binary(swap->desired);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_COMPARE_SET;
    m.store_compare_set = &body;
    const struct engine_request q = { .message = &m, .what = "store compare_set" };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY__NOT_SET, &answer);
    bool has_value = answer != NULL && answer->body_case == MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE;
    if ((r == 0 || r == MESH_EEXIST) && has_value) {
        int copied = take_value(answer, ret_value);
        r = copied < 0 ? copied : r;
    } else if (r == MESH_EEXIST) {
        r = err_set(MESH_EPROTO, "store compare_set: meshd did not send the value that stands");
    }
    codec_free_daemon(answer);
    return r;
}

/* With MESH_NO_WAIT what is absent has not timed out. */
static int say_what_is_absent(const Mesh__V1__DaemonMessage *answer)
{
    char key[STORE_KEY_TEXT_BYTES];
    if (answer->body_case != MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE || answer->store_value->n_missing == 0) {
        return err_set(MESH_ENOTFOUND, "store wait: not all keys are there");
    }
    const ProtobufCBinaryData *first = &answer->store_value->missing[0];
    return err_set(MESH_ENOTFOUND, "store wait: %s is not there (%zu keys are absent)",
                   text_quote(first->data, first->len, key, sizeof key), answer->store_value->n_missing);
}

static int meshd_store_wait(struct control *c, const struct bytes *keys, size_t n, int64_t timeout_ms)
{
    Mesh__V1__StoreWait body = MESH__V1__STORE_WAIT__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    ProtobufCBinaryData *key = mem_new_array(ProtobufCBinaryData, n);
    if (key == NULL) {
        return err_no_memory(n * sizeof *key, "the keys to wait for");
    }
    for (size_t i = 0; i < n; i++) {
        key[i] = binary(keys[i]);
    }
    body.n_key = n;
    body.key = key;
    body.timeout_ms = MAX(timeout_ms, 1); /* 0 would ask for the default */
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_WAIT;
    m.store_wait = &body;
    const struct engine_request q = { .message = &m, .what = "store wait", .wait_ms = timeout_ms };
    int r = ask(c, &q, MESH__V1__DAEMON_MESSAGE__BODY__NOT_SET, &answer);
    if (r == MESH_ETIMEDOUT && timeout_ms < 0 && answer != NULL) {
        r = say_what_is_absent(answer);
    }
    codec_free_daemon(answer);
    mem_free(key);
    return r;
}

static int meshd_store_delete(struct control *c, struct bytes key)
{
    Mesh__V1__StoreDelete body = MESH__V1__STORE_DELETE__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    body.key = binary(key);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_DELETE;
    m.store_delete = &body;
    return ask_plainly(c, &(struct engine_request){ .message = &m, .what = "store delete" });
}

static void meshd_free(struct control *c)
{
    struct meshd_control *m = container_of(c, struct meshd_control, base);
    engine_free(m->engine);
    mem_free(m);
}

static const struct control_ops meshd_ops = {
    .join = meshd_join,
    .leave = meshd_leave,
    .report = meshd_report,
    .record_group = meshd_record_group,
    .agree = meshd_agree,
    .barrier = meshd_barrier,
    .store_set = meshd_store_set,
    .store_get = meshd_store_get,
    .store_add = meshd_store_add,
    .store_compare_set = meshd_store_compare_set,
    .store_wait = meshd_store_wait,
    .store_delete = meshd_store_delete,
    .free = meshd_free,
};

struct control *control_meshd_new(struct mesh_session *s, const char *address)
{
    struct meshd_control *m = mem_new(struct meshd_control);
    if (m == NULL) {
        err_no_memory(sizeof *m, "the control of a session");
        return NULL;
    }
    m->base = (struct control){ .ops = &meshd_ops, .session = s };
    m->engine = engine_new(s, address, hear, s);
    if (m->engine == NULL) {
        mem_free(m);
        return NULL;
    }
    return &m->base;
}
