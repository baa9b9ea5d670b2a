/* tests/world/draws.c - arguments of public functions, of every type, drawn alike on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "world/draws.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <mesh/shorthand.h>

#include "base/util.h"

#define ROOM 65536

/* --- draws -------------------------------------------------------------------------------------------------------- */

uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t below(struct draw *d, int64_t n)
{
    d->stream = mixed(d->stream);
    return (int64_t)(d->stream % (uint64_t)n);
}

bool chance_of(struct draw *d, int percent)
{
    return below(d, 100) < percent;
}

bool hostile(struct draw *d)
{
    return chance_of(d, d->hostility);
}

/* Memory that lives until the call has ended. */
void *mine(struct draw *d, size_t bytes)
{
    void *p = calloc(1, bytes);
    if (d->n_owned == N_OWNED || p == NULL) {
        abort();
    }
    return d->owned[d->n_owned++] = p;
}

#define PICK(list) (list)[below(d, (int64_t)ARRAY_SIZE(list))]

/* --- numbers ------------------------------------------------------------------------------------------------------ */

int draw_int(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, 99, INT_MAX, 65, -9 };
    return hostile(d) ? PICK(bad) : (int)below(d, 4) - (int)chance_of(d, 20);
}

int draw_few(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, 0 };
    return hostile(d) ? PICK(bad) : 1 + (int)below(d, 4);
}

int draw_wrong_peer(struct draw *d)
{
    static const int bad[] = { INT_MIN, -2, N_RANKS, 99, INT_MAX };
    return PICK(bad);
}

int64_t draw_int64(struct draw *d)
{
    static const int64_t bad[] = { INT64_MIN, -1, INT64_MAX, INT64_C(1) << 32, INT64_MAX / 8 + 1, -99 };
    return hostile(d) ? PICK(bad) : below(d, 7);
}

int64_t draw_few64(struct draw *d)
{
    return hostile(d) ? INT64_MIN : 1 + below(d, 3);
}

/* Never one that waits long. */
int64_t draw_timeout(struct draw *d)
{
    static const int64_t some[] = { MESH_NO_WAIT, 1, 20 }, bad[] = { INT64_MIN, -2 };
    return hostile(d) ? PICK(bad) : PICK(some);
}

uint64_t draw_uint64(struct draw *d)
{
    return hostile(d) ? UINT64_MAX : (uint64_t)below(d, 3);
}

size_t draw_count(struct draw *d)
{
    static const size_t bad[] = { SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 8 + 1, (size_t)1 << 62 };
    return hostile(d) ? PICK(bad) : (size_t)below(d, 9);
}

size_t draw_cap(struct draw *d)
{
    static const size_t some[] = { 0, 1, 7, 64, 4000 };
    return PICK(some);
}

double draw_double(struct draw *d)
{
    static const double bad[] = { NAN, INFINITY, -INFINITY, -1, 1e308, 2 };
    return hostile(d) ? PICK(bad) : (double)below(d, 5) * 0.25;
}

bool draw_bool(struct draw *d)
{
    return chance_of(d, 50);
}

mesh_dtype draw_dtype(struct draw *d)
{
    static const int bad[] = { 0, -1, 99, INT_MAX };
    return (mesh_dtype)(hostile(d) ? PICK(bad) : chance_of(d, 60) ? (int)MESH_F32 : 1 + (int)below(d, 9));
}

mesh_reduce_op draw_reduce_op(struct draw *d)
{
    static const int bad[] = { 0, -1, 99, INT_MAX };
    return (mesh_reduce_op)(hostile(d) ? PICK(bad) : 1 + (int)below(d, 8));
}

mesh_reduction draw_reduction(struct draw *d)
{
    return (mesh_reduction)(hostile(d) ? 77 : below(d, 3));
}

mesh_comm_kind draw_kind(struct draw *d)
{
    return (mesh_comm_kind)(hostile(d) ? 99 : below(d, 12));
}

mesh_status draw_status(struct draw *d)
{
    return (mesh_status)(hostile(d) ? INT_MIN : -below(d, 30));
}

/* --- shapes and layouts ------------------------------------------------------------------------------------------- */

