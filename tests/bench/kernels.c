/* tests/bench/kernels.c - how far each family of kernels is from the memory's speed, on tensors of 64 MiB: one JSON line each.
 *
 *   kernels [ROUNDS [WORD]]      WORD: only the subjects whose name has it
 *
 * The roof of a kernel that reads r arrays and writes w is what the best plain loop over as many arrays of 64 MiB reaches in the
 * same run (copying also by memcpy()); of the bytes, not of the arrays, so that mixed sizes compare too.  All memory has
 * been written before, so no page is touched for the first time.  Printed: median round, the spread of rounds, bytes that
 * must move, and how many times the roof's time it took.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "tensor/kernels.h"
#include "tensor/shape.h"

#define BYTES      ((int64_t)64 << 20)
#define MAX_ROUNDS 100

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void must(bool is_right, const char *what)
{
    if (!is_right) {
        mesh_perror(what);
        exit(1);
    }
}

/* --- the roof ------------------------------------------------------------------------------------------------------ */

enum { MAX_READS = 4, MAX_WRITES = 2 };
static uint64_t *arrays[MAX_READS + MAX_WRITES];
static volatile uint64_t sink;

static void stream_read(int64_t n, int reads)
{
    uint64_t sum = 0;
    for (int k = 0; k < reads; k++) {
        for (int64_t i = 0; i < n; i++) {
            sum += arrays[k][i];
        }
    }
    sink = sum;
}

static void stream_write(int64_t n, int writes)
{
    for (int k = 0; k < writes; k++) {
        memset(arrays[MAX_READS + k], (int)sink & 1, (size_t)n * sizeof **arrays);
    }
}

static void stream_copy(int64_t n, int writes)
{
    for (int k = 0; k < writes; k++) {
        memcpy(arrays[MAX_READS + k], arrays[0], (size_t)n * sizeof **arrays);
    }
}

static void stream_one(int64_t n, int writes)
{
    const uint64_t *a = arrays[0], more = sink & 1;
    for (int k = 0; k < writes; k++) {
        uint64_t *restrict to = arrays[MAX_READS + k];
        for (int64_t i = 0; i < n; i++) {
            to[i] = a[i] + more;
        }
    }
}

static void stream_two(int64_t n, int writes)
{
    uint64_t *restrict to = arrays[MAX_READS], *restrict too = arrays[MAX_READS + 1];
    const uint64_t *a = arrays[0], *b = arrays[1];
    for (int64_t i = 0; i < n; i++) {
        to[i] = a[i] + b[i];
    }
    for (int64_t i = 0; writes > 1 && i < n; i++) {
        too[i] = a[i] ^ b[i];
    }
}

static void stream_three(int64_t n, int writes)
{
    uint64_t *restrict to = arrays[MAX_READS];
    const uint64_t *a = arrays[0], *b = arrays[1], *c = arrays[2];
    (void)writes;
    for (int64_t i = 0; i < n; i++) {
        to[i] = a[i] + b[i] + c[i];
    }
}

/* Where there are two ways, the odd rounds go the other way. */
static void stream(int reads, int writes, int round)
{
    int64_t n = BYTES / (int64_t)sizeof **arrays;
    if (writes == 0) {
        stream_read(n, reads);
    } else if (reads == 0) {
        stream_write(n, writes);
    } else {
        (reads == 1 ? (round % 2 == 0 ? stream_copy : stream_one) : reads == 2 ? stream_two : stream_three)(n, writes);
    }
}

/* GB/s, best of a few rounds. */
static double roof_of(int reads, int writes)
{
    static double known[MAX_READS + 1][MAX_WRITES + 1];
    double *best = &known[reads][writes];
    for (int i = 0; *best <= 0 || i < 6; i++) {
        double begin = now_s();
        stream(reads, writes, i);
        double rate = 1e-9 * (double)((reads + writes) * BYTES) / (now_s() - begin);
        *best = rate > *best ? rate : *best;
    }
    return *best;
}

/* --- the subjects -------------------------------------------------------------------------------------------------- */

