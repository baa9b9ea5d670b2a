/* client/tensor/k_conv.c - two-dimensional convolution and its gradients, image by image, as matrix products.
 *
 * The groups of an image's channels count as images, each with the weights of its group.  With the windows of an image
 * as a matrix, W [c kh kw, oh ow] (0 where a window lies over the padding):
 *     y_n = w W_n        dx_n: each element of w' dy_n back to where it came from        dw = sum over n of dy_n W_n'
 * W is made by tiles, some of its columns at a time: TILE_BYTES, or LEAST_PLACES columns where those are more.  A
 * padding may be negative: rows that are not looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "tensor/gemm.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

#define TILE_BYTES   ((int64_t)4 << 20)
#define LEAST_PLACES 64 /* fewer, and a product spends its time on the weights */

struct conv { /* x [n, c, h, w], weight [groups, o, c, kh, kw], y [n, o, oh, ow]; image i is of group i % groups */
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
    mesh_dtype dtype;
};

static struct conv conv_of(const struct mesh_tensor *of_x, const struct mesh_tensor *of_w,
                           const struct mesh_tensor *of_y, const struct op_attr *attr)
{
    mesh_shape x = of_x->shape, weight = of_w->shape, y = of_y->shape;
    int64_t groups = weight.dim[1] > 0 ? x.dim[1] / weight.dim[1] : 1; /* of this part: all, or its share */
    return (struct conv){ .n = x.dim[0] * groups,
                          .c = weight.dim[1],
                          .h = x.dim[2],
                          .w = x.dim[3],
                          .o = groups > 0 ? weight.dim[0] / groups : 0,
                          .kh = weight.dim[2],
                          .kw = weight.dim[3],
                          .oh = y.dim[2],
                          .ow = y.dim[3],
                          .groups = groups,
                          .stride = { attr->dim[0], attr->dim[1] },
                          .padding = { attr->index[0], attr->index[1] },
                          .dilation = { attr->dilation[0], attr->dilation[1] },
                          .dtype = of_y->dtype };
}

static int64_t n_taps(const struct conv *v)
{
    return v->c * v->kh * v->kw;
}

static int64_t n_places(const struct conv *v)
{
    return v->oh * v->ow;
}

struct tile { /* some columns of W: of the places begin to begin + n */
    void *windows;
    int64_t begin, n;
};

/* --- from an image to its windows, and back ----------------------------------------------------------------------- */

/* Neighbours in a row of y, at one tap: n elements of the windows; those from lo to hi are pixels, the others
 * padding. */
struct run {
    void *window, *pixel; /* the latter of lo */
    int64_t n, lo, hi, stride;
};
typedef void (*run_fn)(const struct run *r);

/* CUT: pixels become windows.  SPREAD: adds windows to pixels. */
#define RUNS(D, T, U, unused)                                                                                          \
    static void cut_##D(const struct run *r)                                                                           \
    {                                                                                                                  \
        T *window = r->window;                                                                                         \
        const T *pixel = r->pixel;                                                                                     \
        memset(window, 0, (size_t)r->lo * sizeof *window);                                                             \
        if (r->stride == 1) {                                                                                          \
            memcpy(window + r->lo, pixel, (size_t)(r->hi - r->lo) * sizeof *window);                                   \
        }                                                                                                              \
        for (int64_t i = r->lo; r->stride != 1 && i < r->hi; i++) {                                                    \
            window[i] = pixel[(i - r->lo) * r->stride];                                                                \
        }                                                                                                              \
        memset(window + r->hi, 0, (size_t)(r->n - r->hi) * sizeof *window);                                            \
    }                                                                                                                  \
    static void spread_##D(const struct run *r)                                                                        \
    {                                                                                                                  \
        const T *restrict window = r->window;                                                                          \
        T *restrict pixel = r->pixel;                                                                                  \
        for (int64_t i = r->lo; r->stride == 1 && i < r->hi; i++) {                                                    \
            pixel[i - r->lo] += window[i];                                                                             \
        }                                                                                                              \
        for (int64_t i = r->lo; r->stride != 1 && i < r->hi; i++) {                                                    \
            pixel[(i - r->lo) * r->stride] += window[i];                                                               \
        }                                                                                                              \
    }
FLOAT_TYPES(RUNS, 0)

/* How many steps of `stride` from `from` on lie below `to`. */
static int64_t steps_below(int64_t from, int64_t to, int64_t stride)
{
    return to <= from ? 0 : (to - from + stride - 1) / stride;
}

/* The runs of one tap: channel c of the image, shifted by di and dj. */
struct tap {
    int64_t c, di, dj;
};

static struct tap tap_at(const struct conv *v, int64_t i)
{
    return (struct tap){ .c = i / (v->kh * v->kw),
                         .di = i / v->kw % v->kh * v->dilation[0] - v->padding[0],
                         .dj = i % v->kw * v->dilation[1] - v->padding[1] };
}

static void visit_tap(const struct conv *v, char *image, char *windows, const struct tile *t, struct tap tap,
                      run_fn visit)
{
    int64_t item = (int64_t)dtype_size(v->dtype), end = t->begin + t->n;
    for (int64_t place = t->begin, n; place < end; place += n) {
        n = MIN(v->ow - place % v->ow, end - place);
        int64_t i = place / v->ow * v->stride[0] + tap.di, j = place % v->ow * v->stride[1] + tap.dj;
        bool is_inside = i >= 0 && i < v->h;
        int64_t lo = is_inside ? MIN(n, steps_below(j, 0, v->stride[1])) : n;
        int64_t hi = is_inside ? MIN(n, MAX(lo, steps_below(j, v->w, v->stride[1]))) : n;
        visit(&(struct run){ .window = windows + (place - t->begin) * item,
                             .pixel =
                                 lo < hi ? image + ((tap.c * v->h + i) * v->w + j + lo * v->stride[1]) * item : image,
                             .n = n,
                             .lo = lo,
                             .hi = hi,
                             .stride = v->stride[1] });
    }
}

