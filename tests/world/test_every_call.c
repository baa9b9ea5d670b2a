/* tests/world/test_every_call.c - every public function, called with whatever arguments, answers: with one sentence on all ranks.
 *
 * every_call.py writes the calls from the public headers, so that a new function is among them.  Arguments are drawn alike on all
 * ranks, about one in four of them hostile: NULL, far out of range, of another mesh, of another dtype.  Each function runs in worlds
 * of its own.  A call may succeed or fail; it may not crash or hang, say different things on different ranks, fail without a
 * sentence or in another function's name, or end the job, unless it fails on the data of one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <mesh/mesh.h>
#include <mesh/shorthand.h>

#include "base/util.h"

#define N_RANKS     4
#define MAX_CALLS   4000
#define N_OWNED     64
#define ROOM        65536
#define MAX_SECONDS 60 /* of a function */

struct draw {
    uint64_t stream;
    int hostility; /* percent */
    void *owned[N_OWNED];
    int n_owned;
    mesh_device_mesh *mesh, *other;
    mesh_module *module;
    mesh_work *work;
};

/* --- draws ---------------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
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

static bool chance_of(struct draw *d, int percent)
{
    return below(d, 100) < percent;
}

static bool hostile(struct draw *d)
{
    return chance_of(d, d->hostility);
}

/* Memory that lives until the call has ended. */
static void *mine(struct draw *d, size_t bytes)
{
    void *p = calloc(1, bytes);
    if (d->n_owned == N_OWNED || p == NULL) {
        abort();
    }
    return d->owned[d->n_owned++] = p;
}

#define PICK(list) (list)[below(d, (int64_t)ARRAY_SIZE(list))]

/* --- numbers -------------------------------------------------------------------------------------------------------- */

static int draw_int(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, 99, INT_MAX, 65, -9 };
    return hostile(d) ? PICK(bad) : (int)below(d, 4) - (int)chance_of(d, 20);
}

static int draw_few(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, 0 };
    return hostile(d) ? PICK(bad) : 1 + (int)below(d, 4);
}

static int draw_wrong_peer(struct draw *d)
{
    static const int bad[] = { INT_MIN, -2, N_RANKS, 99, INT_MAX };
    return PICK(bad);
}

static int64_t draw_int64(struct draw *d)
{
    static const int64_t bad[] = { INT64_MIN, -1, INT64_MAX, INT64_C(1) << 32, INT64_MAX / 8 + 1, -99 };
    return hostile(d) ? PICK(bad) : below(d, 7);
}

static int64_t draw_few64(struct draw *d)
{
    return hostile(d) ? INT64_MIN : 1 + below(d, 3);
}

/* Never one that waits long. */
static int64_t draw_timeout(struct draw *d)
{
    static const int64_t some[] = { MESH_NO_WAIT, 1, 20 }, bad[] = { INT64_MIN, -2 };
    return hostile(d) ? PICK(bad) : PICK(some);
}

static uint64_t draw_uint64(struct draw *d)
{
    return hostile(d) ? UINT64_MAX : (uint64_t)below(d, 3);
}

static size_t draw_count(struct draw *d)
{
    static const size_t bad[] = { SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 8 + 1, (size_t)1 << 62 };
    return hostile(d) ? PICK(bad) : (size_t)below(d, 9);
}

static size_t draw_cap(struct draw *d)
{
    static const size_t some[] = { 0, 1, 7, 64, 4000 };
    return PICK(some);
}

static double draw_double(struct draw *d)
{
    static const double bad[] = { NAN, INFINITY, -INFINITY, -1, 1e308, 2 };
    return hostile(d) ? PICK(bad) : (double)below(d, 5) * 0.25;
}

static bool draw_bool(struct draw *d)
{
    return chance_of(d, 50);
}

static mesh_dtype draw_dtype(struct draw *d)
{
    static const int bad[] = { 0, -1, 99, INT_MAX };
    return (mesh_dtype)(hostile(d) ? PICK(bad) : chance_of(d, 60) ? (int)MESH_F32 : 1 + (int)below(d, 9));
}

static mesh_reduce_op draw_reduce_op(struct draw *d)
{
    static const int bad[] = { 0, -1, 99, INT_MAX };
    return (mesh_reduce_op)(hostile(d) ? PICK(bad) : 1 + (int)below(d, 8));
}

static mesh_reduction draw_reduction(struct draw *d)
{
    return (mesh_reduction)(hostile(d) ? 77 : below(d, 3));
}

static int draw_kind(struct draw *d)
{
    return hostile(d) ? 99 : (int)below(d, 12);
}

/* --- shapes and layouts --------------------------------------------------------------------------------------------- */

static mesh_shape draw_shape(struct draw *d)
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