mesh_shape draw_shape(struct draw *d)
{
    static const int64_t far[] = { INT64_MIN, -2, INT64_MAX, INT64_C(1) << 40, 99 };
    static const int dims[] = { INT_MIN, -1, 9, 65, INT_MAX };
    static const mesh_shape some[] = { { 2, { 4, 6 } }, { 0, { 0 } },    { 1, { 24 } },    { 1, { 0 } },
                                       { 1, { 1 } },    { 2, { 6, 4 } }, { 2, { -1, 6 } }, { 2, { 0, 1 } } };
    mesh_shape s = PICK(some);
    if (hostile(d)) {
        s.dim[below(d, 2)] = PICK(far);
    }
    if (hostile(d)) {
        s.ndim = PICK(dims);
    }
    return s;
}

mesh_placement draw_placement(struct draw *d)
{
    static const int bad[] = { INT_MIN, -3, 9, INT_MAX };
    mesh_placement p = { (mesh_placement_kind)(1 + below(d, 4)), (int)below(d, 2), MESH_SUM, 1 + (int)below(d, 3) };
    if (hostile(d)) {
        p.dim = PICK(bad);
    }
    if (hostile(d)) {
        p.kind = (mesh_placement_kind)(PICK(bad));
    }
    if (hostile(d)) {
        p.op = draw_reduce_op(d);
        p.split_factor = PICK(bad);
    }
    return p;
}

mesh_placements draw_placements(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, 0, 1, 3, 5, 99, INT_MAX };
    mesh_placements p = { .n = 2, .at = { mesh_shard(0), mesh_replicate() } };
    if (chance_of(d, 60)) {
        p.at[0] = draw_placement(d);
        p.at[1] = draw_placement(d);
    }
    p.n = hostile(d) ? PICK(bad) : p.n;
    return p;
}

mesh_device_mesh *draw_mesh(struct draw *d)
{
    return hostile(d) ? NULL : chance_of(d, 85) ? d->mesh : d->other;
}

/* --- names and room ----------------------------------------------------------------------------------------------- */

char far_text[3000];
FILE *nowhere;

static const char *any_text(struct draw *d)
{
    static const char *const some[] = { "0", "a", "b", "up", "up.weight", "cpu", "weight", "key" };
    static const char *const bad[] = {
        "", "%s%n%s", "..", "a.", ".a", "%99999d", "\x80\xff", "[", "nirvana", far_text
    };
    return hostile(d) ? PICK(bad) : PICK(some);
}

const char *draw_text(struct draw *d)
{
    return hostile(d) ? NULL : any_text(d);
}

const char *const *draw_names(struct draw *d)
{
    const char **list = mine(d, 6 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = chance_of(d, 50) ? (i ? "b" : "a") : any_text(d);
    }
    return hostile(d) ? NULL : list;
}

void *draw_room(struct draw *d)
{
    return hostile(d) ? NULL : mine(d, ROOM);
}

char *draw_text_room(struct draw *d)
{
    return draw_room(d);
}

mesh_shape *draw_shape_room(struct draw *d)
{
    return draw_room(d);
}

size_t *draw_size_room(struct draw *d)
{
    return draw_room(d);
}

int64_t *draw_int64_room(struct draw *d)
{
    return draw_room(d);
}

const char **draw_name_room(struct draw *d)
{
    return draw_room(d);
}

double *draw_double_room(struct draw *d)
{
    double *x = draw_room(d);
    if (x != NULL) {
        *x = draw_double(d);
    }
    return x;
}

mesh_dtensor **draw_results(struct draw *d)
{
    return draw_room(d);
}

mesh_group **draw_groups(struct draw *d)
{
    return draw_room(d);
}

void *const *draw_rooms(struct draw *d)
{
    void **list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = draw_room(d);
    }
    return hostile(d) ? NULL : list;
}

const size_t *draw_counts(struct draw *d)
{
    size_t *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = chance_of(d, 90) ? (size_t)below(d, 5) : draw_count(d);
    }
    return hostile(d) ? NULL : list;
}

const int *draw_ranks(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, N_RANKS, INT_MAX, 0 };
    int *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = hostile(d) ? PICK(bad) : i % N_RANKS;
    }
    return hostile(d) ? NULL : list;
}

