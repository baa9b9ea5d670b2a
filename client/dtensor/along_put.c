/* client/dtensor/along_put.c - numbers back to where a sort along a sharded dim found them.
 *
 * Each number goes straight to the rank that holds its index: one all_to_all of how many, one of the numbers, one of
 * their places.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "dtensor/along_sort.h"
#include "dtensor/sharers.h"
#include "tensor/lines.h"

struct putting {
    const mesh_dtensor *dy, *indices;
    int dim;
    struct sharers sharers;
    size_t *sent, *got, *at; /* [n parts] elements; at: where the next one for a part is packed */
    struct mesh_tensor *numbers, *places;
};

static struct chunk part_of(const struct putting *p, int part)
{
    return sharers_chunk(&p->sharers, part, p->dy->shape.dim[p->dim]);
}

/* Which part holds an index: the last that begins at or before it and is not empty. */
static int owner_of(const struct putting *p, int64_t index)
{
    int least = 0, most = p->sharers.n - 1;
    while (least < most) {
        int middle = (least + most + 1) / 2;
        struct chunk c = part_of(p, middle);
        if (c.extent > 0 && c.offset <= index) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    return least;
}

static int64_t index_at(const struct putting *p, int64_t i)
{
    return ((const int64_t *)p->indices->local->data)[i];
}

/* The element's place in its owner's part: its line there has another length, and nothing else differs. */
static int64_t place_of(const struct putting *p, int64_t i, int owner)
{
    struct lines here = lines_of(p->dy->local->shape, p->dim), there = here;
    struct chunk c = part_of(p, owner);
    there.length = c.extent;
    int64_t line = i / (here.length * here.step) * here.step + i % here.step;
    return line_begin(&there, line) + (index_at(p, i) - c.offset) * there.step;
}

static void count(struct putting *p)
{
    size_t begin = 0;
    memset(p->sent, 0, (size_t)p->sharers.n * sizeof *p->sent);
    for (int64_t i = 0; i < p->dy->local->n; i++) {
        p->sent[owner_of(p, index_at(p, i))]++;
    }
    for (int part = 0; part < p->sharers.n; part++) {
        p->at[part] = begin;
        begin += p->sent[part];
    }
}

/* How many each part sends here. */
static int tell_counts(struct putting *p)
{
    int64_t n = p->sharers.n;
    struct mesh_tensor *mine = tensor_new(MESH_SHAPE(n), MESH_I64);
    struct mesh_tensor *theirs = mine != NULL ? tensor_new(MESH_SHAPE(n), MESH_I64) : NULL;
    int r = theirs != NULL ? 0 : err_status();
    for (int64_t part = 0; r == 0 && part < n; part++) {
        ((int64_t *)mine->data)[part] = (int64_t)p->sent[part];
        p->got[part] = 1;
    }
    r = r < 0 ? r : sharers_swap(&p->sharers, &(struct sharers_swap){ mine, theirs, p->got, p->got });
    for (int64_t part = 0; r == 0 && part < n; part++) {
        p->got[part] = (size_t)((int64_t *)theirs->data)[part];
    }
    tensor_unref(mine);
    tensor_unref(theirs);
    return r;
}

static int pack(struct putting *p)
{
    const struct mesh_tensor *dy = p->dy->local;
    size_t item = dtype_size(dy->dtype);
    p->numbers = tensor_new(MESH_SHAPE(dy->n), dy->dtype);
    p->places = p->numbers != NULL ? tensor_new(MESH_SHAPE(dy->n), MESH_I64) : NULL;
    for (int64_t i = 0; p->places != NULL && i < dy->n; i++) {
        int owner = owner_of(p, index_at(p, i));
        size_t at = p->at[owner]++;
        memcpy((char *)p->numbers->data + at * item, (const char *)dy->data + (size_t)i * item, item);
        ((int64_t *)p->places->data)[at] = place_of(p, i, owner);
    }
    return p->places != NULL ? 0 : err_status();
}

/* Brings *inout to whom it belongs. */
static int swap(const struct putting *p, struct mesh_tensor **inout)
{
    int64_t n = 0;
    for (int part = 0; part < p->sharers.n; part++) {
        n += (int64_t)p->got[part];
    }
    struct mesh_tensor *got = tensor_new(MESH_SHAPE(n), (*inout)->dtype);
    int r =
        got != NULL ? sharers_swap(&p->sharers, &(struct sharers_swap){ *inout, got, p->sent, p->got }) : err_status();
    if (r < 0) {
        tensor_unref(got);
        return r;
    }
    tensor_unref(*inout);
    *inout = got;
    return 0;
}

/* Every index comes once. */
static int put(struct putting *p, struct mesh_tensor *out)
{
    size_t item = dtype_size(out->dtype);
    size_t n = (size_t)p->sharers.n, *counts = mem_new_array(size_t, 3 * n);
    if (counts == NULL) {
        return err_no_memory(3 * n * sizeof *counts, "the sizes of the parts");
    }
    p->sent = counts;
    p->got = counts + n;
    p->at = counts + 2 * n;
    count(p);
    int r = tell_counts(p);
    r = r < 0 ? r : pack(p);
    r = r < 0 ? r : swap(p, &p->numbers);
    r = r < 0 ? r : swap(p, &p->places);
    for (int64_t i = 0; r == 0 && i < p->places->n; i++) {
        size_t at = (size_t)((const int64_t *)p->places->data)[i];
        memcpy((char *)out->data + at * item, (const char *)p->numbers->data + (size_t)i * item, item);
    }
    mem_free(counts);
    return r;
}

mesh_dtensor *along_put(mesh_dtensor *dy, mesh_dtensor *indices, int dim)
{
    struct putting p = {
        .dy = dy, .indices = indices, .dim = dim, .sharers = sharers_of(dy->mesh, &dy->placements, dim)
    };
    struct mesh_tensor *out = tensor_new_zeroed(dy->local->shape, dy->dtype);
    int r = out == NULL ? err_status() : (dy->mesh->is_member ? put(&p, out) : 0);
    tensor_unref(p.numbers);
    tensor_unref(p.places);
    if (r < 0) {
        tensor_unref(out);
        return NULL;
    }
    return dtensor_new(dy->mesh, dy->shape, dy->dtype, &dy->placements, out);
}
