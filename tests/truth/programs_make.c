/* tests/truth/programs_make.c - random programs: draws, meshes, layouts, leaves.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "truth/programs.h"

/* --- draws ---------------------------------------------------------------------------------------------------------- */

uint64_t mixed(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t next(uint64_t *stream, int64_t n)
{
    *stream = mixed(*stream);
    return n <= 1 ? 0 : (int64_t)(*stream % (uint64_t)n);
}

int64_t below(struct program *p, int64_t n)
{
    return next(&p->draws, n);
}

int64_t layout_below(struct program *p, int64_t n)
{
    return next(&p->layouts, n);
}

bool chance(struct program *p, int percent)
{
    return below(p, 100) < percent;
}

void begin_step(struct program *p, int step)
{
    p->draws = mixed(p->seed * 1000 + (uint64_t)step);
    p->layouts = mixed(~p->draws);
}

/* --- meshes --------------------------------------------------------------------------------------------------------- */

static mesh_shape mesh_shape_for(struct program *p, int n)
{
    mesh_shape s = { .ndim = 1 + (int)layout_below(p, 4) };
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = 1;
    }
    for (int prime = 2; n > 1; prime++) {
        for (; n % prime == 0; n /= prime) {
            s.dim[layout_below(p, s.ndim)] *= prime;
        }
    }
    return s;
}

/* Names tell meshes apart that have the same ranks: which tensors meet on one is drawn alike on one rank. */
static const char *const names[3][5] = { { "a", "b", "c", "d" }, { "e", "f", "g", "h" }, { "i", "j", "k", "l" } };

/* The first n of them, and NULL. */
struct names {
    const char *of[5];
};

static struct names first_names(int which, int n)
{
    struct names list = { { NULL } };
    for (int i = 0; i < n; i++) {
        list.of[i] = names[which][i];
    }
    return list;
}

static mesh_device_mesh *all_ranks(struct program *p, int which)
{
    mesh_shape s = p->is_reference ? MESH_SHAPE(1) : mesh_shape_for(p, p->n_ranks);
    return mesh_init_device_mesh("cpu", s, first_names(which, s.ndim).of);
}

/* Some ranks of the job in any order. */
static mesh_device_mesh *some_ranks(struct program *p, int which)
{
    int rank[8], n = 1 + (int)layout_below(p, p->n_ranks);
    for (int i = 0; i < p->n_ranks; i++) {
        int k = (int)layout_below(p, i + 1);
        rank[i] = rank[k];
        rank[k] = i;
    }
    mesh_shape s = mesh_shape_for(p, n);
    return mesh_new_device_mesh("cpu", s, rank, first_names(which, s.ndim).of);
}

/* Some dims of a mesh around this rank, as they are or as one. */
static mesh_device_mesh *part_of_mesh(struct program *p)
{
    mesh_device_mesh *all = all_ranks(p, 0);
    int n = mesh_mesh_ndim(all), first = (int)layout_below(p, n), second = (int)layout_below(p, n);
    const char *const some[] = { names[0][first], second == first ? NULL : names[0][second], NULL };
    return layout_below(p, 2) ? mesh_submesh(all, some) : mesh_flatten(all, some, NULL);
}

void make_meshes(struct program *p)
{
    p->n_meshes = 1 + (int)below(p, 3);
    bool is_part = p->n_meshes == 1 && !p->is_reference && layout_below(p, 2);
    p->mesh[0] = is_part ? part_of_mesh(p) : NULL;
    for (int i = is_part; i < p->n_meshes; i++) {
        p->mesh[i] = p->is_reference || (i == 0 && layout_below(p, 4)) ? all_ranks(p, i) : some_ranks(p, i);
    }
}

/* --- layouts -------------------------------------------------------------------------------------------------------- */

static mesh_reduce_op any_reduction(struct program *p, mesh_dtype t)
{
    static const mesh_reduce_op floats[] = { MESH_SUM, MESH_SUM, MESH_AVG, MESH_MAX, MESH_MIN, MESH_PROD };
    static const mesh_reduce_op whole[] = { MESH_SUM, MESH_MAX, MESH_MIN, MESH_PROD, MESH_BAND, MESH_BOR, MESH_BXOR };
    if (t == MESH_BOOL) {
        return layout_below(p, 2) ? MESH_MAX : MESH_MIN;
    }
    return is_floating(t) ? floats[layout_below(p, ARRAY_SIZE(floats))] : whole[layout_below(p, ARRAY_SIZE(whole))];
}

