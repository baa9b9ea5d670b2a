/* client/tensor/fill.c - fills a part of a tensor so that every layout gives the same whole.
 *
 * Element i of the part is a function of its row-major index in the *global* tensor, so that any number of ranks in any
 * layout hold the same logical tensor, random numbers included.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/permutation.h"
#include "tensor/random.h"
#include "tensor/shape.h"
#include "base/vector.h"
#include "tensor/walk.h"

/* n elements whose global indices begin at `index`, `step` apart. */
typedef void (*fill_row)(void *out, const struct fill *f, int64_t index, int64_t step, int64_t n);

/* The rows of random numbers go through blocks of bits or of normal numbers. */
static void next_range(struct random_range *r, const struct fill *f, int64_t index, int64_t step, int64_t n)
{
    *r = (struct random_range){
        .key = f->key, .index = (uint64_t)index, .step = (uint64_t)step, .n = MIN(n, RANDOM_MOST)
    };
}

/* 24 bits, which f32 holds exactly; still a rounding may reach the open end, whose neighbour is `last`. */
static VECTOR_ROW(uniform_F32, (float *restrict out, const uint32_t *bits, int64_t n, const struct fill *f),
                  (out, bits, n, f))
{
    const double a = f->a, width = f->b - f->a;
    const float end = f->a < f->b ? (float)f->b : INFINITY, last = nextafterf((float)f->b, (float)f->a);
    for (int64_t i = 0; i < n; i++) {
        float v = (float)(a + width * ((double)(int32_t)(bits[i] >> 8) * 0x1p-24));
        out[i] = v >= end ? last : v;
    }
}

/* The bits as a signed number, so that a vector of them becomes numbers in one step. */
static inline double number_of(uint32_t bits)
{
    return (double)(int32_t)(bits ^ 0x80000000U) + 0x1p31;
}

static VECTOR_ROW(uniform_F64, (double *restrict out, const uint32_t *bits, int64_t n, const struct fill *f),
                  (out, bits, n, f))
{
    const double a = f->a, width = f->b - f->a;
    for (int64_t i = 0; i < n; i++) {
        out[i] = a + width * (number_of(bits[i]) * 0x1p-32);
    }
}

#define RANDOM_ROWS(D, T, U, unused)                                                                                   \
    static VECTOR_ROW(mask_##D, (T *restrict out, const uint32_t *bits, int64_t n, const struct fill *f),              \
                      (out, bits, n, f))                                                                               \
    {                                                                                                                  \
        const double chance = f->a;                                                                                    \
        const T kept = (T)f->b;                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = number_of(bits[i]) * 0x1p-32 < chance ? 0 : kept;                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(normal_##D, (T *restrict out, const double *numbers, int64_t n, const struct fill *f),           \
                      (out, numbers, n, f))                                                                            \
    {                                                                                                                  \
        const double mean = f->a, deviation = f->b;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)(mean + deviation * numbers[i]);                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    RANDOM_ROW(D, T, uniform, uint32_t, random_bits)                                                                   \
    RANDOM_ROW(D, T, mask, uint32_t, random_bits)                                                                      \
    RANDOM_ROW(D, T, normal, double, random_normal)
#define RANDOM_ROW(D, T, name, S, draw)                                                                                \
    static void name##_row_##D(void *out, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        S drawn[RANDOM_MOST];                                                                                          \
        struct random_range r;                                                                                         \
        for (int64_t i = 0; i < n; i += r.n) {                                                                         \
            next_range(&r, f, index + i * step, step, n - i);                                                          \
            draw(&r, drawn);                                                                                           \
            name##_##D((T *)out + i, drawn, r.n, f);                                                                   \
        }                                                                                                              \
    }
FLOAT_TYPES(RANDOM_ROWS, 0)

#define REPEAT(D, T, U, unused)                                                                                        \
    static void repeat_##D(T *out, T v, int64_t n)                                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = v;                                                                                                \
        }                                                                                                              \
    }
NUMBER_TYPES(REPEAT, 0)
REPEAT(F16, uint16_t, uint16_t, 0)
REPEAT(BF16, uint16_t, uint16_t, 0)

#define VALUE_ROW(D, T, U, unused)                                                                                     \
    static void value_row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        (void)index, (void)step;                                                                                       \
        repeat_##D(out_, (T)f->a, n);                                                                                  \
    }
NUMBER_TYPES(VALUE_ROW, 0)

#define VALUE_ROW_HALF(D, encode)                                                                                      \
    static void value_row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        (void)index, (void)step;                                                                                       \
        repeat_##D(out_, encode((float)f->a), n);                                                                      \
    }
VALUE_ROW_HALF(F16, float_to_f16)
VALUE_ROW_HALF(BF16, float_to_bf16)

