/* client/dtensor/state.c - the session's slot of this layer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"

#define MEMORY_ENTRIES 2048

static void memory_clear(struct dtensor_state *st)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&st->memory, &i)) != NULL;) {
        mem_free(slot->value);
    }
    map_fini(&st->memory);
    st->memory = MAP_INIT;
}

static void state_free(void *arg)
{
    struct dtensor_state *st = arg;
    while (st->meshes) {
        struct mesh_device_mesh *m = st->meshes;
        st->meshes = m->next;
        device_mesh_free(m);
    }
    memory_clear(st);
    pthread_mutex_destroy(&st->lock);
    mem_free(st);
}

static struct dtensor_state *state_new(void)
{
    struct dtensor_state *st = mem_new(struct dtensor_state);
    if (!st) {
        err_no_memory(sizeof *st, "the state of the session's tensors");
        return NULL;
    }
    CHECK(pthread_mutex_init(&st->lock, NULL) == 0);
    st->memory = MAP_INIT;
    return st;
}

struct dtensor_state *dtensor_state(struct mesh_session *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->slot[SESSION_SLOT_DTENSOR].state) {
        s->slot[SESSION_SLOT_DTENSOR].state = state_new();
        s->slot[SESSION_SLOT_DTENSOR].free = state_free;
    }
    struct dtensor_state *st = s->slot[SESSION_SLOT_DTENSOR].state;
    pthread_mutex_unlock(&s->lock);
    return st;
}

bool memory_recall(struct dtensor_state *st, const void *key, size_t key_len, void *ret_value, size_t value_bytes)
{
    pthread_mutex_lock(&st->lock);
    const void *value = map_get(&st->memory, key, key_len);
    if (value) {
        memcpy(ret_value, value, value_bytes);
    }
    pthread_mutex_unlock(&st->lock);
    return value != NULL;
}

void memory_store(struct dtensor_state *st, const void *key, size_t key_len, const void *value, size_t value_bytes)
{
    void *copy = mem_alloc(value_bytes), *old = NULL;
    if (!copy) {
        return; /* a decision not remembered is made again */
    }
    memcpy(copy, value, value_bytes);
    pthread_mutex_lock(&st->lock);
    if (st->memory.n >= MEMORY_ENTRIES) {
        memory_clear(st);
    }
    if (map_set(&st->memory, key, key_len, copy, &old) < 0) {
        old = copy;
    }
    pthread_mutex_unlock(&st->lock);
    mem_free(old);
}
