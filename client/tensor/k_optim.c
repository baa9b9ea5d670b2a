/* client/tensor/k_optim.c - the arithmetic of one optimizer step on one parameter's local part, in place.
 *
 *     g' = g + weight_decay p        m = momentum m + g' (g' at the first step)
 *     p -= lr (nesterov ? g' + momentum m : m)
 * Without momentum there need be no m.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"

#define SGD(D, T, U, unused)                                                                                           \
    static void sgd_##D(T *restrict p, const T *restrict g, T *restrict m, const struct sgd_step *s, int64_t n)        \
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
