/* daemon/rendezvous.c - the forming of generations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rendezvous.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/sentence.h"

#define ROW_BYTES 64 /* of a rank in the table, without its strings */

void rendezvous_init(struct rendezvous *v, const char *job, uint32_t size)
{
    *v = (struct rendezvous){ .size = size, .forming = 1 };
    snprintf(v->job, sizeof v->job, "%s", job);
}

static void table_free(struct member *table, size_t n)
{
    for (size_t i = 0; table != NULL && i < n; i++) {
        member_fini(&table[i]);
    }
    mem_free(table);
}

void rendezvous_fini(struct rendezvous *v)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        member_fini(&v->waiting.at[i].member);
    }
    VEC_FINI(&v->waiting);
    VEC_FINI(&v->ended);
    table_free(v->table, v->size);
    v->table = NULL;
}

static int check_generation(const struct rendezvous *v, uint32_t wanted)
{
    if (wanted == 0 || wanted == v->forming) {
        return 0;
    }
    if (wanted > v->forming) {
        return err_set(MESH_EINVAL, "join: job %.60s has not reached generation %u; generation %u forms now", v->job,
                       wanted, v->forming);
    }
    return err_set(MESH_ESTALE, "join: generation %u of job %.60s is %s; generation %u forms next", wanted, v->job,
                   wanted == v->running ? "running already" : "over", v->forming);
}

static int check_candidates(const struct rendezvous *v, const struct join_call *c)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        const struct member *m = &v->waiting.at[i].member;
        if (m->client == c->who.client) {
            return err_set(MESH_ESTATE, "join: this connection waits to join job %.60s already", v->job);
        }
        if (c->rank >= 0 && m->wanted == c->rank) {
            return err_set(MESH_EEXIST, "join: rank %d of job %.60s is taken by pid %u on %s", c->rank, v->job, m->pid,
                           m->host);
        }
    }
    return 0;
}

static int check_running(const struct rendezvous *v, const struct join_call *c, const struct liveness *l)
{
    int rank = liveness_rank_of(l, c->who.client);
    if (rank >= 0 && liveness_is_alive(l, (uint32_t)rank)) {
        return err_set(MESH_ESTATE, "join: this connection is rank %d of job %.60s already", rank, v->job);
    }
    if (c->rank >= 0 && liveness_is_alive(l, (uint32_t)c->rank)) {
        char name[150];
        member_name(&v->table[c->rank], name, sizeof name);
        return err_set(MESH_ESTALE, "join: generation %u of job %.40s is running and its %s is alive", v->running,
                       v->job, name);
    }
    if (v->waiting.n >= v->size - l->n_alive) {
        return err_set(MESH_ESTALE, "join: job %.60s has no free place: %u of its %u ranks run, %zu wait to join",
                       v->job, l->n_alive, v->size, v->waiting.n);
    }
    return 0;
}

static int check(const struct rendezvous *v, const struct join_call *c, const struct liveness *l)
{
    if (c->size != 0 && c->size != v->size) {
        return err_set(MESH_EMISMATCH, "join: job %.60s has %u ranks, but this one was started for %u (pid %u on %s)",
                       v->job, v->size, c->size, c->pid, c->host);
    }
    if (c->rank < -1 || c->rank >= (int64_t)v->size) {
        return err_set(MESH_EINVAL, "join: rank %d is outside job %.60s, which has ranks 0 to %u", c->rank, v->job,
                       v->size - 1);
    }
    if (c->n_addresses > MAX_ADDRESSES) {
        return err_set(MESH_ETOOLARGE, "join: %zu addresses; at most %d are allowed", c->n_addresses, MAX_ADDRESSES);
    }
    for (size_t i = 0; i < c->n_addresses; i++) {
        if (strlen(c->address[i]) > MAX_ADDRESS_BYTES) {
            return err_set(MESH_ETOOLARGE, "join: the address %.40s... is longer than %d bytes", c->address[i],
                           MAX_ADDRESS_BYTES);
        }
    }
    int r = check_generation(v, c->generation);
    if (r == 0) {
        r = check_candidates(v, c);
    }
    return r < 0 ? r : check_running(v, c, l);
}

