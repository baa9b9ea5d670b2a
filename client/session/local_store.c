/* client/session/local_store.c - keys and values of a world inside this process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/local_store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "session/store_check.h"

struct entry {
    size_t len;
    uint8_t value[];
};

void local_store_fini(struct local_store *s)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->entries, &i)) != NULL;) {
        mem_free(slot->value);
    }
    map_fini(&s->entries);
}

static struct entry *find(const struct local_store *s, struct bytes key)
{
    return map_get(&s->entries, key.data, key.len);
}

bool local_store_has(const struct local_store *s, struct bytes key)
{
    return find(s, key) != NULL;
}

static int copy_out(const struct entry *e, struct buf *ret_value)
{
    buf_clear(ret_value);
    buf_append(ret_value, e->value, e->len);
    return buf_status(ret_value);
}

static int not_found(const char *call, struct bytes key)
{
    char text[STORE_KEY_TEXT_BYTES];
    return err_set(MESH_ENOTFOUND, "store %s: there is no key %s", call,
                   text_quote(key.data, key.len, text, sizeof text));
}

int local_store_get(const struct local_store *s, struct bytes key, struct buf *ret_value)
{
    int r = store_key_check(key.data, key.len);
    if (r < 0) {
        return r;
    }
    const struct entry *e = find(s, key);
    return e != NULL ? copy_out(e, ret_value) : not_found("get", key);
}

int local_store_set(struct local_store *s, struct bytes key, struct bytes value)
{
    int r = store_key_check(key.data, key.len);
    if (r == 0) {
        r = store_value_check(key.data, key.len, value.len);
    }
    if (r < 0) {
        return r;
    }
    struct entry *e = mem_alloc(sizeof *e + value.len);
    if (e == NULL) {
        return err_no_memory(sizeof *e + value.len, "a value in the store");
    }
    e->len = value.len;
    if (value.len > 0) {
        memcpy(e->value, value.data, value.len);
    }
    void *old = NULL;
    r = map_set(&s->entries, key.data, key.len, e, &old);
    mem_free(r < 0 ? e : old);
    return r;
}

/* Decimal digits after an optional minus, all of the value, within 64 bits. */
static bool parse_number(const struct entry *e, int64_t *ret_number)
{
    char text[32];
    size_t first = e->len > 0 && e->value[0] == '-' ? 1 : 0;
    if (e->len == first || e->len >= sizeof text) {
        return false;
    }
    for (size_t i = first; i < e->len; i++) {
        if (!isdigit(e->value[i])) {
            return false;
        }
    }
    memcpy(text, e->value, e->len);
    text[e->len] = 0;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno != 0) {
        return false;
    }
    *ret_number = number;
    return true;
}

static int sum(struct bytes key, const struct entry *old, int64_t delta, int64_t *ret_sum)
{
    char key_text[STORE_KEY_TEXT_BYTES], value_text[60];
    int64_t before = 0, after;
    text_quote(key.data, key.len, key_text, sizeof key_text);
    if (old != NULL && !parse_number(old, &before)) {
        return err_set(MESH_EINVAL, "store add: the value of %s, %s, is not a 64-bit decimal number", key_text,
                       text_quote(old->value, old->len, value_text, sizeof value_text));
    }
    if (__builtin_add_overflow(before, delta, &after)) {
        return err_set(MESH_ERANGE, "store add: %s is %" PRId64 "; adding %" PRId64 " does not fit 64 bits", key_text,
                       before, delta);
    }
    *ret_sum = after;
    return 0;
}

int local_store_add(struct local_store *s, struct bytes key, int64_t delta, int64_t *ret_value)
{
    int64_t number = 0;
    int r = store_key_check(key.data, key.len);
    if (r == 0) {
        r = sum(key, find(s, key), delta, &number);
    }
    if (r < 0) {
        return r;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, number);
    r = local_store_set(s, key, (struct bytes){ .data = text, .len = (size_t)len });
    if (r == 0) {
        *ret_value = number;
    }
    return r;
}

static bool holds(const struct entry *e, struct bytes expected)
{
    return e->len == expected.len && (e->len == 0 || memcmp(e->value, expected.data, e->len) == 0);
}

int local_store_compare_set(struct local_store *s, const struct store_swap *swap, struct buf *ret_value)
{
    struct bytes key = swap->key;
    int r = store_key_check(key.data, key.len);
    if (r < 0) {
        return r;
    }
    const struct entry *e = find(s, key);
    if (e == NULL && !swap->expect_absent) {
        return not_found("compare_set", key);
    }
    if (e != NULL && (swap->expect_absent || !holds(e, swap->expected))) {
        char text[STORE_KEY_TEXT_BYTES];
        text_quote(key.data, key.len, text, sizeof text);
        r = copy_out(e, ret_value);
        return r < 0 ? r
                     : err_set(MESH_EEXIST, "store compare_set: %s %s", text,
                               swap->expect_absent ? "exists already" : "has another value than expected");
    }
    r = local_store_set(s, key, swap->desired);
    return r < 0 ? r : copy_out(find(s, key), ret_value);
}

int local_store_delete(struct local_store *s, struct bytes key)
{
    int r = store_key_check(key.data, key.len);
    if (r < 0) {
        return r;
    }
    void *e = map_remove(&s->entries, key.data, key.len);
    mem_free(e);
    return e != NULL ? 0 : not_found("delete", key);
}
