/* tests/truth/plan_once.c - simulated ranks of one process plan together: the first that asks computes, the others are
 * told.
 *
 * Plans are pure functions of global facts, so eight ranks compute the same eight times, which is most of what a
 * combination of layouts costs.  Linked with --wrap=op_choose,--wrap=redistribute_plan the library's own calls come
 * here.  (That ranks which plan each for itself agree is what every other test sees.)
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "dtensor/dispatch.h"
#include "dtensor/redistribute.h"
#include "truth/parts.h"

#define MOST_PLANS 20000 /* then all are forgotten: ranks are never far apart */

int __real_op_choose(const struct op_row *op, const struct op_shapes *s, int mesh_ndim, const int *mesh_size,
                     const mesh_placements *now, struct op_choice *ret_choice);
int __wrap_op_choose(const struct op_row *op, const struct op_shapes *s, int mesh_ndim, const int *mesh_size,
                     const mesh_placements *now, struct op_choice *ret_choice);
int __real_redistribute_plan(const struct relayout *q, struct move_list *ret_moves);
int __wrap_redistribute_plan(const struct relayout *q, struct move_list *ret_moves);

struct facts {               /* all bytes that are not of a fact are 0 */
    const struct op_row *op; /* NULL: a redistribution */
    int mesh_ndim, mesh_size[MESH_MAX_MESH_NDIM];
    struct op_shapes shapes;
    mesh_placements now[OP_MAX_INPUTS];
};

/* Recursive: choosing may plan. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct map plans;

static void forget_all(void)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&plans, &i)) != NULL;) {
        free(slot->value);
    }
    map_fini(&plans);
    plans = MAP_INIT;
}

static void *keep(const struct facts *f, const void *plan, size_t bytes)
{
    void *copy = malloc(bytes);
    parts_must(copy != NULL, "no memory");
    memcpy(copy, plan, bytes);
    if (plans.n >= MOST_PLANS) {
        forget_all();
    }
    parts_must(map_set(&plans, f, sizeof *f, copy, NULL) == 0, "no memory");
    return copy;
}

int __wrap_op_choose(const struct op_row *op, const struct op_shapes *s, int mesh_ndim, const int *mesh_size,
                     const mesh_placements *now, struct op_choice *ret_choice)
{
    struct facts f;
    int r = 0;
    memset(&f, 0, sizeof f);
    f.op = op;
    f.mesh_ndim = mesh_ndim;
    memcpy(f.mesh_size, mesh_size, (size_t)mesh_ndim * sizeof *mesh_size);
    memcpy(&f.shapes, s, sizeof *s);
    memcpy(f.now, now, (size_t)s->n_in * sizeof *now);
    pthread_mutex_lock(&lock);
    const struct op_choice *known = map_get(&plans, &f, sizeof f);
    if (known == NULL) {
        r = __real_op_choose(op, s, mesh_ndim, mesh_size, now, ret_choice);
        known = r == 0 ? keep(&f, ret_choice, sizeof *ret_choice) : NULL;
    }
    if (known != NULL) {
        *ret_choice = *known;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

int __wrap_redistribute_plan(const struct relayout *q, struct move_list *ret_moves)
{
    struct facts f;
    int r = 0;
    memset(&f, 0, sizeof f);
    f.mesh_ndim = q->mesh_ndim;
    memcpy(f.mesh_size, q->mesh_size, (size_t)q->mesh_ndim * sizeof *q->mesh_size);
    f.shapes.in[0] = q->shape;
    f.shapes.in_dtype[0] = q->dtype;
    f.now[0] = *q->from;
    f.now[1] = *q->to;
    pthread_mutex_lock(&lock);
    const struct move_list *known = map_get(&plans, &f, sizeof f);
    if (known == NULL) {
        r = __real_redistribute_plan(q, ret_moves);
        known = r == 0 ? keep(&f, ret_moves, sizeof *ret_moves) : NULL;
    }
    if (known != NULL) {
        *ret_moves = *known;
    }
    pthread_mutex_unlock(&lock);
    return r;
}
