/* client/tensor/k_conv.c - two-dimensional convolution and its gradients, image by image, as matrix products.
 *
 * The groups of an image's channels count as images, each with the weights of its group.  With the windows of an image as a matrix, W [c kh kw, oh ow] (0 where a window lies over the padding):
 *     y_n = w W_n        dx_n: each element of w' dy_n back to where it came from        dw = sum over n of dy_n W_n'
 * Scratch is one image's windows, and a transposed copy of w for dx.  A padding may be negative: rows that are not looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

struct conv { /* x [n, c, h, w], weight [groups, o, c, kh, kw], y [n, o, oh, ow]; image i is of group i % groups */
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
};

static struct conv conv_of(mesh_shape x, mesh_shape weight, mesh_shape y, const struct op_attr *attr)
{
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
                          .dilation = { attr->dilation[0], attr->dilation[1] } };
}

static int64_t n_taps(const struct conv *v)
{
    return v->c * v->kh * v->kw;
}

static int64_t n_places(const struct conv *v)
{
    return v->oh * v->ow;
}

struct windows { /* element (tap, place) is at tap * tap_step + place * place_step */
    void *data;
    int64_t tap_step, place_step;
};

/* WINDOWS: from an image to its windows.  SPREAD: adds windows to an image. */
#define STEP(D, T, what, visit)                                                                                        \
    static void what##_##D(const struct conv *v, T *image, const struct windows *to)                                   \
    {                                                                                                                  \
        T *windows = to->data;                                                                                         \
        for (int64_t tap = 0; tap < n_taps(v); tap++) {                                                                \
            int64_t c = tap / (v->kh * v->kw);                                                                         \
            int64_t di = tap / v->kw % v->kh * v->dilation[0], dj = tap % v->kw * v->dilation[1];                      \
            for (int64_t place = 0; place < n_places(v); place++) {                                                    \
                int64_t i = place / v->ow * v->stride[0] + di - v->padding[0];                                         \
                int64_t j = place % v->ow * v->stride[1] + dj - v->padding[1];                                         \
                bool is_inside = i >= 0 && i < v->h && j >= 0 && j < v->w;                                             \
                T *window = &windows[tap * to->tap_step + place * to->place_step];                                     \
                visit(T, &image[(c * v->h + i) * v->w + j]);                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }
#define VISIT_CUT(T, pixel) *window = is_inside ? *(pixel) : (T)0
#define VISIT_SPREAD(T, pixel)                                                                                         \
    if (is_inside) {                                                                                                   \
        *(pixel) += *window;                                                                                           \
    }
STEP(F32, float, cut, VISIT_CUT)
STEP(F64, double, cut, VISIT_CUT)
STEP(F32, float, spread, VISIT_SPREAD)
STEP(F64, double, spread, VISIT_SPREAD)

static void cut(const struct conv *v, const struct mesh_tensor *x, int64_t n, const struct windows *to)
{
    int64_t at = n * v->c * v->h * v->w;
    if (x->dtype == MESH_F64) {
        cut_F64(v, (double *)x->data + at, to);
    } else {
        cut_F32(v, (float *)x->data + at, to);
    }
}

static void spread(const struct conv *v, const struct mesh_tensor *dx, int64_t n, const struct windows *from)
{
    int64_t at = n * v->c * v->h * v->w;
    if (dx->dtype == MESH_F64) {
        spread_F64(v, (double *)dx->data + at, from);
    } else {
        spread_F32(v, (float *)dx->data + at, from);
    }
}

/* Image n of t, seen as a matrix. */
static struct mesh_tensor *image_of(const struct mesh_tensor *t, int64_t n, int64_t rows, int64_t columns)
{
    int64_t item = t->dtype == MESH_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    return tensor_view((char *)t->data + n * rows * columns * item, MESH_SHAPE(rows, columns), t->dtype);
}

/* out = a b; takes the references of a and out, which may be NULL. */
static int multiply(struct mesh_tensor *a, const struct mesh_tensor *b, struct mesh_tensor *out)
{
    static const struct op_attr none;
    int r = a == NULL || out == NULL ? err_status()
                                     : k_matmul(&(struct kernel_call){ .in = { a, b }, .out = { out }, .attr = &none });
    tensor_unref(a);
    tensor_unref(out);
    return r;
}

static bool is_known(const struct mesh_tensor *t)
{
    return t->dtype == MESH_F32 || t->dtype == MESH_F64;
}

int k_conv2d(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0], *w = c->in[1];
    struct conv v = conv_of(x->shape, w->shape, c->out[0]->shape, c->attr);
    if (!is_known(x)) {
        return unsupported_dtype("conv2d", x->dtype);
    }
    struct mesh_tensor *windows = tensor_new(MESH_SHAPE(n_taps(&v), n_places(&v)), x->dtype);
    int r = windows == NULL ? err_status() : 0;
    for (int64_t n = 0; r == 0 && n < v.n; n++) {
        cut(&v, x, n, &(struct windows){ windows->data, n_places(&v), 1 });
        r = multiply(image_of(w, n % v.groups, v.o, n_taps(&v)), windows, image_of(c->out[0], n, v.o, n_places(&v)));
    }
    tensor_unref(windows);
    return r;
}

/* w' of each group, one after another. */
static struct mesh_tensor *transposed(const struct mesh_tensor *w, const struct conv *v)
{
    static const struct op_attr swap = { .dim = { 0, 1 } };
    struct mesh_tensor *all = tensor_new(MESH_SHAPE(v->groups * n_taps(v), v->o), w->dtype);
    int r = all == NULL ? -1 : 0;
    for (int64_t g = 0; r == 0 && g < v->groups; g++) {
        struct mesh_tensor *matrix = image_of(w, g, v->o, n_taps(v)), *t = image_of(all, g, n_taps(v), v->o);
        r = matrix == NULL || t == NULL
                ? -1
                : k_transpose(&(struct kernel_call){ .in = { matrix }, .out = { t }, .attr = &swap });
        tensor_unref(matrix);
        tensor_unref(t);
    }
    if (r < 0) {
        tensor_unref(all);
        return NULL;
    }
    return all;
}

int k_conv2d_grad_input(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[0], *w = c->in[1];
    struct conv v = conv_of(c->out[0]->shape, w->shape, dy->shape, c->attr);
    if (!is_known(dy)) {
        return unsupported_dtype("conv2d", dy->dtype);
    }
    memset(c->out[0]->data, 0, tensor_bytes(c->out[0]));
    struct mesh_tensor *windows = tensor_new(MESH_SHAPE(n_taps(&v), n_places(&v)), dy->dtype);
    struct mesh_tensor *turned = windows == NULL ? NULL : transposed(w, &v);
    int r = turned == NULL ? err_status() : 0;
    for (int64_t n = 0; r == 0 && n < v.n; n++) {
        struct mesh_tensor *image = image_of(dy, n, v.o, n_places(&v));
        r = image == NULL ? err_status()
                          : multiply(image_of(turned, n % v.groups, n_taps(&v), v.o), image, tensor_ref(windows));
        tensor_unref(image);
        if (r == 0) {
            spread(&v, c->out[0], n, &(struct windows){ windows->data, n_places(&v), 1 });
        }
    }
    tensor_unref(turned);
    tensor_unref(windows);
    return r;
}

static void add_to(struct mesh_tensor *sum, int64_t begin, const struct mesh_tensor *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        if (sum->dtype == MESH_F64) {
            ((double *)sum->data)[begin + i] += ((const double *)t->data)[i];
        } else {
            ((float *)sum->data)[begin + i] += ((const float *)t->data)[i];
        }
    }
}

int k_conv2d_grad_weight(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[0], *x = c->in[1];
    struct conv v = conv_of(x->shape, c->out[0]->shape, dy->shape, c->attr);
    if (!is_known(dy)) {
        return unsupported_dtype("conv2d", dy->dtype);
    }
    memset(c->out[0]->data, 0, tensor_bytes(c->out[0]));
    struct mesh_tensor *windows = tensor_new(MESH_SHAPE(n_places(&v), n_taps(&v)), dy->dtype);
    struct mesh_tensor *share = windows == NULL ? NULL : tensor_new(MESH_SHAPE(v.o, n_taps(&v)), dy->dtype);
    int r = share == NULL ? err_status() : 0;
    for (int64_t n = 0; r == 0 && n < v.n; n++) {
        cut(&v, x, n, &(struct windows){ windows->data, 1, n_taps(&v) });
        r = multiply(image_of(dy, n, v.o, n_places(&v)), windows, tensor_ref(share));
        if (r == 0) {
            add_to(c->out[0], n % v.groups * share->n, share);
        }
    }
    tensor_unref(share);
    tensor_unref(windows);
    return r;
}
