/* proto/base/map.c - linear probing; a removal moves later slots back, so there are no tombstones.
 *
 * Invariant: from the slot a hash points to, up to the slot that holds its key, no slot is empty.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"

#define MIN_CAP 16

static uint64_t mix(uint64_t h)
{
    /* Odd multipliers and shifts: every bit of h reaches the low bits, which pick the slot. */
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const uint8_t *bytes = data;
    uint64_t h = mix(seed + 0x2545f4914f6cdd1du);
    size_t total = len;
    for (; len >= 8; bytes += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        h = mix(h ^ word);
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < len; i++) {
        tail |= (uint64_t)bytes[i] << (8 * i);
    }
    return mix(mix(h ^ tail) + total); /* the length comes last, where no data can undo it */
}

/* The slot that holds the key, or the empty one where it would go.  Needs cap > n. */
static struct map_slot *find(const struct map *m, uint64_t hash, const void *key, size_t key_len)
{
    size_t i = (size_t)hash & (m->cap - 1);
    for (;; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        bool is_same = s->hash == hash && s->key_len == key_len;
        if (!s->key || (is_same && (key_len == 0 || memcmp(s->key, key, key_len) == 0))) {
            return s;
        }
    }
}

static int grow(struct map *m)
{
    size_t cap = m->cap ? m->cap * 2 : MIN_CAP;
    if (cap > SIZE_MAX / 2 / sizeof(struct map_slot)) {
        return err_no_memory(SIZE_MAX, "a map");
    }
    struct map bigger = { .slots = mem_zalloc(cap * sizeof(struct map_slot)), .n = m->n, .cap = cap };
    if (!bigger.slots) {
        return err_no_memory(cap * sizeof(struct map_slot), "a map");
    }
    for (size_t i = 0; i < m->cap; i++) {
        const struct map_slot *s = &m->slots[i];
        if (s->key) {
            *find(&bigger, s->hash, s->key, s->key_len) = *s;
        }
    }
    mem_free(m->slots);
    *m = bigger;
    return 0;
}

void *map_get(const struct map *m, const void *key, size_t key_len)
{
    return m->n ? find(m, hash_bytes(key, key_len, 0), key, key_len)->value : NULL;
}

int map_set(struct map *m, const void *key, size_t key_len, void *value, void **ret_old)
{
    PRE(value != NULL);
    uint64_t hash = hash_bytes(key, key_len, 0);
    if (m->n + 1 > m->cap / 4 * 3) {
        int r = grow(m);
        if (r < 0) {
            return r;
        }
    }
    struct map_slot *s = find(m, hash, key, key_len);
    void *old = s->value;
    if (!s->key) {
        uint8_t *copy = mem_alloc(key_len);
        if (!copy) {
            return err_no_memory(key_len, "a key of a map");
        }
        if (key_len > 0) {
            memcpy(copy, key, key_len);
        }
        *s = (struct map_slot){ .hash = hash, .key = copy, .key_len = key_len };
        m->n++;
    }
    s->value = value;
    if (ret_old) {
        *ret_old = old;
    }
    return 0;
}

/* Fills the hole at i with the next slot that may stand there, and so on until a slot is empty. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = (size_t)m->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){ .key = NULL };
}

void *map_remove(struct map *m, const void *key, size_t key_len)
{
    if (m->n == 0) {
        return NULL;
    }
    struct map_slot *s = find(m, hash_bytes(key, key_len, 0), key, key_len);
    if (!s->key) {
        return NULL;
    }
    void *value = s->value;
    mem_free(s->key);
    close_hole(m, (size_t)(s - m->slots));
    m->n--;
    return value;
}

struct map_slot *map_next(const struct map *m, size_t *i)
{
    while (*i < m->cap) {
        struct map_slot *s = &m->slots[(*i)++];
        if (s->key) {
            return s;
        }
    }
    return NULL;
}

void map_fini(struct map *m)
{
    if (!m) {
        return;
    }
    for (size_t i = 0; i < m->cap; i++) {
        mem_free(m->slots[i].key);
    }
    mem_free(m->slots);
    *m = MAP_INIT;
}
