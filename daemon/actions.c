/* daemon/actions.c - the list of answers and notices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/actions.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct action *add(struct actions *a, enum action_kind kind, struct ticket to)
{
    struct action *action = VEC_PUSH(&a->list);
    if (action == NULL) {
        a->failed = true;
        return NULL;
    }
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->to = to;
    return action;
}

void actions_done(struct actions *a, struct ticket to)
{
    add(a, ACTION_ANSWER, to);
}

void actions_error(struct actions *a, struct ticket to, int status, const char *format, ...)
{
    struct action *action = add(a, ACTION_ANSWER, to);
    if (action == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(action->sentence, sizeof action->sentence, format, args);
    va_end(args);
    action->status = status;
}

void actions_value(struct actions *a, struct ticket to, int status, struct bytes value, uint64_t version)
{
    struct action *action = add(a, ACTION_VALUE, to);
    if (action != NULL) {
        action->status = status;
        action->value = value;
        action->version = version;
    }
}

void actions_number(struct actions *a, struct ticket to, int64_t number)
{
    struct action *action = add(a, ACTION_NUMBER, to);
    if (action != NULL) {
        action->number = number;
    }
}

void actions_joined(struct actions *a, struct ticket to, uint32_t rank)
{
    struct action *action = add(a, ACTION_JOINED, to);
    if (action != NULL) {
        action->rank = rank;
    }
}

void actions_missing(struct actions *a, struct ticket to, struct bytes *missing, size_t n, void *owned)
{
    struct action *action = add(a, ACTION_VALUE, to);
    if (action == NULL) {
        mem_free(owned);
        return;
    }
    action->status = MESH_ETIMEDOUT;
    action->missing = missing;
    action->n_missing = n;
    action->owned = owned;
}

void actions_notice(struct actions *a, struct ticket to, const struct notice *n, const char *sentence)
{
    struct action *action = add(a, ACTION_NOTICE, to);
    if (action != NULL) {
        action->notice = *n;
        snprintf(action->sentence, sizeof action->sentence, "%s", sentence);
    }
}

void actions_say(struct actions *a, const char *format, ...)
{
    if (a->failed || a->list.n == 0) {
        return;
    }
    struct action *last = &a->list.at[a->list.n - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(last->sentence, sizeof last->sentence, format, args);
    va_end(args);
}

void actions_clear(struct actions *a)
{
    for (size_t i = 0; i < a->list.n; i++) {
        mem_free(a->list.at[i].owned);
    }
    a->list.n = 0;
    a->failed = false;
}

void actions_fini(struct actions *a)
{
    actions_clear(a);
    VEC_FINI(&a->list);
}