int rendezvous_join(struct rendezvous *v, const struct join_call *c, const struct liveness *l)
{
    int r = check(v, c, l);
    if (r < 0) {
        return r;
    }
    struct candidate *place = VEC_PUSH(&v->waiting);
    if (place == NULL) {
        return err_no_memory(sizeof *place, "a candidate");
    }
    *place = (struct candidate){ .begin_ms = c->now_ms, .deadline_ms = c->deadline_ms };
    struct member *m = &place->member;
    *m = (struct member){
        .client = c->who.client, .request = c->who.request, .wanted = c->rank, .slot = c->slot, .pid = c->pid
    };
    snprintf(m->host, sizeof m->host, "%s", c->host);
    for (size_t i = 0; i < c->n_addresses; i++) {
        m->address[i] = mem_strdup(c->address[i]);
        if (m->address[i] == NULL) {
            member_fini(m);
            v->waiting.n--;
            return err_no_memory(strlen(c->address[i]), "an address");
        }
        m->n_addresses++;
    }
    if (v->waiting.n == 1) {
        v->word_ms = c->now_ms + MISSING_FIRST_MS;
    }
    return 0;
}

bool rendezvous_is_complete(const struct rendezvous *v, const struct liveness *l)
{
    return v->waiting.n == v->size && l->n_alive == 0;
}

/* Fails the forming generation for all who wait. */
static void fail(struct rendezvous *v, int status, const char *sentence, struct actions *ret)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        struct member *m = &v->waiting.at[i].member;
        actions_error(ret, (struct ticket){ m->client, m->request }, status, "%s", sentence);
        member_fini(m);
    }
    v->waiting.n = 0;
    v->forming++;
}

/* The candidates as a table by rank; their addresses stay theirs until it is used. */
static struct member *table_new(const struct rendezvous *v)
{
    struct member *table = mem_new_array(struct member, v->size);
    if (table == NULL) {
        err_no_memory(v->size * sizeof *table, "the rank table");
        return NULL;
    }
    for (size_t i = 0; i < v->size; i++) {
        table[i] = v->waiting.at[i].member;
    }
    if (ranks_assign(table, v->size) < 0) {
        return mem_free(table);
    }
    return table;
}

/* At most what the row of this candidate takes in the table that all get. */
static size_t row_bytes(const struct member *m)
{
    size_t n = ROW_BYTES + strlen(m->host);
    for (size_t i = 0; i < m->n_addresses; i++) {
        n += strlen(m->address[i]) + 3;
    }
    return n;
}

static int check_table(const struct rendezvous *v)
{
    size_t bytes = 0;
    for (size_t i = 0; i < v->waiting.n; i++) {
        bytes += row_bytes(&v->waiting.at[i].member);
    }
    return bytes <= MAX_TABLE_BYTES
               ? 0
               : err_set(MESH_ETOOLARGE,
                         "join: the names and addresses of the %u ranks of job %.60s take %zu bytes; at most %u go to "
                         "each rank: use fewer ranks or shorter paths of sockets",
                         v->size, v->job, bytes, MAX_TABLE_BYTES);
}

bool rendezvous_form(struct rendezvous *v, struct liveness *l, const uint8_t *secret, int64_t now_ms,
                     struct actions *ret)
{
    if (!rendezvous_is_complete(v, l)) {
        return false;
    }
    struct member *table = check_table(v) == 0 ? table_new(v) : NULL;
    if (table == NULL || liveness_begin(l, table, v->size, now_ms) < 0) {
        const mesh_error why = *mesh_last_error();
        mem_free(table);
        fail(v, why.status, why.message, ret);
        return false;
    }
    table_free(v->table, v->size);
    v->table = table;
    v->waiting.n = 0;
    v->running = v->forming++;
    memcpy(v->secret, secret, SECRET_BYTES);
    for (uint32_t i = 0; i < v->size; i++) {
        actions_joined(ret, (struct ticket){ table[i].client, table[i].request }, i);
    }
    return true;
}