mesh_placements any_layout(struct program *p, const mesh_device_mesh *m, mesh_shape s, mesh_dtype t, bool pending)
{
    mesh_placements all = { .n = mesh_mesh_ndim(m) };
    mesh_reduce_op op = any_reduction(p, t);
    for (int i = 0; i < all.n; i++) {
        int kind = p->is_reference ? 0 : (int)layout_below(p, 10);
        int dim = s.ndim == 0 ? 0 : (int)layout_below(p, s.ndim) - (layout_below(p, 3) ? 0 : s.ndim);
        all.at[i] = mesh_replicate();
        if (kind >= 8) {
            all.at[i] = pending ? mesh_partial(op) : mesh_replicate();
        } else if (kind >= 2 && s.ndim > 0) {
            all.at[i] = kind >= 6 ? mesh_strided_shard(dim, 1 + (int)layout_below(p, 4)) : mesh_shard(dim);
        }
    }
    return all;
}

/* --- shapes and dtypes ---------------------------------------------------------------------------------------------- */

int64_t count_of(mesh_shape s)
{
    int64_t n = 1;
    for (int i = 0; i < s.ndim; i++) {
        n *= s.dim[i];
    }
    return n;
}

mesh_shape any_shape(struct program *p, int max_ndim)
{
    static const int8_t extents[] = { 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12 };
    mesh_shape s = { .ndim = (int)below(p, max_ndim + 1) };
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = chance(p, 2) ? 0 : extents[below(p, (int64_t)ARRAY_SIZE(extents) - 2 * i)];
    }
    return s;
}

bool is_floating(mesh_dtype t)
{
    return t == MESH_F64 || t == MESH_F32 || t == MESH_F16 || t == MESH_BF16;
}

double roughness(mesh_dtype t)
{
    return t == MESH_F32 ? 1e-5 : t == MESH_F16 ? 4e-3 : t == MESH_BF16 ? 3e-2 : 1e-11;
}

int mantissa(mesh_dtype t)
{
    return t == MESH_F32 ? 24 : t == MESH_F16 ? 11 : t == MESH_BF16 ? 8 : 53;
}

/* --- leaves --------------------------------------------------------------------------------------------------------- */

static void put(mesh_tensor *t, int64_t i, double v)
{
    void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F64:
        ((double *)data)[i] = v;
        break;
    case MESH_F32:
        ((float *)data)[i] = (float)v;
        break;
    case MESH_I64:
        ((int64_t *)data)[i] = (int64_t)v;
        break;
    case MESH_I32:
        ((int32_t *)data)[i] = (int32_t)v;
        break;
    default:
        ((int8_t *)data)[i] = mesh_tensor_dtype(t) == MESH_BOOL ? v > 0 : (int8_t)v;
    }
}

static double get(mesh_tensor *t, int64_t i)
{
    void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F64:
        return ((double *)data)[i];
    case MESH_F32:
        return ((float *)data)[i];
    case MESH_I64:
        return (double)((int64_t *)data)[i];
    case MESH_I32:
        return ((int32_t *)data)[i];
    default:
        return ((int8_t *)data)[i];
    }
}

/* What the rank at place c of a line of n holds of a value, such that the reduction over the line gives the value. */
static double share(mesh_reduce_op op, double v, int64_t i, int c, int n)
{
    int64_t noise = (int64_t)(mixed((uint64_t)i * 64 + (uint64_t)c) % 4),
            before = (int64_t)(mixed((uint64_t)i * 64 + (uint64_t)((c + n - 1) % n)) % 4);
    bool owns = i % n == c;
    switch (op) {
    case MESH_SUM:
        return (owns ? v : 0) + (double)(noise - before);
    case MESH_AVG:
        return (owns ? v * n : 0) + (double)(noise - before);
    case MESH_MAX:
        return owns ? v : v - (double)noise;
    case MESH_MIN:
        return owns ? v : v + (double)noise;
    case MESH_PROD:
        return (owns ? v : 1) * (n > 1 && c < 2 && i % 3 == 0 ? -1 : 1);
    case MESH_BAND:
        return owns ? v : (double)((int64_t)v | noise);
    case MESH_BOR:
        return owns ? v : (double)((int64_t)v & ~noise);
    default:
        return (double)((owns ? (int64_t)v : 0) ^ noise ^ before);
    }
}

