/* client/comm/link_broken.c - stands for a link that could not be made: every use gives the reason.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/link.h"

struct broken_link {
    struct link base;
    int status;
    char sentence[200];
};

static int64_t broken_use(struct link *l, const struct iovec *parts, int n)
{
    (void)parts, (void)n;
    const struct broken_link *b = container_of(l, struct broken_link, base);
    return err_set(b->status, "%s", b->sentence);
}

static int64_t broken_peek(struct link *l, void *bytes, size_t n)
{
    (void)l, (void)bytes, (void)n;
    return 0;
}

static bool broken_arm(struct link *l, bool want_read, bool want_write)
{
    (void)l, (void)want_read, (void)want_write;
    return false; /* news about the peer, or the clock, is all there is to wait for */
}

static void broken_close(struct link *l)
{
    close(l->fd);
    (void)mem_free(container_of(l, struct broken_link, base));
}

static const struct link_ops broken_ops = {
    .send = broken_use,
    .receive = broken_use,
    .peek = broken_peek,
    .arm = broken_arm,
    .close = broken_close,
};

struct link *link_broken_new(int status, const char *sentence)
{
    struct broken_link *b = mem_new(struct broken_link);
    if (b == NULL) {
        return NULL;
    }
    b->base = (struct link){ .ops = &broken_ops, .kind = LINK_BROKEN, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    b->status = status;
    snprintf(b->sentence, sizeof b->sentence, "%s", sentence);
    return &b->base;
}
