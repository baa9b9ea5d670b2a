/* client/tensor/k_optim.c - the arithmetic of one optimizer step on one parameter's local part, in place.
 *
 *     g' = g + weight_decay p        m = momentum m + g' (g' at the first step)
 *     p -= lr (nesterov ? g' + momentum m : m)
 * Without momentum there need be no m.  AdamW's formula stands in kernels.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/check.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "base/vector.h"

#define SGD(D, T, U, unused)                                                                                           \
    static VECTOR_ROW(sgd_##D,                                                                                         \
                      (T *restrict p, const T *restrict g, T *restrict m, const struct sgd_step *s, int64_t n),        \
                      (p, g, m, s, n))                                                                                 \
    {                                                                                                                  \
        const T lr = (T)s->lr, momentum = (T)s->momentum, decay = (T)s->weight_decay;                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T slope = g[i] + decay * p[i];                                                                             \
            if (m != NULL) {                                                                                           \
                m[i] = s->is_first ? slope : momentum * m[i] + slope;                                                  \
                slope = s->nesterov ? slope + momentum * m[i] : m[i];                                                  \
            }                                                                                                          \
            p[i] -= lr * slope;                                                                                        \
        }                                                                                                              \
    }
FLOAT_TYPES(SGD, 0)

int k_sgd_step(struct mesh_tensor *p, const struct mesh_tensor *g, struct mesh_tensor *m, const struct sgd_step *s)
{
    PRE(p->n == g->n && p->dtype == g->dtype && (m == NULL || (m->n == p->n && m->dtype == p->dtype)));
    void *velocity = m == NULL ? NULL : m->data;
    switch (p->dtype) {
    case MESH_F32:
        sgd_F32(p->data, g->data, velocity, s, p->n);
        return 0;
    case MESH_F64:
        sgd_F64(p->data, g->data, velocity, s, p->n);
        return 0;
    default:
        return unsupported_dtype("sgd", p->dtype);
    }
}

/* The corrections of both moments do not depend on the element: scale is lr / (1 - beta1^t), root is 1 / (1 -
 * beta2^t). */
#define ADAMW(D, T, U, unused)                                                                                         \
    static VECTOR_ROW(                                                                                                 \
        adamw_##D,                                                                                                     \
        (T *restrict p, const T *restrict g, T *restrict m, T *restrict v, const struct adamw_step *s, int64_t n),     \
        (p, g, m, v, s, n))                                                                                            \
    {                                                                                                                  \
        const double t = (double)s->number, scale = s->lr / (1 - pow(s->beta1, t)), root = 1 / (1 - pow(s->beta2, t)); \
        const double keep = 1 - s->lr * s->weight_decay;                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            double slope = (double)g[i];                                                                               \
            m[i] = (T)(s->beta1 * (double)m[i] + (1 - s->beta1) * slope);                                              \
            v[i] = (T)(s->beta2 * (double)v[i] + (1 - s->beta2) * slope * slope);                                      \
            p[i] = (T)(keep * (double)p[i] - scale * (double)m[i] / (sqrt((double)v[i] * root) + s->eps));             \
        }                                                                                                              \
    }
FLOAT_TYPES(ADAMW, 0)

int k_adamw_step(struct mesh_tensor *p, const struct mesh_tensor *g, struct mesh_tensor *m, struct mesh_tensor *v,
                 const struct adamw_step *s)
{
    PRE(p->n == g->n && p->n == m->n && p->n == v->n);
    PRE(p->dtype == g->dtype && p->dtype == m->dtype && p->dtype == v->dtype);
    switch (p->dtype) {
    case MESH_F32:
        adamw_F32(p->data, g->data, m->data, v->data, s, p->n);
        return 0;
    case MESH_F64:
        adamw_F64(p->data, g->data, m->data, v->data, s, p->n);
        return 0;
    default:
        return unsupported_dtype("adamw", p->dtype);
    }
}