static void split_up(mesh_tensor *t, const mesh_device_mesh *m, mesh_placements all)
{
    const int *at = mesh_get_coordinate(m);
    for (int d = 0; d < all.n && at != NULL; d++) {
        char name[4] = { (char)('0' + d) };
        for (int64_t i = 0; all.at[d].kind == MESH_IS_PARTIAL && i < count_of(mesh_tensor_shape(t)); i++) {
            put(t, i, share(all.at[d].op, get(t, i), i, at[d], mesh_mesh_size(m, name)));
        }
    }
}

/* A shape without dims cannot be said to mesh_from_local(): a rank outside gives a tensor of it. */
mesh_tensor *part_or_whole(mesh_tensor *mine, mesh_device_mesh *m, mesh_shape s)
{
    bool is_outside = mesh_get_coordinate(m) == NULL;
    return is_outside && s.ndim == 0 ? mesh_tensor_new(s, mesh_tensor_dtype(mine)) : mine;
}

static mesh_dtensor *from_parts(mesh_tensor *t, mesh_device_mesh *m, mesh_placements all, mesh_dtype as)
{
    mesh_placements whole = all;
    for (int d = 0; d < all.n; d++) {
        if (all.at[d].kind == MESH_IS_PARTIAL) {
            whole.at[d] = mesh_replicate();
        }
    }
    mesh_dtensor *x = mesh_distribute_same(t, m, whole);
    mesh_tensor *mine = mesh_to_local(x);
    if (mesh_tensor_dtype(t) != MESH_BOOL) {
        split_up(mine, m, all);
    }
    x = mesh_from_local(part_or_whole(mine, m, mesh_tensor_shape(t)), m, all, .shape = mesh_tensor_shape(t));
    if (as == 0) {
        return x;
    }
    return mesh_detach(mesh_cast(x, as));
}

static mesh_dtensor *lay_out(struct program *p, mesh_device_mesh *m, mesh_tensor *t, mesh_dtype as, double *scale)
{
    mesh_placements all = any_layout(p, m, mesh_tensor_shape(t), mesh_tensor_dtype(t), true);
    mesh_dtype small = as == mesh_tensor_dtype(t) ? 0 : as;
    int way = (int)layout_below(p, 3);
    for (int d = 0; way == 2 && d < all.n; d++) {
        char name[4] = { (char)('0' + d) };
        if (all.at[d].kind == MESH_IS_PARTIAL) {
            *scale *= all.at[d].op == MESH_SUM ? 1 : all.at[d].op == MESH_AVG ? mesh_mesh_size(m, name) : 0;
        }
    }
    if (way == 2 && *scale > 0) {
        return from_parts(t, m, all, small);
    }
    const int *at = mesh_get_coordinate(m);
    bool is_first = true;
    for (int d = 0; at != NULL && d < all.n; d++) {
        is_first &= at[d] == 0;
    }
    if (way == 1 && !is_first) {
        t = mesh_tensor_new(mesh_tensor_shape(t), mesh_tensor_dtype(t));
    }
    mesh_dtensor *x = way == 1 ? mesh_distribute_tensor(t, m, all) : mesh_distribute_same(t, m, all);
    return small ? mesh_detach(mesh_cast(x, small)) : x;
}

static mesh_dtensor *leaf_of(struct program *p, mesh_device_mesh *m, mesh_tensor *t, mesh_dtype as)
{
    if (p->n_leaves == MAX_LEAVES) {
        return NULL;
    }
    double scale = 1;
    mesh_dtensor *x = lay_out(p, m, t, as, &scale);
    if (x == NULL) {
        return NULL;
    }
    bool is_cast = as != mesh_tensor_dtype(t); /* a leaf of its own then */
    scale = !is_floating(as) ? 0 : scale > 0 && !is_cast ? scale : 1;
    if (scale > 0) {
        mesh_requires_grad(x, true);
    }
    p->leaf[p->n_leaves++] = (struct leaf){ mesh_keep(x), scale };
    return x;
}

/* 16-bit ones are cast from f32. */
static mesh_tensor *plain(mesh_shape s, mesh_dtype t)
{
    return mesh_tensor_new(s, t == MESH_F16 || t == MESH_BF16 ? MESH_F32 : t);
}