/* The second half counts from the end, so that the last point is exact and a symmetric range is. */
static double linear_point(const struct fill *f, int64_t i)
{
    if (f->n < 2) {
        return f->a;
    }
    double step = (f->b - f->a) / (double)(f->n - 1);
    return i < f->n / 2 ? f->a + step * (double)i : f->b - step * (double)(f->n - 1 - i);
}

double fill_point(const struct fill *f, int64_t i)
{
    if (f->kind == FILL_STEPS) {
        return f->a + (double)i * f->b;
    }
    double x = linear_point(f, i);
    return f->kind == FILL_POWER ? pow(f->base, x) : x;
}

#define POINT_ROW(D, T, U, unused)                                                                                     \
    static void point_row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        T *out = out_;                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)fill_point(f, index + i * step);                                                               \
        }                                                                                                              \
    }
NUMBER_TYPES(POINT_ROW, 0)

static void value_row_BOOL(void *out, const struct fill *f, int64_t index, int64_t step, int64_t n)
{
    (void)index;
    (void)step;
    memset(out, f->a != 0 ? 1 : 0, (size_t)n);
}

/* A whole number below `width` (at most 2^32) of the bits of element `index`: the upper half of bits * width.  Of the
 * 2^32 products the lower halves under 2^32 mod width would make some numbers likelier; those draw again, from a stream
 * of their own per try, so that every number is as likely as every other and still a function of the index (Lemire
 * 2019). */
static inline uint64_t whole_below(uint32_t bits, uint64_t width, const struct random_range *r, uint64_t index)
{
    uint64_t product = bits * width;
    struct rng_key key = r->key;
    while ((uint32_t)product < width && (uint32_t)product < (UINT64_C(1) << 32) % width) {
        key.call += UINT64_C(1) << 56;
        product = rng_bits(key, index) * width;
    }
    return product >> 32;
}

/* Whole numbers from a up to b. */
#define WHOLE_ROW(D, T, U, unused)                                                                                     \
    static void whole_row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        T *out = out_;                                                                                                 \
        uint32_t drawn[RANDOM_MOST];                                                                                   \
        uint64_t width = (uint64_t)(f->b - f->a);                                                                      \
        struct random_range r;                                                                                         \
        for (int64_t i = 0; i < n; i += r.n) {                                                                         \
            next_range(&r, f, index + i * step, step, n - i);                                                          \
            random_bits(&r, drawn);                                                                                    \
            for (int64_t k = 0; k < r.n; k++) {                                                                        \
                uint64_t below = whole_below(drawn[k], width, &r, r.index + (uint64_t)k * r.step);                     \
                out[i + k] = (T)((int64_t)f->a + (int64_t)below);                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
INT_TYPES(WHOLE_ROW, 0)

#define ORDER_ROW(D, T, U, unused)                                                                                     \
    static void order_row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                \
    {                                                                                                                  \
        T *out = out_;                                                                                                 \
        struct permutation p;                                                                                          \
        permutation_init(&p, f->key, (uint64_t)f->n);                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)permutation_at(&p, (uint64_t)(index + i * step));                                              \
        }                                                                                                              \
    }
INT_TYPES(ORDER_ROW, 0)

static const fill_row f32_rows[] = {
    [FILL_UNIFORM] = uniform_row_F32, [FILL_NORMAL] = normal_row_F32, [FILL_MASK] = mask_row_F32,
    [FILL_STEPS] = point_row_F32,     [FILL_LINEAR] = point_row_F32,  [FILL_POWER] = point_row_F32
};

/* Numbers of 16 bits are those of f32, rounded; one that is rounded up to the open end of a range becomes its
 * neighbour. */