static mesh_placement draw_placement(struct draw *d)
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

static mesh_placements draw_placements(struct draw *d)
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

static mesh_device_mesh *draw_mesh(struct draw *d)
{
    return hostile(d) ? NULL : chance_of(d, 85) ? d->mesh : d->other;
}

/* --- names and room ------------------------------------------------------------------------------------------------- */

static char far_text[3000]; /* filled once */
static FILE *nowhere;

static const char *any_text(struct draw *d)
{
    static const char *const some[] = { "0", "a", "b", "up", "up.weight", "cpu", "weight", "key" };
    static const char *const bad[] = {
        "", "%s%n%s", "..", "a.", ".a", "%99999d", "\x80\xff", "[", "nirvana", far_text
    };
    return hostile(d) ? PICK(bad) : PICK(some);
}

static const char *draw_text(struct draw *d)
{
    return hostile(d) ? NULL : any_text(d);
}

static const char *const *draw_names(struct draw *d)
{
    const char **list = mine(d, 6 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = chance_of(d, 50) ? (i ? "b" : "a") : any_text(d);
    }
    return hostile(d) ? NULL : list;
}

static void *draw_room(struct draw *d)
{
    return hostile(d) ? NULL : mine(d, ROOM);
}

static char *draw_text_room(struct draw *d)
{
    return draw_room(d);
}

static mesh_shape *draw_shape_room(struct draw *d)
{
    return draw_room(d);
}

static size_t *draw_size_room(struct draw *d)
{
    return draw_room(d);
}

static int64_t *draw_int64_room(struct draw *d)
{
    return draw_room(d);
}

static const char **draw_name_room(struct draw *d)
{
    return draw_room(d);
}

static double *draw_double_room(struct draw *d)
{
    double *x = draw_room(d);
    if (x != NULL) {
        *x = draw_double(d);
    }
    return x;
}

static mesh_dtensor **draw_results(struct draw *d)
{
    return draw_room(d);
}

static mesh_group **draw_groups(struct draw *d)
{
    return draw_room(d);
}

static void *const *draw_rooms(struct draw *d)
{
    void **list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = draw_room(d);
    }
    return hostile(d) ? NULL : list;
}

static const size_t *draw_counts(struct draw *d)
{
    size_t *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = chance_of(d, 90) ? (size_t)below(d, 5) : draw_count(d);
    }
    return hostile(d) ? NULL : list;
}

static const int *draw_ranks(struct draw *d)
{
    static const int bad[] = { INT_MIN, -1, N_RANKS, INT_MAX, 0 };
    int *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = hostile(d) ? PICK(bad) : i % N_RANKS;
    }
    return hostile(d) ? NULL : list;
}

static FILE *draw_file(struct draw *d)
{
    return hostile(d) ? NULL : nowhere;
}

/* --- tensors -------------------------------------------------------------------------------------------------------- */

static mesh_dtensor *draw_dtensor(struct draw *d)
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

static mesh_dtensor *const *draw_dtensors(struct draw *d)
{
    mesh_dtensor **list = mine(d, 8 * sizeof(mesh_dtensor *)), *first = draw_dtensor(d);
    for (int i = 0; i < 8; i++) {
        list[i] = chance_of(d, 85) ? first : draw_dtensor(d);
    }
    return hostile(d) ? NULL : list;
}

/* The same on all ranks. */
static mesh_tensor *draw_tensor(struct draw *d)
{
    mesh_dtensor *x = draw_dtensor(d);
    return hostile(d) || x == NULL ? NULL : mesh_full_tensor(x);
}

/* --- groups, work --------------------------------------------------------------------------------------------------- */

/* Where one rank may refuse what the others wait for, the world's next call finds that out at once. */
static mesh_group *draw_group(struct draw *d)
{
    return hostile(d)                             ? NULL
           : chance_of(d, 60) || d->hostility > 0 ? mesh_world()
                                                  : mesh_get_group(d->mesh, chance_of(d, 50) ? "a" : "b");
}

static mesh_work *draw_work(struct draw *d)
{
    return hostile(d) ? NULL : mesh_barrier_async(mesh_world());
}

/* The peer is wrong: nobody answers. */
static mesh_message *draw_message(struct draw *d)
{
    mesh_message *m = mine(d, sizeof *m);
    *m = (mesh_message){ draw_wrong_peer(d), draw_int(d), draw_count(d) };
    return hostile(d) ? NULL : m;
}

static mesh_transfer *draw_transfers(struct draw *d)
{
    mesh_transfer *list = mine(d, 8 * sizeof *list);
    for (int i = 0; i < 8; i++) {
        list[i] = (mesh_transfer){ (mesh_direction)draw_int(d), draw_room(d), draw_count(d), draw_dtype(d),
                                   draw_wrong_peer(d),          draw_int(d) };
    }
    return hostile(d) ? NULL : list;
}

