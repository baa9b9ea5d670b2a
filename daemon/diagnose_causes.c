/* daemon/diagnose_causes.c - which findings are causes, which only their consequences.
 *
 * An edge goes from a finding to those in which its culprits are themselves held up.  Without such an edge it is a
 * cause; what leads to a cause is a knock-on; of the rest, what waits for each other is a circle, and what only waits
 * for a circle a knock-on of that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diagnose.h"

#include "base/alloc.h"

/* The finding in which this rank is held up; NULL: it is not. */
static struct finding *where_held_up(const struct verdict *v, uint32_t rank)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        struct finding *f = &v->findings.at[i];
        if (rank_list_has(&f->waiting, rank) && f->kind != FINDING_SLOW) {
            return f;
        }
    }
    return NULL;
}

static bool is_root(const struct verdict *v, const struct finding *f)
{
    if ((f->kind != FINDING_STALL && f->kind != FINDING_UNKNOWN) || f->culprits.n == 0) {
        return true;
    }
    for (size_t i = 0; i < f->culprits.n; i++) {
        const struct finding *other = where_held_up(v, f->culprits.at[i]);
        if (other == NULL || other == f) {
            return true;
        }
    }
    return false;
}

/* A culprit is held up in a finding that is a cause, or a knock-on of one. */
static bool leads_to_cause(const struct verdict *v, const struct finding *f, const bool *is_explained)
{
    for (size_t i = 0; i < f->culprits.n; i++) {
        const struct finding *other = where_held_up(v, f->culprits.at[i]);
        if (other != NULL && is_explained[other - v->findings.at]) {
            return true;
        }
    }
    return false;
}

/* A culprit of another one without an explanation is held up in this finding. */
static bool is_waited_for(const struct verdict *v, const struct finding *f, const bool *is_explained)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct finding *other = &v->findings.at[i];
        for (size_t k = 0; !is_explained[i] && k < other->culprits.n; k++) {
            if (where_held_up(v, other->culprits.at[k]) == f) {
                return true;
            }
        }
    }
    return false;
}

/* What has no cause waits in a circle, or for one: the latter is what nobody in the circle waits for. */
static void find_circles(struct verdict *v, bool *is_explained)
{
    for (size_t pass = 0, n_changes = 1; pass < v->findings.n && n_changes > 0; pass++) {
        n_changes = 0;
        for (size_t i = 0; i < v->findings.n; i++) {
            struct finding *f = &v->findings.at[i];
            if (!is_explained[i] && !is_waited_for(v, f, is_explained)) {
                is_explained[i] = f->is_knock_on = true;
                n_changes++;
            }
        }
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        struct finding *f = &v->findings.at[i];
        f->kind = is_explained[i] ? f->kind : FINDING_CIRCLE;
    }
}

static void sort_by_cause(struct verdict *v)
{
    for (size_t i = 1; i < v->findings.n; i++) {
        struct finding f = v->findings.at[i];
        size_t k = i;
        for (; k > 0; k--) {
            const struct finding *before = &v->findings.at[k - 1];
            bool is_in_order = before->is_knock_on == f.is_knock_on ? before->kind <= f.kind : f.is_knock_on;
            if (is_in_order) {
                break;
            }
            v->findings.at[k] = v->findings.at[k - 1];
        }
        v->findings.at[k] = f;
    }
}

/* A rank that another finding holds up is a consequence, as long as there is one that none does. */
static void find_blamed(struct verdict *v, struct finding *f)
{
    for (int pass = 0; pass < 2 && f->blamed.n == 0; pass++) {
        for (size_t i = 0; i < f->culprits.n; i++) {
            const struct finding *other = where_held_up(v, f->culprits.at[i]);
            if (other == NULL || other == f || pass == 1) {
                rank_list_add(v, &f->blamed, f->culprits.at[i]);
            }
        }
    }
}

/* A finding that holds up one of the culprits, a cause if there is one. */
static const struct finding *before(const struct verdict *v, const struct finding *f)
{
    const struct finding *found = NULL;
    for (size_t i = 0; i < f->culprits.n; i++) {
        const struct finding *other = where_held_up(v, f->culprits.at[i]);
        if (other != NULL && other != f && (found == NULL || !other->is_knock_on)) {
            found = other;
        }
    }
    return found;
}

const struct finding *diagnose_root(const struct verdict *v, const struct finding *f)
{
    for (size_t i = 0; i < v->findings.n && f->is_knock_on; i++) {
        const struct finding *cause = before(v, f);
        if (cause == NULL) {
            break;
        }
        f = cause;
    }
    return f;
}

void diagnose_causes(struct verdict *v)
{
    bool *is_explained = mem_zalloc(v->findings.n + 1);
    if (is_explained == NULL) {
        v->has_no_memory = true;
        return;
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        is_explained[i] = is_root(v, &v->findings.at[i]);
    }
    for (size_t pass = 0, n_changes = 1; pass < v->findings.n && n_changes > 0; pass++) {
        n_changes = 0;
        for (size_t i = 0; i < v->findings.n; i++) {
            struct finding *f = &v->findings.at[i];
            if (!is_explained[i] && leads_to_cause(v, f, is_explained)) {
                is_explained[i] = f->is_knock_on = true;
                n_changes++;
            }
        }
    }
    find_circles(v, is_explained);
    mem_free(is_explained);
    for (size_t i = 0; i < v->findings.n; i++) {
        find_blamed(v, &v->findings.at[i]);
    }
    sort_by_cause(v);
}
