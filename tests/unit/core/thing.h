/* tests/unit/core/thing.h - an object that writes down when it is settled and freed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_CORE_THING_H
#define UNIT_CORE_THING_H

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "core/object.h"

/* What happened, in order: "a" freed, "a?" settled. */
static char events[256];

struct thing {
    struct object object;
    char name;
    int settle_status;
};

static inline void note(char name, const char *mark)
{
    size_t length = strlen(events);
    snprintf(events + length, sizeof events - length, "%c%s ", name, mark);
}

static inline void thing_free(struct object *o)
{
    struct thing *t = container_of(o, struct thing, object);
    note(t->name, "");
    mem_free(t);
}

static inline int thing_settle(struct object *o)
{
    struct thing *t = container_of(o, struct thing, object);
    note(t->name, "?");
    return t->settle_status == 0 ? 0 : err_set(t->settle_status, "work %c did not end", t->name);
}

static const struct object_class plain_class = { .name = "thing", .free = thing_free };
static const struct object_class work_class = { .name = "work", .free = thing_free, .settle = thing_settle };

static inline struct thing *thing_new(char name)
{
    struct thing *t = mem_new(struct thing);
    t->name = name;
    object_init(&t->object, &plain_class);
    return t;
}

static inline struct thing *work_new(char name, int settle_status)
{
    struct thing *t = mem_new(struct thing);
    t->name = name;
    t->settle_status = settle_status;
    object_init(&t->object, &work_class);
    return t;
}

#endif
