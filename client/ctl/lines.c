/* client/ctl/lines.c - whole lines from pieces of streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/lines.h"

#include <string.h>

static void put(struct line_sink *sink, const void *data, size_t len)
{
    if (sink->status == 0 && len > 0) {
        sink->status = sink->write(data, len, sink->arg);
    }
}

/* Writes text of this source where the cursor can take it: after a newline and a tag, unless its own line is open. */
static void put_text(struct line_source *s, const void *text, size_t len, bool is_whole)
{
    struct line_sink *sink = s->sink;
    if (sink->open != s) {
        if (sink->open != NULL) {
            put(sink, "\n", 1);
        }
        put(sink, s->tag, strlen(s->tag));
    }
    put(sink, text, len);
    sink->open = is_whole ? NULL : s;
}

void lines_feed(struct line_source *s, const char *data, size_t len)
{
    while (len > 0) {
        const char *newline = memchr(data, '\n', len);
        size_t n = newline != NULL ? (size_t)(newline - data) + 1 : len;
        buf_append(&s->held, data, n);
        if (newline != NULL || s->held.len >= LINES_MAX_HELD_BYTES || s->held.failed) {
            put_text(s, s->held.data, s->held.len, newline != NULL);
            buf_clear(&s->held);
        }
        data += n;
        len -= n;
    }
}

bool lines_has_held(const struct line_source *s)
{
    return s->held.len > 0;
}

void lines_flush(struct line_source *s)
{
    if (s->held.len > 0) {
        put_text(s, s->held.data, s->held.len, false);
        buf_clear(&s->held);
    }
}

void lines_end(struct line_source *s)
{
    if (s->held.len > 0 || s->sink->open == s) {
        put_text(s, s->held.data, s->held.len, false);
        put(s->sink, "\n", 1);
        s->sink->open = NULL;
    }
    buf_fini(&s->held);
}