/* 64 MiB: 4096 rows of f32, 2048 of f64, 8192 of 16 bits.  A letter per tensor:
 *   m [rows, 4096]   p the same, positive   r [rows, 1]   l [rows]   c [4096]   h [rows / 2, 4096]   s [rows, rows]   0 [] */
enum { ROWS = 4096, COLUMNS = 4096 };

struct subject {
    const char *name;
    kernel_fn kernel;
    mesh_dtype dtype;     /* of what has no dtype of its own below */
    const char *in, *out; /* letters */
    const char *types;    /* per tensor, inputs first: '.' the dtype above, b bool, i i64, f f32, d f64, h f16 */
    struct op_attr attr;
    const char *note; /* "compute": arithmetic, not memory, is what takes the time */
};

/* clang-format off */
#define ROWS_OF_BOTH(X, ...) X(F32, __VA_ARGS__) X(F64, __VA_ARGS__)
#define S(D, name, in, out, note, ...) { #name, k_##name, MESH_##D, in, out, "......", { __VA_ARGS__ }, note },
#define T(D, label, name, in, out, types, note, ...) { label, k_##name, MESH_##D, in, out, types, { __VA_ARGS__ }, note },
static const struct subject subjects[] = {
    ROWS_OF_BOTH(S, add, "mm", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "add of a row", add, "mc", "m", "......", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "add of a column", add, "mr", "m", "......", "", .keepdim = 0)
    ROWS_OF_BOTH(S, mul, "mm", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, mul_scalar, "m", "m", "", .value = { 1.5 })
    ROWS_OF_BOTH(S, relu, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, exp, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, log, "p", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, tanh, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, gelu, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "gelu (tanh)", gelu, "m", "m", "......", "", .mode = 1)
    ROWS_OF_BOTH(S, sigmoid, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, silu, "m", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, sqrt, "p", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(S, sin, "m", "m", "compute", .keepdim = 0)
    ROWS_OF_BOTH(S, softplus, "m", "m", "compute", .keepdim = 0)
    ROWS_OF_BOTH(S, gelu_backward, "mm", "m", "", .keepdim = 0)
    T(F32, "cast to f64", cast, "m", "m", "fd", "", .keepdim = 0)
    T(F32, "cast to f32", cast, "m", "m", "df", "", .keepdim = 0)
    T(F32, "cast f32 to f16", cast, "m", "m", "fh", "", .keepdim = 0)
    T(F32, "cast f16 to f32", cast, "m", "m", "hf", "", .keepdim = 0)
    T(F32, "cast f32 to bf16", cast, "m", "m", "fB", "", .keepdim = 0)
    T(F32, "cast bf16 to f32", cast, "m", "m", "Bf", "", .keepdim = 0)
    T(F32, "cast f32 to i64", cast, "m", "m", "fi", "", .keepdim = 0)
    T(F32, "cast i64 to f32", cast, "m", "m", "if", "", .keepdim = 0)
    T(F16, "add", add, "mm", "m", "......", "", .keepdim = 0)
    T(BF16, "add", add, "mm", "m", "......", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "lt", lt, "mm", "m", "..b", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "where", where, "mmm", "m", "b...", "", .keepdim = 0)
    ROWS_OF_BOTH(S, maximum, "mm", "m", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "sum", sum, "m", "0", "......", "", .dims = 3)
    ROWS_OF_BOTH(T, "sum of dim 1", sum, "m", "r", "......", "", .dims = 2)
    ROWS_OF_BOTH(T, "sum of dim 0", sum, "m", "c", "......", "", .dims = 1)
    ROWS_OF_BOTH(T, "var", var, "m", "0", "......", "", .dims = 3, .value = { 1e-7, 1e-7 })
    ROWS_OF_BOTH(T, "var of dim 1", var, "m", "r", "......", "", .dims = 2, .value = { 1e-3, 1e-3 })
    ROWS_OF_BOTH(T, "var of dim 0", var, "m", "c", "......", "", .dims = 1, .value = { 1e-3, 1e-3 })
    ROWS_OF_BOTH(T, "norm (sum of squares)", power_sum, "m", "0", "......", "", .dims = 3, .value = { 2 })
    ROWS_OF_BOTH(T, "norm of dim 0", power_sum, "m", "c", "......", "", .dims = 1, .value = { 2 })
    ROWS_OF_BOTH(T, "max", amax, "m", "0", "......", "", .dims = 3)
    ROWS_OF_BOTH(T, "max of dim 1", amax, "m", "r", "......", "", .dims = 2)
    ROWS_OF_BOTH(T, "max of dim 0", amax, "m", "c", "......", "", .dims = 1)
    ROWS_OF_BOTH(T, "argmax of dim 1", argmax, "m", "r", ".i", "", .dims = 2)
    ROWS_OF_BOTH(T, "logsumexp of dim 1", logsumexp, "m", "r", "......", "", .dims = 2)
    ROWS_OF_BOTH(T, "softmax of dim 1", softmax, "m", "m", "......", "", .dim = { 1 })
    ROWS_OF_BOTH(T, "softmax of dim 0", softmax, "m", "m", "......", "", .dim = { 0 })
    ROWS_OF_BOTH(T, "log_softmax of dim 1", log_softmax, "m", "m", "......", "", .dim = { 1 })
    ROWS_OF_BOTH(T, "log_softmax of dim 0", log_softmax, "m", "m", "......", "", .dim = { 0 })
    ROWS_OF_BOTH(T, "softmax_backward of dim 1", softmax_backward, "mm", "m", "......", "", .dim = { 1 })
    ROWS_OF_BOTH(S, layer_norm, "mcc", "m", "", .value = { 1e-5 }, .index = { 1 })
    ROWS_OF_BOTH(S, rms_norm, "mc", "m", "", .value = { 1e-5 }, .index = { 1 })
    ROWS_OF_BOTH(S, normalize_grad_input, "mmc", "m", "", .value = { 1e-5 }, .index = { 1 })
    ROWS_OF_BOTH(S, normalize_grad_weight, "mm", "c", "", .value = { 1e-5 }, .index = { 1 })
    ROWS_OF_BOTH(T, "cross_entropy", cross_entropy_sum, "ml", "00", ".i.i", "", .value = { 0, COLUMNS }, .index = { -100 })
    ROWS_OF_BOTH(T, "cross_entropy_grad", cross_entropy_grad, "0ml", "m", "..i.", "", .value = { 0, COLUMNS }, .index = { -100 })
    ROWS_OF_BOTH(T, "cumsum of dim 1", cumsum, "m", "m", "......", "", .dim = { 1 })
    ROWS_OF_BOTH(T, "cumsum of dim 0", cumsum, "m", "m", "......", "", .dim = { 0 })
    ROWS_OF_BOTH(T, "transpose", transpose, "s", "s", "......", "", .dim = { 0, 1 })
    ROWS_OF_BOTH(T, "cat of dim 0", cat, "hh", "m", "......", "", .dim = { 0 })
    ROWS_OF_BOTH(T, "index_select of dim 0", take, "ml", "m", ".i.", "", .dim = { 0 }, .index = { ROWS })
    ROWS_OF_BOTH(T, "tril", tril, "m", "m", "......", "", .keepdim = 0)
    ROWS_OF_BOTH(T, "sort of dim 1", sort, "m", "mm", "..i", "compute", .dim = { 1 })
};
/* clang-format on */

struct filling {
    const char *name;
    struct fill fill;
    const char *note;
};
static const struct filling fillings[] = {
    { "full", { .kind = FILL_VALUE, .a = 1.5 }, "" },
    { "rand", { .kind = FILL_UNIFORM, .a = 0, .b = 1, .key = { .seed = 7 } }, "compute" },
    { "randn", { .kind = FILL_NORMAL, .a = 0, .b = 1, .key = { .seed = 7 } }, "compute" },
    { "dropout's mask", { .kind = FILL_MASK, .a = 0.1, .b = 1, .key = { .seed = 7 } }, "compute" },
};

static mesh_dtype dtype_of(const struct subject *s, int tensor)
{
    switch (s->types[tensor]) {
    case 'b':
        return MESH_BOOL;
    case 'i':
        return MESH_I64;
    case 'f':
        return MESH_F32;
    case 'd':
        return MESH_F64;
    case 'h':
        return MESH_F16;
    case 'B':
        return MESH_BF16;
    default:
        return s->dtype;
    }
}

static mesh_shape shape_of_letter(char letter, int64_t rows)
{
    switch (letter) {
    case 'm':
    case 'p':
        return MESH_SHAPE(rows, COLUMNS);
    case 's': /* a square, so that transposing keeps the shape */
        return MESH_SHAPE(rows, rows);
    case 'h': /* half of it */
        return MESH_SHAPE(rows / 2, COLUMNS);
    case 'r':
        return MESH_SHAPE(rows, 1);
    case 'l':
        return MESH_SHAPE(rows);
    case 'c':
        return MESH_SHAPE(COLUMNS);
    default:
        return (mesh_shape){ .ndim = 0 };
    }
}

/* Numbers around 0; indices and classes below 2048, which all dims have. */
static struct mesh_tensor *made(mesh_shape shape, mesh_dtype t, double least, uint64_t seed)
{
    struct mesh_tensor *x = tensor_new(shape, t), *f = tensor_new(shape, MESH_F32);
    must(x != NULL && f != NULL, "a tensor");
    struct box whole = { .ndim = shape.ndim };
    memcpy(whole.extent, shape.dim, sizeof whole.extent);
    struct fill fill = { .kind = FILL_UNIFORM, .a = least, .b = 2, .key = { .seed = seed } };
    if (t == MESH_I64) {
        fill.a = 0;
        fill.b = 2048;
    }
    must(tensor_fill(f, shape, &whole, &fill) == 0, "filling");
    must(k_cast(&(struct kernel_call){ .in = { f }, .out = { x } }) == 0, "a cast");
    for (int64_t i = 0; t == MESH_BOOL && i < x->n; i++) {
        ((uint8_t *)x->data)[i] = ((float *)f->data)[i] > 0;
    }
    tensor_unref(f);
    return x;
}

/* --- measuring ----------------------------------------------------------------------------------------------------- */

struct work {
    const struct subject *subject;
    struct kernel_call call;
    const struct fill *fill;
    struct box whole;
};

static void run(struct work *w)
{
    int r = w->fill != NULL ? tensor_fill(w->call.out[0], w->call.out[0]->shape, &w->whole, w->fill)
                            : kernel_run(w->subject->kernel, &w->call);
    must(r == 0, "a kernel");
}

struct figure {
    const char *name, *note;
    mesh_dtype dtype;
    int64_t elements, bytes;
    int reads, writes;
};

static void count(struct figure *f, const struct mesh_tensor *t, int *streams)
{
    if (t != NULL) {
        f->bytes += (int64_t)tensor_bytes(t);
        f->elements = t->n > f->elements ? t->n : f->elements;
        *streams += (int64_t)tensor_bytes(t) >= BYTES / 8;
    }
}

static void measure(struct work *w, const char *name, mesh_dtype dtype, const char *note, int rounds)
{
    double seconds[MAX_ROUNDS];
    struct figure f = { .name = name, .note = note, .dtype = dtype };
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        count(&f, w->call.in[i], &f.reads);
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        count(&f, w->call.out[o], &f.writes);
    }
    run(w);
    for (int i = 0; i < rounds; i++) {
        double begin = now_s();
        run(w);
        seconds[i] = now_s() - begin;
    }
    qsort(seconds, (size_t)rounds, sizeof seconds[0], by_value);
    double median = seconds[rounds / 2], rate = 1e-9 * (double)f.bytes / median, roof = roof_of(f.reads, f.writes);
    printf("{\"bench\":\"kernels\",\"kernel\":\"%s\",\"dtype\":\"%s\",\"ns_per_element\":%.3f,\"spread\":%.2f,\"MiB\":%"
           ".0f,"
           "\"GB_per_s\":%.1f,\"roof_GB_per_s\":%.1f,\"times_roof\":%.2f,\"note\":\"%s\"}\n",
           f.name, dtype_name(f.dtype), 1e9 * median / (double)f.elements, seconds[rounds - 1] / seconds[0],
           (double)f.bytes / 0x1p20, rate, roof, roof / rate, f.note);
    (void)fflush(stdout);
}

