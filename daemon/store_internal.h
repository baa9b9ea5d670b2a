/* daemon/store_internal.h - between store.c (keys and values) and store_wait.c (who waits for them).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STORE_INTERNAL_H
#define DAEMON_STORE_INTERNAL_H

#include "daemon/store.h"

struct store_entry {
    uint64_t version;
    size_t len;
    uint8_t value[];
};

static inline void ring_init(struct store_link *ring)
{
    ring->previous = ring->next = ring;
}

struct store_entry *store_find(const struct store *s, struct bytes key);
int store_check_key(struct bytes key);

/* The keys were checked, and not all of them are there.  wants_value: one key, answered with its value. */
int waits_add(struct store *s, struct ticket who, const struct store_wait *w, bool wants_value);
void waits_key_created(struct store *s, struct bytes key, struct actions *ret);
void waits_key_deleted(struct store *s, struct bytes key);
void waits_free(struct store *s);

#endif
