/* daemon/store.h - the key-value store of one job: bytes under keys, and who waits for a key.
 *
 * Every change gives its key the next number of one counter, its version.  Who waits is listed under each key it waits
 * for, so a set looks only at the waiters of that key; a wait for several keys is answered when all of them are there at
 * the same time.  A refused call has no effect.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include "base/map.h"
#include "daemon/actions.h"

struct store_link { /* in a ring */
    struct store_link *previous, *next;
};

struct store {
    struct map entries;        /* key -> struct store_entry */
    struct map watched;        /* key -> ring of the waits for it */
    struct store_link waiters; /* ring of all that wait, by arrival */
    size_t n_waiters;
    uint64_t n_bytes;   /* of keys and values */
    uint64_t max_bytes; /* MAX_STORE_BYTES, MAX_STORE_KEYS: lowered by tests */
    size_t max_keys;
    uint64_t version;
    int64_t next_deadline_ms; /* none earlier than this; INT64_MAX: nobody waits */
};

void store_init(struct store *s);
void store_fini(struct store *s);
void store_forget(struct store *s); /* drops all keys; who waits goes on waiting */

int store_set(struct store *s, struct ticket who, struct bytes key, struct bytes value, struct actions *ret);
/* deadline_ms < 0: only what is there now. */
int store_get(struct store *s, struct ticket who, struct bytes key, int64_t now_ms, int64_t deadline_ms,
              struct actions *ret);
/* A value that is not a decimal 64-bit number: MESH_EINVAL; a sum that does not fit: MESH_ERANGE.  An absent key is 0. */
int store_add(struct store *s, struct ticket who, struct bytes key, int64_t delta, struct actions *ret);

struct store_compare_set {
    struct bytes key, desired, expected;
    bool expect_absent;
};
/* MESH_EEXIST with the value that stands, or MESH_ENOTFOUND, when the expectation does not hold. */
int store_compare_set(struct store *s, struct ticket who, const struct store_compare_set *c, struct actions *ret);

struct store_wait {
    const struct bytes *key; /* [n] */
    size_t n;
    int64_t now_ms, deadline_ms; /* < 0: MESH_ENOTFOUND at once when a key is absent */
};
int store_wait(struct store *s, struct ticket who, const struct store_wait *w, struct actions *ret);
int store_delete(struct store *s, struct ticket who, struct bytes key, struct actions *ret);

void store_tick(struct store *s, int64_t now_ms, struct actions *ret); /* answers whose time is over */
/* "key 'go' of the store" when this client waits for one; else "" ; returns buf. */
const char *store_waits_for(const struct store *s, uint64_t client, char *buf, size_t cap);
void store_client_gone(struct store *s, uint64_t client);
void store_stop(struct store *s, const char *why, struct actions *ret); /* MESH_EABORTED to all that wait */

#endif
