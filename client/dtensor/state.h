/* client/dtensor/state.h - what this layer keeps per session: its meshes, its random stream, its remembered decisions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_STATE_H
#define DTENSOR_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "dtensor/device_mesh.h"

struct dtensor_state {
    pthread_mutex_t lock;            /* guards meshes and memory: several threads of a rank may be attached */
    struct mesh_device_mesh *meshes; /* all of the session, owned */
    int n_made;                      /* how many mesh_init_device_mesh() calls began */
    int n_seeded;                    /* how many mesh_manual_seed() calls began */
    struct map memory;               /* decisions by signature; values owned */
    _Atomic uint64_t seed, calls;
};

/* Made at first use, freed with the session.  NULL: error set. */
struct dtensor_state *dtensor_state(struct mesh_session *s);

/* A decision is a pure function of its signature, so it may be forgotten at any time: when the memory is full all of it is.
 * Copies out; false: not remembered. */
bool memory_recall(struct dtensor_state *st, const void *key, size_t key_len, void *ret_value, size_t value_bytes);
void memory_store(struct dtensor_state *st, const void *key, size_t key_len, const void *value, size_t value_bytes);

#endif
