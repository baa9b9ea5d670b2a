/* daemon/store_wait.c - who waits for which keys of a store.
 *
 *   store.waiters  = ring of struct waiter, by arrival
 *   store.watched  : key -> ring of struct key_wait (one per key of each waiter), by arrival
 *
 * A waiter and its keys are one block of memory: the struct, [n] key_wait, [n] bytes, then the bytes of the keys.  It
 * counts how many of its keys are absent and is answered when that reaches 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "daemon/bounds.h"
#include "daemon/sentence.h"

struct key_wait {
    struct store_link link; /* in the ring of its key */
    struct waiter *waiter;
};

struct waiter {
    struct store_link link; /* in store.waiters */
    struct ticket who;
    bool wants_value;
    int64_t begin_ms, deadline_ms;
    size_t n, n_absent;
    struct waiter *next_ready; /* in waits_key_created() */
    struct bytes *key;         /* [n] */
    struct key_wait wait[];    /* [n] */
};

static void ring_append(struct store_link *ring, struct store_link *link)
{
    link->previous = ring->previous;
    link->next = ring;
    ring->previous->next = link;
    ring->previous = link;
}

static void ring_remove(struct store_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    ring_init(link);
}

static bool ring_is_empty(const struct store_link *ring)
{
    return ring->next == ring;
}

static struct waiter *waiter_new(struct ticket who, const struct store_wait *w)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < w->n; i++) {
        n_bytes += w->key[i].len;
    }
    size_t head = sizeof(struct waiter) + w->n * sizeof(struct key_wait);
    struct waiter *waiter = mem_zalloc(head + w->n * sizeof(struct bytes) + n_bytes);
    if (waiter == NULL) {
        return NULL;
    }
    waiter->key = (struct bytes *)(void *)((uint8_t *)waiter + head);
    uint8_t *p = (uint8_t *)(waiter->key + w->n);
    for (size_t i = 0; i < w->n; i++) {
        waiter->key[i] = (struct bytes){ memcpy(p, w->key[i].data, w->key[i].len), w->key[i].len };
        waiter->wait[i].waiter = waiter;
        ring_init(&waiter->wait[i].link);
        p += w->key[i].len;
    }
    ring_init(&waiter->link);
    waiter->who = who;
    waiter->n = w->n;
    waiter->begin_ms = w->now_ms;
    waiter->deadline_ms = w->deadline_ms;
    return waiter;
}

/* Takes the waiter out of every ring; its memory stays. */
static void detach(struct store *s, struct waiter *waiter)
{
    for (size_t i = 0; i < waiter->n; i++) {
        ring_remove(&waiter->wait[i].link);
        struct store_link *ring = map_get(&s->watched, waiter->key[i].data, waiter->key[i].len);
        if (ring != NULL && ring_is_empty(ring)) {
            mem_free(map_remove(&s->watched, waiter->key[i].data, waiter->key[i].len));
        }
    }
    ring_remove(&waiter->link);
    s->n_waiters--;
    if (s->n_waiters == 0) {
        s->next_deadline_ms = INT64_MAX;
    }
}

static struct store_link *ring_of_key(struct store *s, struct bytes key)
{
    struct store_link *ring = map_get(&s->watched, key.data, key.len);
    if (ring != NULL) {
        return ring;
    }
    ring = mem_new(struct store_link);
    if (ring == NULL) {
        return NULL;
    }
    ring_init(ring);
    if (map_set(&s->watched, key.data, key.len, ring, NULL) < 0) {
        return mem_free(ring);
    }
    return ring;
}

int waits_add(struct store *s, struct ticket who, const struct store_wait *w, bool wants_value)
{
    if (s->n_waiters >= MAX_STORE_WAITERS) {
        return err_set(MESH_ETOOLARGE, "store: %zu calls wait in this job already", s->n_waiters);
    }
    struct waiter *waiter = waiter_new(who, w);
    if (waiter == NULL) {
        return err_no_memory(sizeof *waiter, "a waiting call");
    }
    waiter->wants_value = wants_value;
    ring_append(&s->waiters, &waiter->link);
    s->n_waiters++;
    s->next_deadline_ms = MIN(s->next_deadline_ms, waiter->deadline_ms);
    for (size_t i = 0; i < waiter->n; i++) {
        struct store_link *ring = ring_of_key(s, waiter->key[i]);
        if (ring == NULL) {
            detach(s, waiter);
            mem_free(waiter);
            return err_no_memory(sizeof *ring, "a waiting call");
        }
        ring_append(ring, &waiter->wait[i].link);
        waiter->n_absent += store_find(s, waiter->key[i]) == NULL;
    }
    CHECK(waiter->n_absent > 0);
    return 0;
}

