/* client/tensor/k_arg.c - where the extremes are: the lowest flat index, among the dims that go, in the whole tensor.
 *
 *     argmax, argmin   of whole lines: the first of equal elements; NaN beats everything, the first NaN the others
 *     index_of         the lowest index at which x equals m (NaN equals NaN), INT64_MAX where none does: each shard answers for
 *                      its part, and the least answer is right
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "base/vector.h"
#include "tensor/numbers.h"
#include "tensor/reduce_walk.h"
#include "tensor/row.h"

struct search {
    int64_t *index; /* [results]; below 0: none yet */
    void *best;     /* [results] of x's dtype; index_of: what is looked for */
};

#define IS_NAN_F32(v) isnan(v)
#define IS_NAN_F64(v) isnan(v)
#define IS_NAN_I8(v)  false
#define IS_NAN_U8(v)  false
#define IS_NAN_I32(v) false
#define IS_NAN_I64(v) false

/* The extreme of n > 0 elements, NaN where there is one. */
#define MOST_F32(x, n, name) row_##name##_F32(x, n)
#define MOST_F64(x, n, name) row_##name##_F64(x, n)
#define MOST_I8(x, n, name)  name##_of_I8(x, n)
#define MOST_U8(x, n, name)  name##_of_U8(x, n)
#define MOST_I32(x, n, name) name##_of_I32(x, n)
#define MOST_I64(x, n, name) name##_of_I64(x, n)
#define MOST_OF(D, T, U, name, beats)                                                                                  \
    static VECTOR_VALUE(T, name##_of_##D, (const T *x, int64_t n), (x, n))                                             \
    {                                                                                                                  \
        T most = x[0];                                                                                                 \
        for (int64_t i = 1; i < n; i++) {                                                                              \
            most = x[i] beats most ? x[i] : most;                                                                      \
        }                                                                                                              \
        return most;                                                                                                   \
    }
INT_TYPES(MOST_OF, max, >)
INT_TYPES(MOST_OF, min, <)

#define BLOCK                                                                                                          \
    1024 /* elements whose extreme is found first, and whose first place later, when it is known that they have it */

/* whole_row: all elements go into one result. */
#define SEARCH_ROW(D, T, U, name, beats)                                                                               \
    static void name##_whole_row_##D(const struct search *s, const struct reduce_row *r)                               \
    {                                                                                                                  \
        const T *x = r->x;                                                                                             \
        T best = ((T *)s->best)[r->out];                                                                               \
        int64_t at = -1;                                                                                               \
        for (int64_t i = 0; i < r->n; i += BLOCK) {                                                                    \
            T v = MOST_##D(x + i, MIN(r->n - i, BLOCK), name);                                                         \
            bool is_first = at < 0 && s->index[r->out] < 0;                                                            \
            if (is_first || (!IS_NAN_##D(best) && (v beats best || IS_NAN_##D(v)))) {                                  \
                best = v;                                                                                              \
                at = i;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        if (at >= 0) {                                                                                                 \
            while (x[at] != best && !IS_NAN_##D(x[at])) {                                                              \
                at++;                                                                                                  \
            }                                                                                                          \
            ((T *)s->best)[r->out] = best;                                                                             \
            s->index[r->out] = r->index + at * r->index_step;                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_row_##D(void *state, const struct reduce_row *r)                                                \
    {                                                                                                                  \
        const struct search *s = state;                                                                                \
        const T *x = r->x;                                                                                             \
        T *best = s->best;                                                                                             \
        if (r->out_step == 0) {                                                                                        \
            name##_whole_row_##D(s, r);                                                                                \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            T v = x[i], b = best[r->out + i];                                                                          \
            if (s->index[r->out + i] < 0 || (!IS_NAN_##D(b) && (v beats b || IS_NAN_##D(v)))) {                        \
                best[r->out + i] = v;                                                                                  \
                s->index[r->out + i] = r->index + i * r->index_step;                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MATCH_ROW(D, T, U, unused)                                                                                     \
    static void match_row_##D(void *state, const struct reduce_row *r)                                                 \
    {                                                                                                                  \
        const struct search *s = state;                                                                                \
        const T *x = r->x, *wanted = s->best;                                                                          \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            int64_t out = r->out + i * r->out_step, index = r->index + i * r->index_step;                              \
            T v = x[i], w = wanted[out];                                                                               \
            if ((v == w || (IS_NAN_##D(v) && IS_NAN_##D(w))) && index < s->index[out]) {                               \
                s->index[out] = index;                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
NUMBER_TYPES(SEARCH_ROW, max, >)
NUMBER_TYPES(SEARCH_ROW, min, <)
NUMBER_TYPES(MATCH_ROW, 0)
#define SEARCH_ENTRY(D, T, U, name) [MESH_##D] = name##_row_##D,
static const reduce_row_fn max_rows[N_DTYPES] = { NUMBER_TYPES(SEARCH_ENTRY, max) };
static const reduce_row_fn min_rows[N_DTYPES] = { NUMBER_TYPES(SEARCH_ENTRY, min) };
static const reduce_row_fn match_rows[N_DTYPES] = { NUMBER_TYPES(SEARCH_ENTRY, match) };

static int search(const char *name, const struct kernel_call *c, const reduce_row_fn *rows)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    if (rows[x->dtype] == NULL) {
        return unsupported_dtype(name, x->dtype);
    }
    struct search s = { .index = out->data, .best = mem_zalloc((size_t)out->n * sizeof(double) + 1) };
    if (s.best == NULL) {
        return err_no_memory((size_t)out->n * sizeof(double), "the candidates of a search");
    }
    for (int64_t i = 0; i < out->n; i++) {
        s.index[i] = -1;
    }
    reduce_walk(x, c->attr->dims, NULL, rows[x->dtype], &s);
    mem_free(s.best);
    return 0;
}

int k_argmax(const struct kernel_call *c)
{
    return search("argmax", c, max_rows);
}

int k_argmin(const struct kernel_call *c)
{
    return search("argmin", c, min_rows);
}

int k_index_of(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    struct search s = { .index = out->data, .best = c->in[1]->data };
    if (match_rows[x->dtype] == NULL) {
        return unsupported_dtype("argmax", x->dtype);
    }
    for (int64_t i = 0; i < out->n; i++) {
        s.index[i] = INT64_MAX;
    }
    reduce_walk(x, c->attr->dims, &(struct reduce_place){ c->attr->shape, c->offset }, match_rows[x->dtype], &s);
    return 0;
}
