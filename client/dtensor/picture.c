/* client/dtensor/picture.c - finds the grid that a layout cuts a tensor into, and who holds each cell.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

static struct places places_at(const mesh_dtensor *x, int place, int d)
{
    int c[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(x->mesh, place, c);
    return places_of(x->shape.dim[d], d, x->mesh->size, c, &x->placements);
}

static int by_offset(const void *a, const void *b)
{
    int64_t x = ((const struct chunk *)a)->offset, y = ((const struct chunk *)b)->offset;
    return (x > y) - (x < y);
}

/* Notes the runs of every rank that are not there yet; c->at NULL: only counts, each as often as it is held. */
static void find_runs(const mesh_dtensor *x, int d, struct cuts *c)
{
    for (int k = 0; k < x->mesh->n_ranks; k++) {
        struct places held = places_at(x, k, d);
        for (int64_t at = 0; at < held.extent;) {
            struct chunk run = places_run(&held, at);
            bool is_new = true;
            for (int i = 0; c->at && is_new && i < c->n; i++) {
                is_new = c->at[i].offset != run.offset;
            }
            if (c->at && is_new) {
                c->at[c->n] = run;
            }
            c->n += is_new;
            at += run.extent;
        }
    }
}

/* The cuts of a dim do not depend on the other dims, so those of all ranks make up a grid. */
static int find_cuts(const mesh_dtensor *x, int d, struct cuts *ret_cuts)
{
    struct cuts c = { .n = 0 };
    find_runs(x, d, &c);
    size_t most = (size_t)c.n;
    c = (struct cuts){ .at = mem_new_array(struct chunk, most) };
    if (!c.at) {
        return err_no_memory(most * sizeof(struct chunk), "a picture");
    }
    find_runs(x, d, &c);
    qsort(c.at, (size_t)c.n, sizeof c.at[0], by_offset);
    *ret_cuts = c;
    return 0;
}

int picture_init(struct picture *p, const mesh_dtensor *x)
{
    int r = 0;
    *p = (struct picture){ .tensor = x };
    for (int d = 0; r == 0 && d < x->shape.ndim; d++) {
        r = find_cuts(x, d, &p->cuts[d]);
    }
    if (r < 0) {
        picture_fini(p);
    }
    return r;
}

void picture_fini(struct picture *p)
{
    for (int d = 0; d < MESH_MAX_NDIM; d++) {
        mem_free(p->cuts[d].at);
        p->cuts[d].at = NULL;
    }
}

void text_add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t at = t->n < t->cap ? t->n : t->cap;
    int n = vsnprintf(t->cap > at ? t->buf + at : NULL, t->cap - at, format, args);
    va_end(args);
    t->n += n > 0 ? (size_t)n : 0;
}

static bool holds(const struct picture *p, int place, const int *cell)
{
    for (int d = 0; d < p->tensor->shape.ndim; d++) {
        struct places held = places_at(p->tensor, place, d);
        if (places_find(&held, p->cuts[d].at[cell[d]].offset) < 0) {
            return false;
        }
    }
    return true;
}

/* They hold parts of one sum: their coordinates differ along pending dims only. */
static bool are_parts(const mesh_dtensor *x, int a, int b)
{
    int ca[MESH_MAX_MESH_NDIM], cb[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(x->mesh, a, ca);
    mesh_coordinate_of(x->mesh, b, cb);
    for (int i = 0; i < x->mesh->ndim; i++) {
        if (ca[i] != cb[i] && x->placements.at[i].kind != MESH_IS_PARTIAL) {
            return false;
        }
    }
    return true;
}

static bool is_first_part(const struct picture *p, int place)
{
    for (int k = 0; k < place; k++) {
        if (are_parts(p->tensor, k, place)) {
            return false;
        }
    }
    return true;
}

void picture_add_ranks(const struct picture *p, const int *cell, struct text *t)
{
    const mesh_device_mesh *m = p->tensor->mesh;
    const char *comma = "";
    for (int k = 0; k < m->n_ranks; k++) {
        if (!holds(p, k, cell) || !is_first_part(p, k)) {
            continue;
        }
        text_add(t, "%s%d", comma, m->ranks[k]);
        comma = ",";
        for (int j = k + 1; j < m->n_ranks; j++) {
            if (are_parts(p->tensor, k, j)) {
                text_add(t, "+%d", m->ranks[j]);
            }
        }
    }
}

void picture_add_empty(const struct picture *p, struct text *t)
{
    const mesh_device_mesh *m = p->tensor->mesh;
    const char *before = "nothing: ranks ";
    for (int k = 0; k < m->n_ranks; k++) {
        bool is_empty = false;
        for (int d = 0; d < p->tensor->shape.ndim; d++) {
            is_empty = is_empty || places_at(p->tensor, k, d).extent == 0;
        }
        if (is_empty) {
            text_add(t, "%s%d", before, m->ranks[k]);
            before = ", ";
        }
    }
}

bool picture_next_slice(const struct picture *p, int n_dims, int *inout_cell)
{
    for (int d = n_dims - 1; d >= 0; d--) {
        if (++inout_cell[d] < p->cuts[d].n) {
            return true;
        }
        inout_cell[d] = 0;
    }
    return false;
}