static void visit_tile(const struct conv *v, void *images, int64_t n, const struct tile *t, run_fn visit)
{
    int64_t item = (int64_t)dtype_size(v->dtype);
    char *image = (char *)images + n * v->c * v->h * v->w * item;
    for (int64_t i = 0; i < n_taps(v); i++) {
        visit_tap(v, image, (char *)t->windows + i * t->n * item, t, tap_at(v, i), visit);
    }
}

static void cut(const struct conv *v, const struct mesh_tensor *x, int64_t n, const struct tile *to)
{
    visit_tile(v, x->data, n, to, v->dtype == MESH_F64 ? cut_F64 : cut_F32);
}

static void spread(const struct conv *v, const struct mesh_tensor *dx, int64_t n, const struct tile *from)
{
    visit_tile(v, dx->data, n, from, v->dtype == MESH_F64 ? spread_F64 : spread_F32);
}

/* --- tile by tile ------------------------------------------------------------------------------------------------- */

/* The weights of image n's group. */
static void *weights_of(const struct conv *v, const struct mesh_tensor *w, int64_t n)
{
    return (char *)w->data + (size_t)(n % v->groups * v->o * n_taps(v)) * dtype_size(v->dtype);
}

/* The tile's columns of image n of y; rows are n_places() apart. */
static void *columns_of(const struct conv *v, const struct mesh_tensor *y, int64_t n, const struct tile *t)
{
    return (char *)y->data + (size_t)(n * v->o * n_places(v) + t->begin) * dtype_size(v->dtype);
}

struct work { /* x, w, y: of which the kernel makes one from the others */
    struct conv v;
    const struct mesh_tensor *x, *w, *y;
};
typedef int (*tile_fn)(const struct work *k, int64_t n, const struct tile *t);

static int visit_tiles(const struct work *k, tile_fn visit)
{
    const struct conv *v = &k->v;
    if (v->dtype != MESH_F32 && v->dtype != MESH_F64) {
        return unsupported_dtype("conv2d", v->dtype);
    }
    int64_t bytes = MAX(1, n_taps(v)) * (int64_t)dtype_size(v->dtype); /* of a column */
    int64_t most = MAX(1, MIN(n_places(v), MAX(LEAST_PLACES, TILE_BYTES / bytes)));
    struct tile t = { .windows = mem_alloc((size_t)(most * bytes)) };
    int r = t.windows != NULL ? 0 : err_no_memory((size_t)(most * bytes), "the windows of a convolution");
    for (int64_t n = 0; n < v->n; n++) {
        for (t.begin = 0; r == 0 && t.begin < n_places(v); t.begin += most) {
            t.n = MIN(most, n_places(v) - t.begin);
            r = visit(k, n, &t);
        }
    }
    mem_free(t.windows);
    return r;
}

static int multiply(const struct work *k, int64_t n, const struct tile *t)
{
    const struct conv *v = &k->v;
    struct gemm g = { .name = "conv2d", .dtype = v->dtype, .m = v->o, .n = t->n, .k = n_taps(v), .row_c = n_places(v) };
    cut(v, k->x, n, t);
    return gemm_run(g, weights_of(v, k->w, n), t->windows, columns_of(v, k->y, n, t));
}

int k_conv2d(const struct kernel_call *c)
{
    struct work k = { .x = c->in[0], .w = c->in[1], .y = c->out[0] };
    k.v = conv_of(k.x, k.w, k.y, c->attr);
    return visit_tiles(&k, multiply);
}

static int to_input(const struct work *k, int64_t n, const struct tile *t)
{
    const struct conv *v = &k->v;
    struct gemm g = {
        .name = "conv2d", .dtype = v->dtype, .trans_a = true, .m = n_taps(v), .n = t->n, .k = v->o, .row_b = n_places(v)
    };
    int r = gemm_run(g, weights_of(v, k->w, n), columns_of(v, k->y, n, t), t->windows);
    if (r == 0) {
        spread(v, k->x, n, t);
    }
    return r;
}

int k_conv2d_grad_input(const struct kernel_call *c)
{
    struct work k = { .x = c->out[0], .w = c->in[1], .y = c->in[0] };
    k.v = conv_of(k.x, k.w, k.y, c->attr);
    memset(c->out[0]->data, 0, tensor_bytes(c->out[0]));
    return visit_tiles(&k, to_input);
}

static int to_weight(const struct work *k, int64_t n, const struct tile *t)
{
    const struct conv *v = &k->v;
    struct gemm g = { .name = "conv2d",
                      .dtype = v->dtype,
                      .trans_b = true,
                      .accumulate = true,
                      .m = v->o,
                      .n = n_taps(v),
                      .k = t->n,
                      .row_a = n_places(v) };
    cut(v, k->x, n, t);
    return gemm_run(g, columns_of(v, k->y, n, t), t->windows, weights_of(v, k->w, n));
}

int k_conv2d_grad_weight(const struct kernel_call *c)
{
    struct work k = { .x = c->in[1], .w = c->out[0], .y = c->in[0] };
    k.v = conv_of(k.x, k.w, k.y, c->attr);
    memset(c->out[0]->data, 0, tensor_bytes(c->out[0]));
    return visit_tiles(&k, to_weight);
}
