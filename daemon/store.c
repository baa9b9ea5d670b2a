/* daemon/store.c - keys and values; who waits for them is kept in store_wait.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/bounds.h"
#include "daemon/sentence.h"
#include "daemon/store_internal.h"

void store_init(struct store *s)
{
    *s = (struct store){ .entries = MAP_INIT,
                         .watched = MAP_INIT,
                         .max_bytes = MAX_STORE_BYTES,
                         .max_keys = MAX_STORE_KEYS,
                         .next_deadline_ms = INT64_MAX };
    ring_init(&s->waiters);
}

void store_forget(struct store *s)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->entries, &i)) != NULL;) {
        struct store_entry *entry = slot->value;
        waits_key_deleted(s, (struct bytes){ slot->key, slot->key_len });
        mem_free(entry);
    }
    map_fini(&s->entries);
    s->entries = MAP_INIT;
    s->n_bytes = 0;
}

void store_fini(struct store *s)
{
    waits_free(s);
    store_forget(s);
    map_fini(&s->watched);
}

int store_check_key(struct bytes key)
{
    if (key.len == 0) {
        return err_set(MESH_EINVAL, "store: the key is empty; keys have 1 to %d bytes", MAX_KEY_BYTES);
    }
    char shown[80];
    if (key.len > MAX_KEY_BYTES) {
        return err_set(MESH_ETOOLARGE, "store: key %s has %zu bytes; at most %d are allowed",
                       sentence_key(shown, sizeof shown, key), key.len, MAX_KEY_BYTES);
    }
    if (memchr(key.data, 0, key.len) != NULL) {
        return err_set(MESH_EINVAL, "store: key %s contains a NUL byte", sentence_key(shown, sizeof shown, key));
    }
    return 0;
}

struct store_entry *store_find(const struct store *s, struct bytes key)
{
    return map_get(&s->entries, key.data, key.len);
}

static struct bytes value_of(const struct store_entry *entry)
{
    return (struct bytes){ entry->value, entry->len };
}

static int check_quota(const struct store *s, struct bytes key, struct bytes value, const struct store_entry *old)
{
    char shown[80];
    if (value.len > MAX_VALUE_BYTES) {
        return err_set(MESH_ETOOLARGE, "store: the value of %s has %zu bytes; at most %u are allowed",
                       sentence_key(shown, sizeof shown, key), value.len, MAX_VALUE_BYTES);
    }
    if (old == NULL && s->entries.n >= s->max_keys) {
        return err_set(MESH_ETOOLARGE, "store: the job has %zu keys, as many as it may have; delete some first",
                       s->entries.n);
    }
    uint64_t before = old != NULL ? old->len : 0;
    uint64_t after = s->n_bytes - before + value.len + (old == NULL ? key.len : 0);
    if (after > s->max_bytes) {
        return err_set(MESH_ETOOLARGE, "store: %s would bring the job to %" PRIu64 " bytes; it may have %" PRIu64,
                       sentence_key(shown, sizeof shown, key), after, s->max_bytes);
    }
    return 0;
}

/* Stores the value; *ret_entry is what is there now. */
static int put(struct store *s, struct bytes key, struct bytes value, struct store_entry **ret_entry)
{
    struct store_entry *old = store_find(s, key);
    int r = check_quota(s, key, value, old);
    if (r < 0) {
        return r;
    }
    struct store_entry *entry = mem_alloc(sizeof *entry + value.len);
    if (entry == NULL) {
        return err_no_memory(sizeof *entry + value.len, "a value in the store");
    }
    *entry = (struct store_entry){ .version = s->version + 1, .len = value.len };
    if (value.len > 0) {
        memcpy(entry->value, value.data, value.len);
    }
    r = map_set(&s->entries, key.data, key.len, entry, NULL);
    if (r < 0) {
        mem_free(entry);
        return r;
    }
    s->n_bytes += value.len + (old == NULL ? key.len : 0) - (old != NULL ? old->len : 0);
    s->version++;
    mem_free(old);
    *ret_entry = entry;
    return old == NULL;
}

/* put() and, when the key is new, the answers to those who waited for it. */
static int put_and_tell(struct store *s, struct bytes key, struct bytes value, struct store_entry **ret_entry,
                        struct actions *ret)
{
    int r = put(s, key, value, ret_entry);
    if (r > 0) {
        waits_key_created(s, key, ret);
    }
    return MIN(r, 0);
}

int store_set(struct store *s, struct ticket who, struct bytes key, struct bytes value, struct actions *ret)
{
    int r = store_check_key(key);
    if (r < 0) {
        return r;
    }
    struct store_entry *entry;
    r = put_and_tell(s, key, value, &entry, ret);
    if (r == 0) {
        actions_value(ret, who, 0, (struct bytes){ NULL, 0 }, entry->version);
    }
    return r;
}