static void measure_subject(const struct subject *s, int rounds)
{
    int n_in = (int)strlen(s->in), n_out = (int)strlen(s->out);
    int64_t rows = BYTES / COLUMNS / (int64_t)dtype_size(s->dtype);
    struct work w = { .subject = s, .call.attr = &s->attr };
    struct mesh_tensor *in[OP_MAX_INPUTS] = { NULL };
    for (int i = 0; i < n_in; i++) {
        w.call.in[i] = in[i] =
            made(shape_of_letter(s->in[i], rows), dtype_of(s, i), s->in[i] == 'p' ? 0.01 : -2, (uint64_t)(i + 1));
    }
    for (int o = 0; o < n_out; o++) {
        w.call.out[o] = made(shape_of_letter(s->out[o], rows), dtype_of(s, n_in + o), -2, 1);
    }
    measure(&w, s->name, s->dtype, s->note, rounds);
    for (int i = 0; i < n_in; i++) {
        tensor_unref(in[i]);
    }
    for (int o = 0; o < n_out; o++) {
        tensor_unref(w.call.out[o]);
    }
}

static void measure_filling(const struct filling *f, mesh_dtype t, int rounds)
{
    struct work w = { .fill = &f->fill, .whole = { .ndim = 1 } };
    w.call.out[0] = made(MESH_SHAPE(BYTES / (int64_t)dtype_size(t)), t, -2, 1);
    w.whole.extent[0] = w.call.out[0]->n;
    measure(&w, f->name, t, f->note, rounds);
    tensor_unref(w.call.out[0]);
}

