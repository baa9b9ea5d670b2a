/* tests/unit/wire/wire_fixture.c - see the header.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "base/map.h"

#define GUARD_MS 10000

uint64_t checksum_add(uint64_t checksum, const void *data, size_t len)
{
    return hash_bytes(data, len, checksum);
}

static void on_frame(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct side *s = arg;
    ck_assert_ptr_eq(c, s->conn);
    ck_assert_int_eq(s->n_closed, 0);
    s->n_frames++;
    s->n_bytes += header->length;
    s->checksum = checksum_add(s->checksum, payload, header->length);
    if (s->n_frames == s->close_after) {
        conn_close(c);
    }
}

static void on_closed(struct conn *c, int status, const char *sentence, void *arg)
{
    struct side *s = arg;
    ck_assert_ptr_eq(c, s->conn);
    s->conn = NULL;
    s->n_closed++;
    s->status = status;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    if (--s->world->n_open == 0) {
        loop_stop(s->world->loop);
        s->world->guard = loop_timer_stop(s->world->guard);
    }
}

static const struct conn_events events = { .frame = on_frame, .closed = on_closed };

static void guard_fired(void *arg)
{
    (void)arg;
    ck_abort_msg("the test did not end within %d ms", GUARD_MS);
}

void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->loop = loop_new();
    ck_assert_ptr_nonnull(w->loop);
    w->guard = loop_timer_start(w->loop, GUARD_MS, 0, guard_fired, w);
}

void world_use(struct world *w, struct side *s, struct conn *c)
{
    ck_assert_ptr_nonnull(c);
    s->world = w;
    s->conn = c;
    w->n_open++;
    conn_set_events(c, &events, s);
}

int world_connect_a(struct world *w)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    world_use(w, &w->a, conn_open(w->loop, fds[0]));
    return fds[1];
}

void world_connect(struct world *w)
{
    int fd = world_connect_a(w);
    world_use(w, &w->b, conn_open(w->loop, fd));
}

void world_run(struct world *w)
{
    ck_assert_int_eq(loop_run(w->loop), 0);
}

void world_fini(struct world *w)
{
    w->loop = loop_free(w->loop);
}

void folder_make(char ret_path[64])
{
    snprintf(ret_path, 64, "/tmp/mesh-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ret_path));
}

void address_make(struct address *ret_address, char ret_folder[64])
{
    folder_make(ret_folder);
    *ret_address = (struct address){ .is_unix = true };
    snprintf(ret_address->path, sizeof ret_address->path, "%s/s", ret_folder);
}

void folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char name[512];
    while (folder && (entry = readdir(folder)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        unlink(name);
    }
    if (folder) {
        closedir(folder);
    }
    ck_assert_int_eq(rmdir(path), 0);
}
