/* client/ctl/cell.c - one value and how a table spells it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output.h"

#include <stdio.h>

void cell_set_text(struct cell *c, const char *text)
{
    c->kind = text != NULL && text[0] != '\0' ? CELL_TEXT : CELL_NONE;
    c->text = text;
}

void cell_set_number(struct cell *c, int64_t number)
{
    c->kind = CELL_NUMBER;
    c->number = number;
}

void cell_set_duration(struct cell *c, uint64_t ms)
{
    c->kind = CELL_DURATION;
    c->number = ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

void duration_format(int64_t ms, char *buf, size_t cap)
{
    long long s = ms / 1000;
    if (s < 10) {
        (void)snprintf(buf, cap, "%lld.%llds", s, (long long)(ms % 1000 / 100));
    } else if (s < 60) {
        (void)snprintf(buf, cap, "%llds", s);
    } else if (s < 3600) {
        (void)snprintf(buf, cap, "%lldm%02llds", s / 60, s % 60);
    } else if (s < 86400) {
        (void)snprintf(buf, cap, "%lldh%02lldm", s / 3600, s % 3600 / 60);
    } else {
        (void)snprintf(buf, cap, "%lldd%02lldh", s / 86400, s % 86400 / 3600);
    }
}

static void list_format(const struct cell *c, char *buf, size_t cap)
{
    size_t used = 0;
    size_t i = 0;
    for (; i < c->n && used + 1 < cap; i++) {
        const char *comma = i > 0 ? "," : "";
        int n = c->kind == CELL_NUMBERS ? snprintf(buf + used, cap - used, "%s%u", comma, c->numbers[i])
                                        : snprintf(buf + used, cap - used, "%s%s", comma, c->texts[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if ((used >= cap || i < c->n) && cap > 4) {
        (void)snprintf(buf + cap - 4, 4, "...");
    }
}

void cell_format(const struct cell *c, char *buf, size_t cap)
{
    (void)snprintf(buf, cap, "-");
    switch (c->kind) {
    case CELL_NONE:
        return;
    case CELL_TEXT:
        (void)snprintf(buf, cap, "%s", c->text);
        return;
    case CELL_NUMBER:
        (void)snprintf(buf, cap, "%lld", (long long)c->number);
        return;
    case CELL_DURATION:
        duration_format(c->number, buf, cap);
        return;
    case CELL_NUMBERS:
    case CELL_TEXTS:
        list_format(c, buf, cap);
        return;
    }
}
