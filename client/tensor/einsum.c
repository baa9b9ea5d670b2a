/* client/tensor/einsum.c - brings two tensors into the form of a stack of matrix products, and the result out of it.
 *
 *     letters in   a and b and result   stack      B
 *                  a and result         rows       M        a -> sum over its own letters -> [B, M, K]
 *                  b and result         columns    N        b -> sum over its own letters -> [B, K, N]
 *                  a and b              summed     K        [B, M, K] [B, K, N] -> [B, M, N] -> order of the result
 *
 * What lies in that order already is used as it is; the rest is copied.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/einsum.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "tensor/kernels.h"

struct letters {
    int n;
    char at[3 * MESH_MAX_NDIM];
};

static bool has(const struct letters *l, char letter)
{
    return l->n > 0 && memchr(l->at, letter, (size_t)l->n) != NULL;
}

static int place(const struct letters *l, char letter)
{
    return (int)((const char *)memchr(l->at, letter, (size_t)l->n) - l->at);
}

static struct letters read_letters(const char **inout_at)
{
    struct letters l = { .n = 0 };
    for (; **inout_at >= 'a' && **inout_at <= 'z' && l.n < MESH_MAX_NDIM; ++*inout_at) {
        l.at[l.n++] = **inout_at;
    }
    *inout_at += **inout_at == ',' ? 1 : (**inout_at == '-' ? 2 : 0);
    return l;
}

/* Those of `from` that are, or are not, in x and y. */
static struct letters chosen(const struct letters *from, const struct letters *x, bool in_x, const struct letters *y,
                             bool in_y)
{
    struct letters l = { .n = 0 };
    for (int i = 0; i < from->n; i++) {
        if (has(x, from->at[i]) == in_x && has(y, from->at[i]) == in_y) {
            l.at[l.n++] = from->at[i];
        }
    }
    return l;
}

static struct letters joined(const struct letters *x, const struct letters *y, const struct letters *z)
{
    struct letters l = *x;
    memcpy(l.at + l.n, y->at, (size_t)y->n);
    l.n += y->n;
    memcpy(l.at + l.n, z->at, (size_t)z->n);
    l.n += z->n;
    return l;
}

/* The product of the extents that these letters have. */
static int64_t extent(const struct letters *l, const struct mesh_tensor *t, const struct letters *of_t)
{
    int64_t n = 1;
    for (int i = 0; i < l->n; i++) {
        n *= t->shape.dim[place(of_t, l->at[i])];
    }
    return n;
}

/* Summed over the letters that only t has; *inout_letters loses them.  The caller's reference; NULL: error set. */
static struct mesh_tensor *without_own(const struct mesh_tensor *t, const struct letters *own,
                                       struct letters *inout_letters)
{
    struct op_attr attr = { .mode = 0 };
    mesh_shape shape = { .ndim = 0 };
    struct letters left = { .n = 0 };
    for (int i = 0; i < inout_letters->n; i++) {
        if (has(own, inout_letters->at[i])) {
            attr.dims |= UINT32_C(1) << i;
        } else {
            shape.dim[shape.ndim++] = t->shape.dim[i];
            left.at[left.n++] = inout_letters->at[i];
        }
    }
    struct mesh_tensor *sum = tensor_new(shape, t->dtype);
    if (sum != NULL && k_sum(&(struct kernel_call){ .in = { t }, .out = { sum }, .attr = &attr }) < 0) {
        tensor_unref(sum);
        return NULL;
    }
    *inout_letters = left;
    return sum;
}

static bool is_same(const struct letters *x, const struct letters *y)
{
    return x->n == y->n && memcmp(x->at, y->at, (size_t)x->n) == 0;
}

/* t with its dims in the order of `to`. */
static int permute(const struct mesh_tensor *t, const struct letters *from, const struct letters *to,
                   struct mesh_tensor *out)
{
    struct op_attr attr = { .shape = { .ndim = to->n } };
    for (int i = 0; i < to->n; i++) {
        attr.shape.dim[i] = place(from, to->at[i]);
    }
    return k_permute(&(struct kernel_call){ .in = { t }, .out = { out }, .attr = &attr });
}