#define ROW_HALF(D, encode, decode)                                                                                    \
    static uint16_t below_##D(float end)                                                                               \
    {                                                                                                                  \
        uint16_t v = encode(end);                                                                                      \
        while (decode(v) >= end) {                                                                                     \
            v = (v & 0x7fff) == 0 ? 0x8001 : (uint16_t)((v & 0x8000) != 0 ? v + 1 : v - 1);                            \
        }                                                                                                              \
        return v;                                                                                                      \
    }                                                                                                                  \
    static void row_##D(void *out_, const struct fill *f, int64_t index, int64_t step, int64_t n)                      \
    {                                                                                                                  \
        uint16_t *out = out_;                                                                                          \
        float wide[RANDOM_MOST], end = (float)f->b;                                                                    \
        bool is_open = f->kind == FILL_UNIFORM && f->a < f->b;                                                         \
        uint16_t last = is_open ? below_##D(end) : 0;                                                                  \
        for (int64_t i = 0; i < n; i += RANDOM_MOST) {                                                                 \
            int64_t some = MIN(n - i, RANDOM_MOST);                                                                    \
            f32_rows[f->kind](wide, f, index + i * step, step, some);                                                  \
            for (int64_t k = 0; k < some; k++) {                                                                       \
                uint16_t v = encode(wide[k]);                                                                          \
                out[i + k] = is_open && decode(v) >= end ? last : v;                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
ROW_HALF(F16, float_to_f16, float_from_f16)
ROW_HALF(BF16, float_to_bf16, float_from_bf16)

#define VALUE_ENTRY(D, T, U, unused)   [MESH_##D] = value_row_##D,
#define UNIFORM_ENTRY(D, T, U, unused) [MESH_##D] = uniform_row_##D,
#define NORMAL_ENTRY(D, T, U, unused)  [MESH_##D] = normal_row_##D,
#define MASK_ENTRY(D, T, U, unused)    [MESH_##D] = mask_row_##D,
#define POINT_ENTRY(D, T, U, unused)   [MESH_##D] = point_row_##D,
#define WHOLE_ENTRY(D, T, U, unused)   [MESH_##D] = whole_row_##D,
#define ORDER_ENTRY(D, T, U, unused)   [MESH_##D] = order_row_##D,
#define HALF_ENTRIES                   [MESH_F16] = row_F16, [MESH_BF16] = row_BF16,
static const fill_row fill_rows[][N_DTYPES] = {
    [FILL_VALUE] = { [MESH_BOOL] = value_row_BOOL,
                     [MESH_F16] = value_row_F16,
                     [MESH_BF16] = value_row_BF16,
                     NUMBER_TYPES(VALUE_ENTRY, 0) },
    [FILL_UNIFORM] = { HALF_ENTRIES FLOAT_TYPES(UNIFORM_ENTRY, 0) },
    [FILL_NORMAL] = { HALF_ENTRIES FLOAT_TYPES(NORMAL_ENTRY, 0) },
    [FILL_MASK] = { HALF_ENTRIES FLOAT_TYPES(MASK_ENTRY, 0) },
    [FILL_STEPS] = { HALF_ENTRIES NUMBER_TYPES(POINT_ENTRY, 0) },
    [FILL_LINEAR] = { HALF_ENTRIES NUMBER_TYPES(POINT_ENTRY, 0) },
    [FILL_POWER] = { HALF_ENTRIES NUMBER_TYPES(POINT_ENTRY, 0) },
    [FILL_WHOLE] = { INT_TYPES(WHOLE_ENTRY, 0) },
    [FILL_ORDER] = { INT_TYPES(ORDER_ENTRY, 0) },
};

static const char *const fill_names[] = {
    [FILL_VALUE] = "full",      [FILL_UNIFORM] = "rand",   [FILL_NORMAL] = "randn",  [FILL_STEPS] = "arange",
    [FILL_LINEAR] = "linspace", [FILL_POWER] = "logspace", [FILL_WHOLE] = "randint", [FILL_ORDER] = "randperm"
};

/* What the program called: several factories fill in one way. */
static const char *factory_name(enum fill_kind kind)
{
    const char *entered = err_entered(), *prefix = "mesh_";
    return strncmp(entered, prefix, strlen(prefix)) == 0 ? entered + strlen(prefix) : fill_names[kind];
}

int fill_check(const struct fill *f, mesh_dtype t)
{
    if (fill_rows[f->kind][t] == NULL) {
        return unsupported_dtype(factory_name(f->kind), t);
    }
    return f->kind != FILL_VALUE || number_fits(t, f->a)
               ? 0
               : err_set(MESH_EINVAL, "%s: a tensor of %s cannot hold %g", factory_name(f->kind), dtype_name(t), f->a);
}

int tensor_fill_box(struct mesh_tensor *out, const struct box *local, mesh_shape global, const struct box *b,
                    const struct fill *f)
{
    fill_row row = fill_rows[f->kind][out->dtype];
    int r = fill_check(f, out->dtype);
    if (r < 0) {
        return r;
    }
    PRE(b->ndim == global.ndim && out->shape.ndim == global.ndim && local->ndim == global.ndim);
    int64_t item = (int64_t)dtype_size(out->dtype), begin = 0, to = 0;
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    for (int d = 0; d < global.ndim; d++) {
        int64_t stride = shape_inner(global, d), out_stride = shape_inner(out->shape, d);
        begin += b->offset[d] * stride;
        to += local->offset[d] * out_stride;
        walk_push(&w, b->extent[d], (int64_t[WALK_OPERANDS]){ out_stride, stride });
    }
    bool is_dense = walk_step(&w, 0) == 1; /* else rows are of elements that lie apart */
    int64_t step = walk_step(&w, 1), inner = walk_inner(&w), n = is_dense ? inner : 1;
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        for (int64_t i = 0; i < inner; i += n) {
            int64_t element = to + at.offset[0] + (is_dense ? 0 : i * walk_step(&w, 0));
            row((char *)out->data + element * item, f, begin + at.offset[1] + i * step, step, n);
        }
    }
    return 0;
}

int tensor_fill(struct mesh_tensor *out, mesh_shape global, const struct box *b, const struct fill *f)
{
    struct box all = { .ndim = b->ndim };
    memcpy(all.extent, b->extent, sizeof all.extent);
    return tensor_fill_box(out, &all, global, b, f);
}