bool rendezvous_withdraw(struct rendezvous *v, uint64_t client, struct ticket *ret_who)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        struct member *m = &v->waiting.at[i].member;
        if (m->client == client) {
            *ret_who = (struct ticket){ m->client, m->request };
            member_fini(m);
            memmove(&v->waiting.at[i], &v->waiting.at[i + 1], (v->waiting.n - i - 1) * sizeof *v->waiting.at);
            v->waiting.n--;
            return true;
        }
    }
    return false;
}

size_t rendezvous_missing(const struct rendezvous *v, uint32_t *rank)
{
    size_t n_any = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < v->size; i++) {
        rank[i] = i;
    }
    for (size_t i = 0; i < v->waiting.n; i++) {
        int32_t wanted = v->waiting.at[i].member.wanted;
        if (wanted >= 0) {
            rank[wanted] = UINT32_MAX;
        } else {
            n_any++;
        }
    }
    for (uint32_t i = 0; i < v->size; i++) {
        if (rank[i] == UINT32_MAX) {
            continue;
        }
        if (n_any > 0) {
            n_any--;
        } else {
            rank[n++] = i;
        }
    }
    return n;
}

static bool anyone_without_wish(const struct rendezvous *v)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        if (v->waiting.at[i].member.wanted < 0) {
            return true;
        }
    }
    return false;
}

/* "node1 pid 11, node1 pid 12, ..." */
static void list_candidates(const struct rendezvous *v, char *buf, size_t cap)
{
    size_t len = 0;
    for (size_t i = 0; i < v->waiting.n; i++) {
        const struct member *m = &v->waiting.at[i].member;
        char piece[MAX_HOST_BYTES + 24];
        int n = snprintf(piece, sizeof piece, "%s%s pid %u", i > 0 ? ", " : "", m->host, m->pid);
        if (len + (size_t)n + sizeof ", ..." > cap) {
            snprintf(buf + len, cap - len, ", ...");
            return;
        }
        len += (size_t)snprintf(buf + len, cap - len, "%s", piece);
    }
}

/* Who is missing, by rank when that is known, else by who is there. */
static void say_missing(const struct rendezvous *v, const struct candidate *first, const struct liveness *l, char *buf,
                        size_t cap)
{
    int64_t limit_ms = first->deadline_ms - first->begin_ms;
    uint32_t *rank = mem_new_array(uint32_t, v->size);
    char names[120] = "";
    if (rank == NULL || anyone_without_wish(v)) {
        list_candidates(v, names, sizeof names);
        snprintf(buf, cap, "join: %zu of the %u ranks of job %.40s did not come within %" PRId64 " ms (here: %s)",
                 v->size - v->waiting.n, v->size, v->job, limit_ms, names);
    } else {
        size_t n = rendezvous_missing(v, rank);
        bool lives = n > 0 && liveness_is_alive(l, rank[0]);
        sentence_ranks(names, sizeof names, rank, n);
        int len = snprintf(buf, cap, "join: %s of job %.40s did not come within %" PRId64 " ms (%zu of %u are here)",
                           names, v->job, limit_ms, v->waiting.n, v->size);
        if (lives && len > 0 && (size_t)len < cap) {
            char name[150];
            snprintf(buf + len, cap - (size_t)len, "; %s is still in generation %u",
                     member_name(&v->table[rank[0]], name, sizeof name), v->running);
        }
    }
    mem_free(rank);
}