/* What the first touch of a fresh result costs, and how it goes away. */
static void measure_fresh(int rounds)
{
    double seconds[MAX_ROUNDS];
    struct mesh_tensor *x = made(MESH_SHAPE(ROWS, COLUMNS), MESH_F32, -2, 1);
    static const struct op_attr none;
    for (int i = 0; i < rounds; i++) {
        double begin = now_s();
        struct mesh_tensor *out = tensor_new(x->shape, x->dtype);
        must(out != NULL && k_relu(&(struct kernel_call){ .in = { x }, .out = { out }, .attr = &none }) == 0, "fresh");
        tensor_unref(out);
        seconds[i] = now_s() - begin;
    }
    tensor_unref(x);
    qsort(seconds, (size_t)rounds, sizeof seconds[0], by_value);
    double rate = 2e-9 * (double)BYTES / seconds[rounds / 2], roof = roof_of(1, 1);
    printf(
        "{\"bench\":\"kernels\",\"kernel\":\"relu into fresh memory, freed\",\"dtype\":\"f32\",\"ns_per_element\":%.3f,"
        "\"spread\":%.2f,\"MiB\":128,\"GB_per_s\":%.1f,\"roof_GB_per_s\":%.1f,\"times_roof\":%.2f,\"note\":\"fresh\"}"
        "\n",
        4e9 * seconds[rounds / 2] / (double)BYTES, seconds[rounds - 1] / seconds[0], rate, roof, roof / rate);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 7;
    const char *word = argc > 2 ? argv[2] : "";
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    for (int k = 0; k < MAX_READS + MAX_WRITES; k++) {
        arrays[k] = aligned_alloc(2 << 20, (size_t)BYTES);
        must(arrays[k] != NULL, "the arrays of the roof");
        memset(arrays[k], 1, (size_t)BYTES);
    }
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (strstr(subjects[i].name, word) != NULL) {
            measure_subject(&subjects[i], strncmp(subjects[i].name, "sort", 4) == 0 ? 1 : rounds);
        }
    }
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++) {
        if (strstr(fillings[i].name, word) != NULL) {
            measure_filling(&fillings[i], MESH_F32, rounds);
            measure_filling(&fillings[i], MESH_F64, rounds);
        }
    }
    if (strstr("fresh", word) != NULL) {
        measure_fresh(rounds);
    }
    return 0;
}