/* Decimal digits after an optional minus, all of the value, within 64 bits. */
static bool parse_number(struct bytes value, int64_t *ret_number)
{
    char text[32];
    size_t first = value.len > 0 && value.data[0] == '-' ? 1 : 0;
    if (value.len == first || value.len >= sizeof text) {
        return false;
    }
    for (size_t i = first; i < value.len; i++) {
        if (!isdigit(value.data[i])) {
            return false;
        }
    }
    memcpy(text, value.data, value.len);
    text[value.len] = 0;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno != 0) {
        return false;
    }
    *ret_number = number;
    return true;
}

static int sum(struct bytes key, const struct store_entry *old, int64_t delta, int64_t *ret_sum)
{
    char shown[80], value[60];
    int64_t before = 0;
    if (old != NULL && !parse_number(value_of(old), &before)) {
        return err_set(MESH_EINVAL, "store add: the value of %s, %s, is not a 64-bit decimal number",
                       sentence_key(shown, sizeof shown, key), sentence_key(value, sizeof value, value_of(old)));
    }
    int64_t after;
    if (__builtin_add_overflow(before, delta, &after)) {
        return err_set(MESH_ERANGE, "store add: %s is %" PRId64 "; adding %" PRId64 " does not fit 64 bits",
                       sentence_key(shown, sizeof shown, key), before, delta);
    }
    *ret_sum = after;
    return 0;
}

int store_add(struct store *s, struct ticket who, struct bytes key, int64_t delta, struct actions *ret)
{
    int r = store_check_key(key);
    if (r < 0) {
        return r;
    }
    int64_t number = 0;
    r = sum(key, store_find(s, key), delta, &number);
    if (r < 0) {
        return r;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, number);
    struct store_entry *entry;
    r = put_and_tell(s, key, (struct bytes){ (uint8_t *)text, (size_t)len }, &entry, ret);
    if (r == 0) {
        actions_number(ret, who, number);
    }
    return r;
}

static bool holds(struct bytes expected, const struct store_entry *entry)
{
    return entry->len == expected.len && (entry->len == 0 || memcmp(entry->value, expected.data, entry->len) == 0);
}

int store_compare_set(struct store *s, struct ticket who, const struct store_compare_set *c, struct actions *ret)
{
    int r = store_check_key(c->key);
    if (r < 0) {
        return r;
    }
    char shown[80];
    sentence_key(shown, sizeof shown, c->key);
    struct store_entry *entry = store_find(s, c->key);
    if (entry == NULL && !c->expect_absent) {
        return err_set(MESH_ENOTFOUND, "store compare_set: there is no key %s", shown);
    }
    if (entry != NULL && (c->expect_absent || !holds(c->expected, entry))) {
        actions_value(ret, who, MESH_EEXIST, value_of(entry), entry->version);
        actions_say(ret, "store compare_set: %s %s", shown,
                    c->expect_absent ? "exists already" : "has another value than expected");
        return 0;
    }
    r = put_and_tell(s, c->key, c->desired, &entry, ret);
    if (r == 0) {
        actions_value(ret, who, 0, value_of(entry), entry->version);
    }
    return r;
}

int store_delete(struct store *s, struct ticket who, struct bytes key, struct actions *ret)
{
    int r = store_check_key(key);
    if (r < 0) {
        return r;
    }
    struct store_entry *entry = map_remove(&s->entries, key.data, key.len);
    if (entry == NULL) {
        char shown[80];
        return err_set(MESH_ENOTFOUND, "store delete: there is no key %s", sentence_key(shown, sizeof shown, key));
    }
    s->n_bytes -= key.len + entry->len;
    s->version++;
    mem_free(entry);
    waits_key_deleted(s, key);
    actions_done(ret, who);
    return 0;
}

int store_get(struct store *s, struct ticket who, struct bytes key, int64_t now_ms, int64_t deadline_ms,
              struct actions *ret)
{
    int r = store_check_key(key);
    if (r < 0) {
        return r;
    }
    const struct store_entry *entry = store_find(s, key);
    if (entry != NULL) {
        actions_value(ret, who, 0, value_of(entry), entry->version);
        return 0;
    }
    if (deadline_ms < 0) {
        char shown[80];
        return err_set(MESH_ENOTFOUND, "store get: there is no key %s", sentence_key(shown, sizeof shown, key));
    }
    const struct store_wait w = { .key = &key, .n = 1, .now_ms = now_ms, .deadline_ms = deadline_ms };
    return waits_add(s, who, &w, true);
}

int store_wait(struct store *s, struct ticket who, const struct store_wait *w, struct actions *ret)
{
    if (w->n > MAX_WAIT_KEYS) {
        return err_set(MESH_ETOOLARGE, "store wait: %zu keys; at most %d are allowed in one call", w->n, MAX_WAIT_KEYS);
    }
    size_t n_absent = 0;
    for (size_t i = 0; i < w->n; i++) {
        int r = store_check_key(w->key[i]);
        if (r < 0) {
            return r;
        }
        n_absent += store_find(s, w->key[i]) == NULL;
    }
    if (n_absent == 0) {
        actions_done(ret, who);
        return 0;
    }
    if (w->deadline_ms < 0) {
        return err_set(MESH_ENOTFOUND, "store wait: %zu of the %zu keys are not there", n_absent, w->n);
    }
    return waits_add(s, who, w, false);
}
