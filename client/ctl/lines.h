/* client/ctl/lines.h - merges the output of several processes line by line, each line tagged.
 *
 * A line is written when it is complete.  What stays without a newline is written by lines_flush(), which the owner calls a
 * moment later (so that "loading... " is seen): the line then stays open, more of it is simply appended; when another
 * process has something to say first, a newline closes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_LINES_H
#define CTL_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Longer unfinished lines are written in pieces. */
#define LINES_MAX_HELD_BYTES ((size_t)64 << 10)

typedef int (*lines_write_fn)(const void *data, size_t len,
                              void *arg); /* 0, or a status: nothing more will be written */

struct line_source;

struct line_sink {
    lines_write_fn write;
    void *arg;
    const struct line_source *open; /* whose unfinished line the cursor stands in; NULL: at the beginning of a line */
    int status;                     /* of the first write that failed */
};

struct line_source {
    struct line_sink *sink; /* borrowed */
    char tag[48];           /* "[2] ", possibly with colour */
    struct buf held;        /* an unfinished line */
};

void lines_feed(struct line_source *s, const char *data, size_t len);
bool lines_has_held(const struct line_source *s);
void lines_flush(struct line_source *s);
void lines_end(struct line_source *s); /* the stream ended: an unfinished line gets its newline; frees what was held */

#endif
