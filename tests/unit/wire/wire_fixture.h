/* tests/unit/wire/wire_fixture.h - two ends of a connection on one loop, which ends when both are closed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_FIXTURE_H
#define WIRE_FIXTURE_H

#include "wire/conn.h"
#include "wire/dial.h"

struct world;

struct side {
    struct world *world;
    struct conn *conn; /* NULL once closed */
    int n_frames, n_closed;
    size_t n_bytes;
    uint64_t checksum; /* of all payloads in order */
    int status;        /* of closed() */
    char sentence[256];
    int close_after; /* frames; 0: never */
};

struct world {
    struct loop *loop;
    struct loop_timer *guard;
    int n_open;
    struct side a, b;
};

void world_init(struct world *w);
void world_connect(struct world *w); /* a and b over a socketpair, listening to their events */
void world_use(struct world *w, struct side *s, struct conn *c);
/* One side only; the other end of the socketpair is returned. */
int world_connect_a(struct world *w);
void world_run(struct world *w); /* until all sides are closed, 10 s at most */
void world_fini(struct world *w);

uint64_t checksum_add(uint64_t checksum, const void *data, size_t len);

/* "/tmp/mesh-test-XXXXXX", removed by folder_remove() with what is in it. */
void folder_make(char ret_path[64]);
void folder_remove(const char *path);
/* Of a unix socket in a folder that is made for it. */
void address_make(struct address *ret_address, char ret_folder[64]);

#endif
