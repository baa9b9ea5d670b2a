/* client/dtensor/stream.c - the elements of a part in their order, as runs of row-major indices of the whole tensor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/stream.h"

#include "base/util.h"

static void enter_run(struct stream *s)
{
    int64_t stride = s->inner;
    s->at = 0;
    s->n = s->inner;
    for (int d = s->last; d >= 0; d--) {
        struct chunk c = places_run(&s->places[d], s->index[d]);
        s->at += c.offset * stride;
        stride *= s->shape.dim[d];
        if (d == s->last) {
            s->extent = c.extent;
            s->n = c.extent * s->inner;
        }
    }
}

void stream_first(struct stream *s, mesh_shape global, const int *mesh_size, const int *coordinate,
                  const mesh_placements *p)
{
    *s = (struct stream){ .is_some = true, .shape = global, .last = global.ndim - 1, .inner = 1 };
    for (int d = 0; d < global.ndim; d++) {
        s->places[d] = places_of(global.dim[d], d, mesh_size, coordinate, p);
        s->is_some = s->is_some && s->places[d].extent > 0;
    }
    while (s->last >= 0 && s->places[s->last].extent == global.dim[s->last]) {
        s->inner *= global.dim[s->last--];
    }
    if (s->is_some) {
        enter_run(s);
    }
}

static void next_run(struct stream *s)
{
    int d = s->last;
    if (d >= 0) {
        s->index[d] += s->extent;
    }
    while (d >= 0 && s->index[d] == s->places[d].extent) {
        s->index[d] = 0;
        if (--d >= 0) {
            s->index[d]++;
        }
    }
    s->is_some = d >= 0;
    if (s->is_some) {
        enter_run(s);
    }
}

void stream_skip(struct stream *s, int64_t n)
{
    s->at += n;
    s->n -= n;
    s->local += n;
    if (s->n == 0) {
        next_run(s);
    }
}

int64_t streams_meet(struct stream *a, struct stream *b)
{
    while (a->is_some && b->is_some) {
        struct stream *behind = a->at < b->at ? a : b;
        int64_t gap = a->at < b->at ? b->at - a->at : a->at - b->at;
        if (gap == 0) {
            return MIN(a->n, b->n);
        }
        stream_skip(behind, MIN(gap, behind->n));
    }
    return 0;
}

bool streams_are_equal(struct stream *a, struct stream *b)
{
    while (a->is_some && b->is_some && a->at == b->at) {
        int64_t n = MIN(a->n, b->n);
        stream_skip(a, n);
        stream_skip(b, n);
    }
    return !a->is_some && !b->is_some;
}