static mesh_comm_log *draw_log(struct draw *d)
{
    return hostile(d) ? NULL : mesh_comm_log_begin();
}

static mesh_scope *draw_scope(struct draw *d)
{
    (void)d;
    return NULL;
}

static mesh_named_placement *draw_named(struct draw *d)
{
    mesh_named_placement *list = mine(d, 6 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = (mesh_named_placement){ any_text(d), draw_placement(d) };
    }
    return hostile(d) ? NULL : list;
}

/* --- modules and functions of the caller's -------------------------------------------------------------------------- */

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

static mesh_grad_fn draw_grad_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? keep_grad : lose_shape; }
static mesh_check_fn draw_check_fn(struct draw *d) { return hostile(d) ? NULL : square; }
static mesh_io_fn draw_io_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? keep_grad : fail_io; }
static mesh_partition_fn draw_partition_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 50) ? none : wrong; }
static mesh_part_fn draw_part_fn(struct draw *d) { return hostile(d) ? NULL : chance_of(d, 70) ? fill : refuse; }
// clang-format on

static mesh_module *draw_module(struct draw *d)
{
    if (hostile(d)) {
        return NULL;
    }
    mesh_module *up = mesh_nn_linear(d->mesh, 6, 4);
    return chance_of(d, 40) ? up : mesh_nn_sequential({ "up", up }, { "act", mesh_nn_gelu() });
}

static mesh_optimizer *draw_optimizer(struct draw *d)
{
    mesh_module *m = mesh_nn_linear(d->mesh, 3, 2);
    return hostile(d) ? NULL : chance_of(d, 50) ? mesh_sgd(m) : mesh_adamw(m);
}

static mesh_child *draw_children(struct draw *d)
{
    mesh_child *list = mine(d, 5 * sizeof *list);
    int n = (int)below(d, 4);
    for (int i = 0; i < n; i++) {
        list[i] = (mesh_child){ draw_text(d), draw_module(d) };
    }
    return hostile(d) ? NULL : list;
}

static mesh_module_class *draw_module_class(struct draw *d)
{
    mesh_module_class *c = mine(d, sizeof *c);
    static const mesh_module_class whole = { "c", pass_on, NULL };
    if (hostile(d)) {
        *c = (mesh_module_class){ draw_text(d), NULL, NULL };
        return c;
    }
    return hostile(d) ? NULL : (mesh_module_class *)(uintptr_t)&whole;
}

static mesh_inputs_class *draw_inputs_class(struct draw *d)
{
    static const mesh_inputs_class whole = { "c", first_of, NULL };
    return hostile(d) ? NULL : (mesh_inputs_class *)(uintptr_t)&whole;
}

static mesh_op_class *draw_op_class(struct draw *d)
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

static mesh_op *draw_op(struct draw *d)
{
    return hostile(d)
               ? NULL
               : mesh_register_op(&(mesh_op_class){ .name = "%s", .n_in = 1, .rule = "ik->i", .kernel = kernel });
}

static mesh_op_args *draw_op_args(struct draw *d)
{
    return hostile(d) ? NULL : mine(d, sizeof(mesh_op_args));
}

static mesh_parallel_plan *draw_plan(struct draw *d)
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

/* --- calls ---------------------------------------------------------------------------------------------------------- */

/* Arguments are there: what failed so far was their making. */
static void begin_call(struct draw *d);

#include "every_call.inc"

struct answer { /* of one rank to one call */
    bool is_made;
    mesh_error error;
};

static struct answer answers[MAX_CALLS][N_RANKS];
static int current, n_calls; /* of the function under test */
static size_t function;
static volatile int last_begun; /* by any rank */
static uint64_t seed;

static void begin_call(struct draw *d)
{
    (void)d;
    (void)!mesh_world_run(0, NULL, NULL); /* the last error is now this one */
}

static const char *reset_message(void)
{
    static _Thread_local mesh_error was;
    (void)!mesh_world_run(0, NULL, NULL);
    was = *mesh_last_error();
    return was.message;
}

static void end_call(struct draw *d, mesh_scope *scope, struct answer *ret_answer)
{
    int waited = d->work != NULL ? mesh_wait(d->work, 0) : 0;
    mesh_error after = *mesh_last_error();
    int ended = mesh_scope_end(scope);
    const mesh_error none_ = { .status = MESH_OK };
    mesh_error e = ended < 0 ? *mesh_last_error() : after;
    ret_answer->error = ended == 0 && waited == 0 && strcmp(e.message, reset_message()) == 0 ? none_ : e;
    ret_answer->is_made = true;
    for (int i = 0; i < d->n_owned; i++) {
        free(d->owned[i]);
    }
}