/* Long before the deadline, so that nobody looks at a job that says nothing. */
static void tell_missing(struct rendezvous *v, int64_t now_ms, const struct liveness *l, struct actions *ret)
{
    char sentence[256], names[120] = "";
    const struct candidate *first = &v->waiting.at[0];
    uint32_t *rank = mem_new_array(uint32_t, v->size);
    long long waited_s = (long long)(now_ms - first->begin_ms) / 1000;
    v->word_ms = now_ms + MISSING_AGAIN_MS;
    if (rank == NULL || anyone_without_wish(v)) {
        snprintf(names, sizeof names, "%zu of its ranks", v->size - v->waiting.n);
    } else {
        sentence_ranks(names, sizeof names, rank, rendezvous_missing(v, rank));
    }
    mem_free(rank);
    snprintf(sentence, sizeof sentence, "job %.60s waits for %s to join, for %lld s now; %zu of %u are here", v->job,
             names, waited_s, v->waiting.n, v->size);
    const struct notice n = { .kind = NOTICE_STILL_JOINING, .rank = -1, .culprit = -1 };
    uint64_t whom = l->watcher != 0 ? l->watcher : first->member.client;
    actions_notice(ret, (struct ticket){ .client = whom }, &n, sentence);
}

void rendezvous_tick(struct rendezvous *v, int64_t now_ms, const struct liveness *l, struct actions *ret)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        if (v->waiting.at[i].deadline_ms <= now_ms) {
            char sentence[256];
            say_missing(v, &v->waiting.at[i], l, sentence, sizeof sentence);
            fail(v, MESH_ETIMEDOUT, sentence, ret);
            return;
        }
    }
    if (v->waiting.n > 0 && now_ms >= v->word_ms) {
        tell_missing(v, now_ms, l, ret);
    }
}

int rendezvous_rank_ended(struct rendezvous *v, const struct ended_rank *e)
{
    if (e->rank >= v->size) {
        return err_set(MESH_EINVAL, "rank ended: job %.60s has ranks 0 to %u, not %u", v->job, v->size - 1, e->rank);
    }
    for (size_t i = 0; i < v->ended.n; i++) {
        if (v->ended.at[i].rank == e->rank) {
            v->ended.at[i] = *e;
            return 0;
        }
    }
    struct ended_rank *place = VEC_PUSH(&v->ended);
    if (place == NULL) {
        return err_no_memory(sizeof *place, "the end of a rank");
    }
    *place = *e;
    return 0;
}

static bool is_waiting(const struct rendezvous *v, uint32_t rank)
{
    for (size_t i = 0; i < v->waiting.n; i++) {
        if (v->waiting.at[i].member.wanted == (int64_t)rank) {
            return true;
        }
    }
    return false;
}

void rendezvous_give_up(struct rendezvous *v, const struct liveness *l, struct actions *ret)
{
    for (size_t i = 0; i < v->ended.n && v->waiting.n > 0; i++) {
        const struct ended_rank *e = &v->ended.at[i];
        if (liveness_is_alive(l, e->rank) || is_waiting(v, e->rank)) {
            continue; /* the end of its connection is still to come, or somebody started it again */
        }
        char sentence[256];
        snprintf(sentence, sizeof sentence,
                 "join: rank %u of job %.60s will not come: its process (pid %u) %s before it joined", e->rank, v->job,
                 e->pid, e->words);
        const struct notice n = {
            .kind = NOTICE_RANK_ABSENT, .rank = (int32_t)e->rank, .culprit = (int32_t)e->rank, .status = MESH_EPEER
        };
        if (l->watcher != 0) { /* first: before the end of those who hear of it */
            actions_notice(ret, (struct ticket){ .client = l->watcher }, &n, sentence);
        }
        fail(v, MESH_EPEER, sentence, ret);
    }
}

int64_t rendezvous_next_deadline(const struct rendezvous *v)
{
    int64_t next_ms = v->waiting.n > 0 ? v->word_ms : INT64_MAX;
    for (size_t i = 0; i < v->waiting.n; i++) {
        next_ms = MIN(next_ms, v->waiting.at[i].deadline_ms);
    }
    return next_ms;
}

void rendezvous_stop(struct rendezvous *v, const char *why, struct actions *ret)
{
    if (v->waiting.n > 0) {
        fail(v, MESH_EABORTED, why, ret);
    }
}