mesh_dtensor *leaf(struct program *p, mesh_device_mesh *m, mesh_shape s, mesh_dtype t)
{
    mesh_tensor *numbers = plain(s, t);
    if (numbers == NULL) {
        return NULL;
    }
    double unit = is_floating(t) ? 0.25 : 1;
    for (int64_t i = 0; i < count_of(s); i++) {
        put(numbers, i, (double)(below(p, 17) - (t == MESH_U8 ? 0 : 8)) * unit);
    }
    return leaf_of(p, m, numbers, t);
}

mesh_dtensor *whole(struct program *p, mesh_device_mesh *m, mesh_shape s, int64_t low, int64_t high)
{
    mesh_tensor *numbers = mesh_tensor_new(s, chance(p, 70) ? MESH_I64 : MESH_I32);
    if (numbers == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < count_of(s); i++) {
        put(numbers, i, (double)(low + below(p, high - low)));
    }
    return leaf_of(p, m, numbers, mesh_tensor_dtype(numbers));
}

/* --- operands and arguments ----------------------------------------------------------------------------------------- */

mesh_device_mesh *on(mesh_dtensor *a)
{
    return mesh_device_mesh_of(a);
}

int64_t dim_of(mesh_dtensor *a, int d)
{
    mesh_shape s = mesh_shape_of(a);
    return s.dim[d < 0 ? d + s.ndim : d];
}

/* A dim of a, sometimes counted from the end. */
int any_dim(struct program *p, mesh_dtensor *a)
{
    int n = mesh_shape_of(a).ndim;
    return (int)below(p, n) - (chance(p, 30) ? n : 0);
}

static void also(struct program *p, const struct value *v)
{
    p->tolerance = v->tolerance > p->tolerance ? v->tolerance : p->tolerance;
    p->bits = v->bits > p->bits ? v->bits : p->bits;
}

static bool alike(mesh_shape a, mesh_shape b)
{
    bool same = a.ndim == b.ndim;
    for (int i = 0; same && i < a.ndim; i++) {
        same = a.dim[i] == b.dim[i];
    }
    return same;
}

mesh_dtensor *shaped(struct program *p, mesh_dtensor *a, mesh_shape s)
{
    for (int i = 0; i < p->n_values && chance(p, 90); i++) {
        const struct value *v = &p->value[i];
        if (v->usable && v->x != a && on(v->x) == on(a) && alike(mesh_shape_of(v->x), s) &&
            mesh_dtype_of(v->x) == mesh_dtype_of(a) && !(p->only_exact && v->tolerance > 0)) {
            also(p, v);
            return v->x;
        }
    }
    return leaf(p, on(a), s, p->wants_mixed && chance(p, 15) ? MESH_F32 : mesh_dtype_of(a));
}

/* One that broadcasts to a, of another dtype now and then. */
mesh_dtensor *peer(struct program *p, mesh_dtensor *a)
{
    mesh_shape s = mesh_shape_of(a), t = { 0 };
    int from = chance(p, 25) && s.ndim > 0 ? (int)below(p, s.ndim + 1) : 0;
    for (int i = from; i < s.ndim; i++) {
        t.dim[t.ndim++] = chance(p, 15) ? 1 : s.dim[i];
    }
    if (p->wants_mixed && chance(p, 20)) {
        return leaf(p, on(a), t, chance(p, 50) ? MESH_F32 : MESH_I32);
    }
    return shaped(p, a, t);
}

/* Near 1 or above: x x + 1. */
mesh_dtensor *positive(mesh_dtensor *x)
{
    return mesh_add_scalar(mesh_square(x), 1);
}

mesh_shape with(mesh_shape s, int d, int64_t extent)
{
    s.dim[d < 0 ? d + s.ndim : d] = extent;
    return s;
}

mesh_reduce_options some_dims(struct program *p, mesh_dtensor *a)
{
    mesh_reduce_options o = { .size = sizeof o, .keepdim = chance(p, 30) };
    int n = mesh_shape_of(a).ndim;
    for (int d = 0; d < n && chance(p, 90); d++) {
        if (chance(p, 50)) {
            o.dims.dim[o.dims.ndim++] = chance(p, 30) ? d - n : d;
        }
    }
    return o;
}
