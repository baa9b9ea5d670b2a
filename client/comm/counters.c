/* client/comm/counters.c - how many collectives this rank has begun, and how many bytes it has sent.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/debug.h>

#include "base/error.h"
#include "comm/comm.h"

static struct comm *current(void)
{
    struct mesh_session *s = session_require();
    return s != NULL ? comm_of(s) : NULL;
}

static bool is_kind(mesh_comm_kind kind)
{
    return (int)kind > 0 && (int)kind < N_COMM_KINDS;
}

uint64_t mesh_comm_count(mesh_comm_kind kind)
{
    err_enter(__func__);
    struct comm *c = current();
    return c != NULL && is_kind(kind) ? atomic_load_explicit(&c->count[kind], memory_order_relaxed) : 0;
}

uint64_t mesh_comm_bytes(mesh_comm_kind kind)
{
    err_enter(__func__);
    struct comm *c = current();
    return c != NULL && is_kind(kind) ? atomic_load_explicit(&c->bytes[kind], memory_order_relaxed) : 0;
}

void mesh_comm_reset(void)
{
    err_enter(__func__);
    struct comm *c = current();
    for (int i = 0; c != NULL && i < N_COMM_KINDS; i++) {
        atomic_store_explicit(&c->count[i], 0, memory_order_relaxed);
        atomic_store_explicit(&c->bytes[i], 0, memory_order_relaxed);
    }
}