/* t summed over its own letters, ordered as `to`, and called `flat`.  The caller's reference; NULL: error set. */
static struct mesh_tensor *arranged(const struct mesh_tensor *t, struct letters letters, const struct letters *own,
                                    const struct letters *to, mesh_shape flat)
{
    struct mesh_tensor *sum = own->n > 0 ? without_own(t, own, &letters) : NULL, *out = NULL, *view = NULL;
    if (own->n > 0 && sum == NULL) {
        return NULL;
    }
    if (is_same(&letters, to)) { /* which is only read */
        view = tensor_share(sum != NULL ? sum : (struct mesh_tensor *)(uintptr_t)t, flat);
        tensor_unref(sum);
        return view;
    }
    mesh_shape shape = { .ndim = to->n };
    const struct mesh_tensor *from = sum != NULL ? sum : t;
    for (int i = 0; i < to->n; i++) {
        shape.dim[i] = from->shape.dim[place(&letters, to->at[i])];
    }
    out = tensor_new(shape, t->dtype);
    if (out != NULL && permute(from, &letters, to, out) == 0) {
        view = tensor_share(out, flat);
    }
    tensor_unref(sum);
    tensor_unref(out);
    return view;
}

static mesh_shape shape_by(const struct letters *l, const struct letters *a_letters, const struct mesh_tensor *a,
                           const struct letters *b_letters, const struct mesh_tensor *b)
{
    mesh_shape s = { .ndim = l->n };
    for (int i = 0; i < l->n; i++) {
        s.dim[i] = has(a_letters, l->at[i]) ? a->shape.dim[place(a_letters, l->at[i])]
                                            : b->shape.dim[place(b_letters, l->at[i])];
    }
    return s;
}

/* x [b, m, k] times y [b, k, n], seen as `shape`, ordered as the result. */
static int multiply(const struct mesh_tensor *x, const struct mesh_tensor *y, mesh_shape shape,
                    const struct letters *from, const struct letters *to, struct mesh_tensor *out)
{
    struct op_attr none = { .mode = 0 };
    bool is_in_place = is_same(from, to);
    mesh_shape stack = MESH_SHAPE(x->shape.dim[0], x->shape.dim[1], y->shape.dim[2]);
    struct mesh_tensor *product = is_in_place ? tensor_share(out, stack) : tensor_new(stack, x->dtype);
    struct mesh_tensor *view = product == NULL ? NULL : tensor_share(product, shape);
    int r = view == NULL ? err_status() : 0;
    r = r < 0 ? r : k_matmul(&(struct kernel_call){ .in = { x, y }, .out = { product }, .attr = &none });
    r = r < 0 || is_in_place ? r : permute(view, from, to, out);
    tensor_unref(view);
    tensor_unref(product);
    return r;
}

int tensor_einsum(const char *equation, const struct mesh_tensor *a, const struct mesh_tensor *b,
                  struct mesh_tensor *out)
{
    const char *at = equation;
    struct letters of_a = read_letters(&at), of_b = read_letters(&at), of_out = read_letters(&at);
    struct letters stack = chosen(&of_a, &of_b, true, &of_out, true),
                   summed = chosen(&of_a, &of_b, true, &of_out, false);
    struct letters rows = chosen(&of_a, &of_b, false, &of_out, true),
                   columns = chosen(&of_b, &of_a, false, &of_out, true);
    struct letters own_a = chosen(&of_a, &of_b, false, &of_out, false),
                   own_b = chosen(&of_b, &of_a, false, &of_out, false);
    struct letters left = joined(&stack, &rows, &summed), right = joined(&stack, &summed, &columns);
    struct letters both = joined(&stack, &rows, &columns);
    int64_t n_stack = extent(&stack, a, &of_a), n_summed = extent(&summed, a, &of_a);
    mesh_shape x_shape = MESH_SHAPE(n_stack, extent(&rows, a, &of_a), n_summed);
    mesh_shape y_shape = MESH_SHAPE(n_stack, n_summed, extent(&columns, b, &of_b));
    struct mesh_tensor *x = arranged(a, of_a, &own_a, &left, x_shape);
    struct mesh_tensor *y = x == NULL ? NULL : arranged(b, of_b, &own_b, &right, y_shape);
    int r = y == NULL ? err_status() : multiply(x, y, shape_by(&both, &of_a, a, &of_b, b), &both, &of_out, out);
    tensor_unref(x);
    tensor_unref(y);
    return r;
}