FILE *draw_file(struct draw *d)
{
    return hostile(d) ? NULL : nowhere;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

mesh_dtensor *draw_dtensor(struct draw *d)
{
    static const mesh_shape shapes[] = { { 2, { 4, 6 } }, { 2, { 4, 6 } },    { 2, { 4, 6 } },
                                         { 0, { 0 } },    { 1, { 6 } },       { 2, { 0, 6 } },
                                         { 2, { 6, 4 } }, { 3, { 2, 4, 6 } }, { 4, { 2, 2, 4, 6 } } };
    static const mesh_placements layouts[] = {
        { 2, { { MESH_IS_REPLICATE, 0, 0, 0 }, { MESH_IS_REPLICATE, 0, 0, 0 } } },
        { 2, { { MESH_IS_PARTIAL, 0, MESH_SUM, 0 }, { MESH_IS_REPLICATE, 0, 0, 0 } } },
        { 2, { { MESH_IS_SHARD, 0, 0, 0 }, { MESH_IS_SHARD, 1, 0, 0 } } },
        { 2, { { MESH_IS_SHARD, 0, 0, 0 }, { MESH_IS_STRIDED_SHARD, 0, 0, 2 } } },
    };
    if (hostile(d)) {
        return NULL;
    }
    mesh_shape s = PICK(shapes);
    mesh_placements p = layouts[s.ndim < 2 ? below(d, 2) : below(d, 4)];
    mesh_dtype t = chance_of(d, 70) ? MESH_F32 : (mesh_dtype)(1 + below(d, 9));
    mesh_dtensor *x = mesh_ones(s, hostile(d) ? d->other : d->mesh, p, .dtype = t);
    bool trains = chance_of(d, 25) && t <= MESH_BF16;
    x = trains ? mesh_requires_grad(x, true) : x;
    return trains && chance_of(d, 50) ? mesh_mul_scalar(x, 2) : x;
}

mesh_dtensor *const *draw_dtensors(struct draw *d)
{
    mesh_dtensor **list = mine(d, 8 * sizeof(mesh_dtensor *)), *first = draw_dtensor(d);
    for (int i = 0; i < 8; i++) {
        list[i] = chance_of(d, 85) ? first : draw_dtensor(d);
    }
    return hostile(d) ? NULL : list;
}

/* The same on all ranks. */
mesh_tensor *draw_tensor(struct draw *d)
{
    mesh_dtensor *x = draw_dtensor(d);
    return hostile(d) || x == NULL ? NULL : mesh_full_tensor(x);
}

/* --- groups, work ------------------------------------------------------------------------------------------------- */

/* Where one rank may refuse what the others wait for, the world's next call finds that out at once. */
mesh_group *draw_group(struct draw *d)
{
    return hostile(d)                             ? NULL
           : chance_of(d, 60) || d->hostility > 0 ? mesh_world()
                                                  : mesh_get_group(d->mesh, chance_of(d, 50) ? "a" : "b");
}

mesh_work *draw_work(struct draw *d)
{
    return hostile(d) ? NULL : mesh_barrier_async(mesh_world());
}

/* The peer is wrong: nobody answers. */
mesh_message *draw_message(struct draw *d)
{
    mesh_message *m = mine(d, sizeof *m);
    *m = (mesh_message){ draw_wrong_peer(d), draw_int(d), draw_count(d) };
    return hostile(d) ? NULL : m;
}

mesh_transfer *draw_transfers(struct draw *d)
{
    mesh_transfer *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = (mesh_transfer){ (mesh_direction)draw_int(d), draw_room(d), draw_count(d), draw_dtype(d),
                                   draw_wrong_peer(d),          draw_int(d) };
    }
    return hostile(d) ? NULL : list;
}

mesh_comm_log *draw_log(struct draw *d)
{
    return hostile(d) ? NULL : mesh_comm_log_begin();
}

mesh_scope *draw_scope(struct draw *d)
{
    (void)d;
    return NULL;
}

mesh_named_placement *draw_named(struct draw *d)
{
    mesh_named_placement *list = mine(d, 6 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = (mesh_named_placement){ any_text(d), draw_placement(d) };
    }
    return hostile(d) ? NULL : list;
}

/* --- modules and functions of the caller's ------------------------------------------------------------------------ */

