/* tests/unit/session/fake_meshd.h - a daemon of a few lines: a listener on its own loop that answers as each test says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_SESSION_FAKE_MESHD_H
#define UNIT_SESSION_FAKE_MESHD_H

#include "wire/codec.h"

struct fake_meshd;

/* Every message that arrives, on the fake's loop; the test sends what it likes with fake_answer() and fake_notice(). */
typedef void (*fake_fn)(struct fake_meshd *f, const Mesh__V1__ClientMessage *m);

struct fake_meshd *fake_start(fake_fn fn);
void fake_stop(struct fake_meshd *f);
const char *fake_address(const struct fake_meshd *f);

/* From the fake's loop: */
void fake_answer(struct fake_meshd *f, uint64_t request, int status, const char *error); /* without a body */
void fake_send(struct fake_meshd *f, Mesh__V1__DaemonMessage *m);
void fake_notice(struct fake_meshd *f, const Mesh__V1__Notice *n);
void fake_hello(struct fake_meshd *f, uint64_t request, uint32_t protocol);
/* Answers a join as rank `rank` of `size` on hosts node0, node1, ... */
void fake_joined(struct fake_meshd *f, uint64_t request, uint32_t rank, uint32_t size);
void fake_send_junk(struct fake_meshd *f);
void fake_hang_up(struct fake_meshd *f);

/* From any thread: the same on the fake's loop. */
void fake_do(struct fake_meshd *f, void (*fn)(void *arg), void *arg);

#endif