static void answer(struct store *s, const struct waiter *waiter, struct actions *ret)
{
    if (!waiter->wants_value) {
        actions_done(ret, waiter->who);
        return;
    }
    const struct store_entry *entry = store_find(s, waiter->key[0]);
    CHECK(entry != NULL);
    actions_value(ret, waiter->who, 0, (struct bytes){ entry->value, entry->len }, entry->version);
}

static struct waiter *waiter_of(struct store_link *link)
{
    return container_of(link, struct waiter, link);
}

void waits_key_created(struct store *s, struct bytes key, struct actions *ret)
{
    struct store_link *ring = map_get(&s->watched, key.data, key.len);
    if (ring == NULL) {
        return;
    }
    struct waiter *ready = NULL;
    struct waiter **last = &ready;
    for (struct store_link *link = ring->next; link != ring; link = link->next) {
        struct waiter *waiter = container_of(link, struct key_wait, link)->waiter;
        waiter->n_absent--;
        if (waiter->n_absent == 0) {
            *last = waiter;
            last = &waiter->next_ready;
        }
    }
    while (ready != NULL) {
        struct waiter *waiter = ready;
        ready = waiter->next_ready;
        answer(s, waiter, ret);
        detach(s, waiter);
        mem_free(waiter);
    }
}

void waits_key_deleted(struct store *s, struct bytes key)
{
    struct store_link *ring = map_get(&s->watched, key.data, key.len);
    if (ring == NULL) {
        return;
    }
    for (struct store_link *link = ring->next; link != ring; link = link->next) {
        container_of(link, struct key_wait, link)->waiter->n_absent++;
    }
}

/* Brings the absent keys to the front of the waiter's list; returns how many. */
static size_t gather_absent(const struct store *s, struct waiter *waiter)
{
    size_t n = 0;
    for (size_t i = 0; i < waiter->n; i++) {
        if (store_find(s, waiter->key[i]) == NULL) {
            waiter->key[n++] = waiter->key[i];
        }
    }
    return n;
}

static void time_out(struct store *s, struct waiter *waiter, struct actions *ret)
{
    detach(s, waiter);
    size_t n = gather_absent(s, waiter);
    char shown[100], more[40] = "";
    sentence_key(shown, sizeof shown, waiter->key[0]);
    if (n > 1) {
        snprintf(more, sizeof more, " and %zu more", n - 1);
    }
    int64_t limit_ms = waiter->deadline_ms - waiter->begin_ms;
    bool was_get = waiter->wants_value;
    actions_missing(ret, waiter->who, waiter->key, n, waiter);
    actions_say(ret, "store %s: %s%s did not appear within %" PRId64 " ms", was_get ? "get" : "wait", shown, more,
                limit_ms);
}

void store_tick(struct store *s, int64_t now_ms, struct actions *ret)
{
    if (now_ms < s->next_deadline_ms) {
        return;
    }
    int64_t next_ms = INT64_MAX;
    for (struct store_link *link = s->waiters.next, *next; link != &s->waiters; link = next) {
        next = link->next;
        struct waiter *waiter = waiter_of(link);
        if (waiter->deadline_ms <= now_ms) {
            time_out(s, waiter, ret);
        } else {
            next_ms = MIN(next_ms, waiter->deadline_ms);
        }
    }
    s->next_deadline_ms = next_ms;
}

void store_client_gone(struct store *s, uint64_t client)
{
    for (struct store_link *link = s->waiters.next, *next; link != &s->waiters; link = next) {
        next = link->next;
        struct waiter *waiter = waiter_of(link);
        if (waiter->who.client == client) {
            detach(s, waiter);
            mem_free(waiter);
        }
    }
}

void store_stop(struct store *s, const char *why, struct actions *ret)
{
    while (!ring_is_empty(&s->waiters)) {
        struct waiter *waiter = waiter_of(s->waiters.next);
        actions_error(ret, waiter->who, MESH_EABORTED, "%s", why);
        detach(s, waiter);
        mem_free(waiter);
    }
}

void waits_free(struct store *s)
{
    while (!ring_is_empty(&s->waiters)) {
        struct waiter *waiter = waiter_of(s->waiters.next);
        detach(s, waiter);
        mem_free(waiter);
    }
}

const char *store_waits_for(const struct store *s, uint64_t client, char *buf, size_t cap)
{
    char key[80];
    buf[0] = 0;
    for (const struct store_link *l = s->waiters.next; l != &s->waiters; l = l->next) {
        const struct waiter *w = container_of(l, struct waiter, link);
        if (w->who.client != client) {
            continue;
        }
        snprintf(buf, cap, "key %s%s of the store", sentence_key(key, sizeof key, w->key[0]),
                 w->n > 1 ? " and others" : "");
        break;
    }
    return buf;
}