// clang-format off
static mesh_dtensor *pass_on(void *self, mesh_dtensor *x) { (void)self; return x; }
static mesh_dtensor *first_of(void *self, mesh_dtensor *const *in, int n) { (void)self; (void)n; return in[0]; }
static mesh_dtensor *keep_grad(mesh_dtensor *g, void *user) { (void)user; return g; }
static mesh_dtensor *lose_shape(mesh_dtensor *g, void *user) { (void)user; return mesh_sum(g); }
static mesh_dtensor *square(mesh_dtensor *const *in, int n, void *user) { (void)user; (void)n; return mesh_square(in[0]); }
static mesh_dtensor *fail_io(mesh_dtensor *x, void *user) { (void)user; return mesh_reshape(x, Shape(7, 7, 7)); }
static mesh_placements none(const char *p, mesh_shape s, void *user) { (void)p; (void)s; (void)user; return (mesh_placements){ .n = 0 }; }
static mesh_placements wrong(const char *p, mesh_shape s, void *user) { (void)p; (void)s; (void)user; return (mesh_placements){ .n = 7 }; }
static int fill(void *data, mesh_shape offset, mesh_shape extent, void *arg) { (void)data; (void)offset; (void)extent; (void)arg; return 0; }
static int refuse(void *data, mesh_shape offset, mesh_shape extent, void *arg) { (void)data; (void)offset; (void)extent; (void)arg; return -77; }
static int kernel(const mesh_op_call *c) { (void)c; return 0; }

mesh_grad_fn draw_grad_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? keep_grad : lose_shape; }
mesh_check_fn draw_check_fn(struct draw *d) { return hostile(d) ? NULL : square; }
mesh_io_fn draw_io_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? keep_grad : fail_io; }
mesh_partition_fn draw_partition_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? none : wrong; }
mesh_part_fn draw_part_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 70) ? fill : refuse; }
// clang-format on

mesh_module *draw_module(struct draw *d)
{
    if (hostile(d)) {
        return NULL;
    }
    mesh_module *up = mesh_nn_linear(d->mesh, 6, 4);
    return chance_of(d, 40) ? up : mesh_nn_sequential({ "up", up }, { "act", mesh_nn_gelu() });
}

mesh_optimizer *draw_optimizer(struct draw *d)
{
    mesh_module *m = mesh_nn_linear(d->mesh, 3, 2);
    return hostile(d) ? NULL : chance_of(d, 50) ? mesh_sgd(m) : mesh_adamw(m);
}

mesh_child *draw_children(struct draw *d)
{
    mesh_child *list = mine(d, 5 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = (mesh_child){ draw_text(d), draw_module(d) };
    }
    return hostile(d) ? NULL : list;
}

mesh_module_class *draw_module_class(struct draw *d)
{
    mesh_module_class *c = mine(d, sizeof *c);
    static const mesh_module_class whole = { "c", pass_on, NULL };
    if (hostile(d)) {
        *c = (mesh_module_class){ draw_text(d), NULL, NULL };
        return c;
    }
    return hostile(d) ? NULL : (mesh_module_class *)(uintptr_t)&whole;
}

mesh_inputs_class *draw_inputs_class(struct draw *d)
{
    static const mesh_inputs_class whole = { "c", first_of, NULL };
    return hostile(d) ? NULL : (mesh_inputs_class *)(uintptr_t)&whole;
}

mesh_op_class *draw_op_class(struct draw *d)
{
    static const char *const rules[] = { "ik,ik->i", "*a,a->*a",      "",          "->",   "ik",
                                         "ii->i",    "abcdefghij->a", "%n,%s->%d", "*,*->" };
    mesh_op_class *c = mine(d, sizeof *c);
    *c = (mesh_op_class){ .name = draw_text(d),
                          .n_in = draw_few(d),
                          .rule = PICK(rules),
                          .linear = (mesh_op_linear)draw_int(d),
                          .kernel = hostile(d) ? NULL : kernel };
    return hostile(d) ? NULL : c;
}

mesh_op *draw_op(struct draw *d)
{
    return hostile(d)
               ? NULL
               : mesh_register_op(&(mesh_op_class){ .name = "%s", .n_in = 1, .rule = "ik->i", .kernel = kernel });
}

mesh_op_args *draw_op_args(struct draw *d)
{
    return hostile(d) ? NULL : mine(d, sizeof(mesh_op_args));
}

mesh_parallel_plan *draw_plan(struct draw *d)
{
    mesh_parallel_plan *list = mine(d, 5 * sizeof *list);
    int n = (int)below(d, 3);
    for (int i = 0; i < n; i++) {
        list[i] = (mesh_parallel_plan){ any_text(d), chance_of(d, 40) ? mesh_colwise() : mesh_rowwise() };
        list[i].style.kind = hostile(d) ? 99 : list[i].style.kind;
        list[i].style.output = hostile(d) ? draw_placement(d) : list[i].style.output;
    }
    return hostile(d) ? NULL : list;
}