/* Less than 0 when the job is over. */
static int one_call(int k)
{
    struct draw d = { .stream = mixed(seed ^ (function * 1000003 + (uint64_t)k)),
                      .hostility = k % 3 == 0 ? 0 : 4 + k % 11 };
    mesh_grad_enable(true);
    mesh_explicit(false);
    mesh_check_replicas(false);
    d.mesh = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("a", "b"));
    d.other = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("c", "d"));
    mesh_scope *scope = mesh_scope_begin();
    last_begun = k;
    calls[function].call(&d);
    end_call(&d, scope, &answers[k][mesh_rank()]);
    return mesh_barrier(mesh_world());
}

static int run(void *arg)
{
    (void)arg;
    for (int k = current; k < n_calls; k++) {
        if (one_call(k) < 0) {
            return -1;
        }
    }
    return 0;
}

/* --- judging -------------------------------------------------------------------------------------------------------- */

static int complain(int k, const char *what)
{
    printf("%s, call %d: %s\n", calls[function].name, k, what);
    for (int r = 0; r < N_RANKS; r++) {
        const mesh_error *e = &answers[k][r].error;
        printf("    rank %d: %s [%s in %s]\n", r, e->message, mesh_status_name(e->status), e->where ? e->where : "-");
    }
    return 1;
}

/* Memory is every rank's own as well. */
static bool is_of_one_rank(int k)
{
    return calls[function].is_of_each_rank || answers[k][0].error.status == MESH_ENOMEM;
}

static int judge(int k)
{
    const mesh_error *first = &answers[k][0].error;
    for (int r = 0; r < N_RANKS; r++) {
        const mesh_error *e = &answers[k][r].error;
        if (!calls[function].is_of_each_rank &&
            (e->status != first->status || strcmp(e->message, first->message) != 0)) {
            return complain(k, "the ranks say different things");
        }
        if (e->status < 0 && (e->message[0] == '\0' || strstr(e->message, "(null)") != NULL || e->where == NULL)) {
            return complain(k, "no sentence");
        }
    }
    return 0;
}

static void last_words(int signal_)
{
    char text[160];
    int n = snprintf(text, sizeof text, "signal %d in %s, call %d\n", signal_, calls[function].name, last_begun);
    (void)!write(2, text, (size_t)n);
    signal(signal_, SIG_DFL);
    raise(signal_);
}

/* How many calls all ranks have made, from the first on. */
static int count_made(void)
{
    for (int k = 0; k < n_calls; k++) {
        for (int r = 0; r < N_RANKS; r++) {
            if (!answers[k][r].is_made) {
                return k;
            }
        }
    }
    return n_calls;
}

static void show(int from, int to)
{
    for (int k = from; k < to; k++) {
        printf("%s %d: %s\n", calls[function].name, k, answers[k][0].error.message);
    }
}

static int try_function(bool is_verbose)
{
    int failures = 0;
    memset(answers, 0, sizeof answers);
    while (current < n_calls) {
        alarm(MAX_SECONDS);
        int r = mesh_world_run(N_RANKS, run, NULL), made = count_made();
        for (int k = current; k < made; k++) {
            failures += judge(k);
        }
        if (r < 0 && made > 0 && !is_of_one_rank(made - 1)) {
            failures += complain(made - 1, "the job is over");
        }
        if (is_verbose) {
            show(current, made);
        }
        current = made > current ? made : n_calls;
    }
    current = 0;
    return failures;
}

/* What asks for far too much memory is to be refused by the system, not to be tried. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1000:allocator_may_return_null=1";
}

static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit most = { (rlim_t)3 << 30, (rlim_t)3 << 30 };
    (void)!setrlimit(RLIMIT_AS, &most);
#endif
}

/* test_every_call [calls of each function [seed [function]]] */
int main(int argc, char **argv)
{
    int failures = 0;
    n_calls = argc > 1 ? atoi(argv[1]) : 30;
    n_calls = n_calls < 1 || n_calls > MAX_CALLS ? MAX_CALLS : n_calls;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    limit_memory();
    memset(far_text, 'x', sizeof far_text - 1);
    nowhere = fopen("/dev/null", "we");
    signal(SIGALRM, last_words);
    signal(SIGSEGV, last_words);
    signal(SIGABRT, last_words);
    for (function = 0; function < ARRAY_SIZE(calls); function++) {
        if (argc <= 3 || strcmp(argv[3], calls[function].name) == 0) {
            failures += try_function(argc > 3);
        }
    }
    fclose(nowhere);
    printf("%zu functions, %d calls each, %d failed\n", ARRAY_SIZE(calls), n_calls, failures);
    return failures > 0;
}
