/* client/nn/tied.c - one tensor that is a parameter under several names, of one module or of several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "nn/module.h"
#include "nn/nn_session.h"

typedef void (*visit_fn)(struct parameter *p, mesh_dtensor *other);

/* How many parameters of the session are this tensor, each visited if there is something to do. */
static size_t visit_all(const struct nn_session *s, const mesh_dtensor *value, visit_fn visit, mesh_dtensor *other)
{
    size_t n = 0;
    for (const mesh_module *m = s->modules; m != NULL; m = m->next) {
        for (size_t i = 0; i < m->parameters.n; i++) {
            bool is_one = m->parameters.at[i].value == value;
            n += is_one;
            if (is_one && visit != NULL) {
                visit(&m->parameters.at[i], other);
            }
        }
    }
    return n;
}

static void mark(struct parameter *p, mesh_dtensor *other)
{
    (void)other;
    p->is_tied = true;
}

static void replace(struct parameter *p, mesh_dtensor *other)
{
    dtensor_unref(p->value);
    p->value = dtensor_ref(other);
}

int tied_mark(const mesh_dtensor *value)
{
    const struct nn_session *s = nn_session_current();
    if (s != NULL && visit_all(s, value, NULL, NULL) > 1) {
        visit_all(s, value, mark, NULL);
    }
    return s != NULL ? 0 : err_status();
}

int tied_replace(mesh_dtensor *old, mesh_dtensor *value)
{
    const struct nn_session *s = nn_session_current();
    if (s == NULL) {
        return err_status();
    }
    dtensor_ref(old); /* until the walk has passed all */
    visit_all(s, old, replace, value);
    dtensor_unref(old);
    return 0;
}

bool tied_is_repeated(mesh_module *root, const struct parameter *p)
{
    for (mesh_module *m = root; p->is_tied && m != NULL; m = module_following(root, m)) {
        for (size_t i = 0; i < m->parameters.n; i++) {
            const struct parameter *at = &m->parameters.at[i];
            if (at == p || at->value == p->value) {
                return at != p;
            }
        }
    }
    return false;
}
