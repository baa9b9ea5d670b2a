/* client/dtensor/window_places.c - which places of an input a chunk of the result is made of.  Pure functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "dtensor/window.h"

static int64_t divide_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Of the places from first to end, those that there are. */
static struct spans those_of(int64_t first, int64_t end, int64_t extent)
{
    int64_t begin = MIN(MAX(0, first), extent);
    return (struct spans){ begin, MAX(0, MIN(extent, end) - begin), extent };
}

struct spans window_wanted(const struct window *w, int i, int64_t extent, struct chunk out)
{
    int64_t shift = w->in[i].shift, first = out.offset, last = out.offset + out.extent - 1;
    if (out.extent == 0 || extent == 0) {
        return (struct spans){ 0, 0, extent };
    }
    switch (w->in[i].map) {
    case WINDOW_WRAP:
        return (struct spans){ ((first - shift) % extent + extent) % extent, out.extent, extent };
    case WINDOW_MIRROR:
        return (struct spans){ extent - 1 - last, out.extent, extent };
    case WINDOW_TAPS:
        return those_of(first * w->stride - shift, last * w->stride - shift + w->reach + 1, extent);
    case WINDOW_TAPPED: /* place o has the taps o stride - shift to o stride - shift + reach */
        return those_of(-divide_down(w->reach - shift - first, w->stride), divide_down(last + shift, w->stride) + 1,
                        extent);
    default:
        return those_of(first - shift, last - shift + 1, extent);
    }
}

int64_t spans_count(const struct spans *s)
{
    int64_t first = MIN(s->length, s->extent - s->begin);
    return s->length == 0 ? 0 : 1 + (s->length - first + s->extent - 1) / s->extent;
}

struct chunk spans_at(const struct spans *s, int64_t k)
{
    int64_t first = MIN(s->length, s->extent - s->begin);
    if (k == 0) {
        return (struct chunk){ s->begin, first };
    }
    return (struct chunk){ 0, MIN(s->extent, s->length - first - (k - 1) * s->extent) };
}

struct chunk chunk_overlap(struct chunk a, struct chunk b)
{
    int64_t begin = MAX(a.offset, b.offset), end = MIN(a.offset + a.extent, b.offset + b.extent);
    return (struct chunk){ begin, MAX(0, end - begin) };
}

int64_t spans_overlap(const struct spans *s, struct chunk held)
{
    int64_t n = 0;
    for (int64_t k = 0; k < spans_count(s); k++) {
        n += chunk_overlap(spans_at(s, k), held).extent;
    }
    return n;
}
