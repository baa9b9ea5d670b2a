/* client/session/local_calls.c - what a rank of a world inside this process asks of it after joining.
 *
 * Every call takes the world's lock, looks, and when what it wants is not there yet, waits for a change and looks
 * again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/local_world.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "session/store_check.h"

/* Meetings --------------------------------------------------------------------------------------------------------- */

static int check_members(const struct local_world *w, const struct meeting_call *call)
{
    for (int i = 0; i < call->n; i++) {
        int rank = call->ranks[i];
        if (rank < 0 || rank >= w->size) {
            return err_set(MESH_EINVAL, "%s: rank %d is not in the job, which has %d ranks", call->name, rank, w->size);
        }
        enum member_state state = w->member[rank].state;
        if (state == MEMBER_LEFT || state == MEMBER_DEAD) {
            char sentence[120];
            local_describe_gone(rank, state, sentence, sizeof sentence);
            return err_set_about(MESH_EPEER, rank, "%.40s: %s", call->name, sentence);
        }
    }
    return 0;
}

static int wait_until_over(struct local_control *l, struct meeting *m, int64_t timeout_ms)
{
    int64_t deadline_ms = deadline_in(timeout_ms);
    while (!m->is_over) {
        int r = local_wait(l, deadline_ms);
        if (r == 0 || m->is_over) {
            continue;
        }
        if (r == MESH_ETIMEDOUT) {
            meeting_time_out(&l->world->meetings, m, MAX(timeout_ms, 0));
        } else {
            meeting_give_up(&l->world->meetings, m, err_last());
        }
        local_changed(l->world);
    }
    int r = meeting_leave(&l->world->meetings, m);
    bool is_aborted = atomic_load_explicit(&l->base.session->is_aborted, memory_order_acquire);
    return r < 0 && is_aborted ? session_check(l->base.session, 0, NULL, 0) : r; /* the abort is the cause */
}

static int meet(struct control *c, struct meeting_call *call, int64_t timeout_ms)
{
    struct local_control *l = local_enter(c);
    struct local_world *w = l->world;
    call->self = l->rank;
    if (call->n == 0) {
        call->ranks = w->all_ranks;
        call->n = w->size;
    }
    struct meeting *m = NULL;
    int r = local_check_usable(l);
    if (r == 0 && !meetings_have_failed(&w->meetings, call)) {
        r = check_members(w, call);
    }
    if (r == 0) {
        r = meeting_enter(&w->meetings, call, &m);
        local_changed(w); /* it may be over, also by an error of ours */
    }
    return local_exit(l, r < 0 ? r : wait_until_over(l, m, timeout_ms));
}

int local_agree(struct control *c, const char *key, const int *ranks, int n, const char *descriptor, int64_t timeout_ms)
{
    struct meeting_call call = {
        .kind = MEETING_AGREEMENT, .name = key, .ranks = ranks, .n = n, .descriptor = descriptor
    };
    return meet(c, &call, timeout_ms);
}

int local_barrier(struct control *c, const char *name, const int *ranks, int n, int64_t timeout_ms)
{
    struct meeting_call call = { .kind = MEETING_BARRIER, .name = name, .ranks = ranks, .n = n };
    return meet(c, &call, timeout_ms);
}

/* The store -------------------------------------------------------------------------------------------------------- */

int local_set(struct control *c, struct bytes key, struct bytes value)
{
    struct local_control *l = local_enter(c);
    int r = local_check_usable(l);
    if (r == 0) {
        r = local_store_set(&l->world->store, key, value);
        local_changed(l->world);
    }
    return local_exit(l, r);
}

int local_get(struct control *c, struct bytes key, int64_t timeout_ms, struct buf *ret_value)
{
    struct local_control *l = local_enter(c);
    int64_t deadline_ms = deadline_in(timeout_ms);
    int r = local_check_usable(l);
    while (r == 0) {
        r = local_store_get(&l->world->store, key, ret_value);
        if (r != MESH_ENOTFOUND || timeout_ms < 0) {
            return local_exit(l, r);
        }
        r = local_wait(l, deadline_ms);
    }
    if (r == MESH_ETIMEDOUT) {
        char text[STORE_KEY_TEXT_BYTES];
        err_set(r, "store get: %s did not appear within %" PRId64 " ms",
                text_quote(key.data, key.len, text, sizeof text), timeout_ms);
    }
    return local_exit(l, r);
}

int local_add(struct control *c, struct bytes key, int64_t delta, int64_t *ret_value)
{
    struct local_control *l = local_enter(c);
    int r = local_check_usable(l);
    if (r == 0) {
        r = local_store_add(&l->world->store, key, delta, ret_value);
        local_changed(l->world);
    }
    return local_exit(l, r);
}

int local_compare_set(struct control *c, const struct store_swap *swap, struct buf *ret_value)
{
    struct local_control *l = local_enter(c);
    int r = local_check_usable(l);
    if (r == 0) {
        r = local_store_compare_set(&l->world->store, swap, ret_value);
        local_changed(l->world);
    }
    return local_exit(l, r);
}

static int check_keys(const struct bytes *keys, size_t n)
{
    int r = n <= STORE_MAX_WAIT_KEYS
                ? 0
                : err_set(MESH_ETOOLARGE, "store wait: %zu keys; at most %d are allowed in one call", n,
                          STORE_MAX_WAIT_KEYS);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = store_key_check(keys[i].data, keys[i].len);
    }
    return r;
}

static size_t count_absent(const struct local_store *s, const struct bytes *keys, size_t n, size_t *ret_first)
{
    size_t n_absent = 0;
    for (size_t i = n; i-- > 0;) {
        if (!local_store_has(s, keys[i])) {
            n_absent++;
            *ret_first = i;
        }
    }
    return n_absent;
}

static int keys_absent(int status, const struct bytes *first, size_t n_absent, int64_t timeout_ms)
{
    char text[STORE_KEY_TEXT_BYTES], more[40] = "", limit[40] = "";
    text_quote(first->data, first->len, text, sizeof text);
    if (n_absent > 1) {
        snprintf(more, sizeof more, " and %zu more", n_absent - 1);
    }
    if (status == MESH_ETIMEDOUT) {
        snprintf(limit, sizeof limit, " within %" PRId64 " ms", timeout_ms);
    }
    return err_set(status, "store wait: %s%s %s%s", text, more,
                   status == MESH_ETIMEDOUT ? "did not appear" : "not there", limit);
}

/* All keys are there at the same moment, or the deadline passes. */
int local_wait_for_keys(struct control *c, const struct bytes *keys, size_t n, int64_t timeout_ms)
{
    struct local_control *l = local_enter(c);
    int64_t deadline_ms = deadline_in(timeout_ms);
    size_t first = 0, n_absent = 0;
    int r = local_check_usable(l);
    if (r == 0) {
        r = check_keys(keys, n);
    }
    while (r == 0) {
        n_absent = count_absent(&l->world->store, keys, n, &first);
        if (n_absent == 0) {
            break;
        }
        r = timeout_ms < 0 ? MESH_ENOTFOUND : local_wait(l, deadline_ms);
    }
    if (r == MESH_ETIMEDOUT || r == MESH_ENOTFOUND) {
        r = keys_absent(r, &keys[first], n_absent, timeout_ms);
    }
    return local_exit(l, r);
}

int local_delete(struct control *c, struct bytes key)
{
    struct local_control *l = local_enter(c);
    int r = local_check_usable(l);
    if (r == 0) {
        r = local_store_delete(&l->world->store, key);
    }
    return local_exit(l, r);
}
