/* tests/truth/programs_see.c - random training: what one rank saw, in order, and whether several see it too.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth/programs_train.h"

#define MAX_SEEN   1000
#define TEXT_BYTES 512

struct seen {
    char what[64];
    struct record record; /* of a tensor */
    double number;
    mesh_status status;
};

struct outcome {
    struct seen at[MAX_SEEN];
    int n;
};

struct outcome *outcome_new(void)
{
    return calloc(1, sizeof(struct outcome));
}

void outcome_free(struct outcome *o)
{
    for (int i = 0; i < o->n; i++) {
        free(o->at[i].record.data);
    }
    free(o);
}

bool is_fine(const struct program *p)
{
    return p->n_seen >= 0;
}

/* The next place; NULL: nothing is compared any more. */
static struct seen *next_seen(struct program *p, const char *what)
{
    struct outcome *o = p->outcome;
    if (!is_fine(p) || p->n_seen == MAX_SEEN) {
        return NULL;
    }
    struct seen *s = &o->at[p->n_seen++];
    if (p->is_reference) {
        o->n = p->n_seen;
        snprintf(s->what, sizeof s->what, "%s", what);
    }
    if (p->n_seen > o->n || strcmp(s->what, what) != 0) {
        complain(p, "%s comes where one rank has %s", what, p->n_seen > o->n ? "nothing" : s->what);
        p->n_seen = -1;
        return NULL;
    }
    return s;
}

static void differ(struct program *p, const char *what, double got, double want)
{
    complain(p, "%s: %.9g where one rank has %.9g; %s", what, got, want,
             mesh_scope_status(NULL) < 0 ? mesh_last_error()->message : "");
    p->n_seen = -1;
}

void see(struct program *p, const char *what, mesh_dtensor *x, double scale, double tolerance)
{
    struct seen *s = next_seen(p, what);
    if (s == NULL) {
        return;
    }
    struct record *r = &s->record;
    if (p->is_reference) {
        if (x != NULL) {
            keep_record(r, x);
        }
        return;
    }
    if ((x == NULL) != (r->data == NULL)) {
        differ(p, what, x != NULL, r->data != NULL);
        return;
    }
    double got = 0;
    int64_t at = x == NULL || !r->is_finite ? -1 : differs(r, x, scale, tolerance * (1 + r->largest), &got);
    if (at >= 0) {
        differ(p, what, got, ((double *)r->data)[at]);
    }
}

void see_number(struct program *p, const char *what, double x, double tolerance)
{
    struct seen *s = next_seen(p, what);
    if (s == NULL) {
        return;
    }
    if (p->is_reference) {
        s->number = x;
    } else if (isfinite(s->number) && !(fabs(x - s->number) <= tolerance * (1 + fabs(s->number))) && !isnan(x)) {
        differ(p, what, x, s->number);
    }
}

static void compare_sentences(struct program *p, const char *what, const char *mine)
{
    char *all = calloc((size_t)p->n_ranks, TEXT_BYTES);
    if (mesh_all_gather(all, mine, TEXT_BYTES, MESH_U8, mesh_world()) < 0) {
        complain(p, "%s: after it, the ranks do not meet: %s", what, mesh_last_error()->message);
        p->n_seen = -1;
    } else if (strcmp(all, mine) != 0) {
        complain(p, "%s: rank 0 says \"%.250s\", this one \"%.250s\"", what, all, mine);
        p->n_seen = -1;
    }
    free(all);
}

void see_failure(struct program *p, const char *what, mesh_scope *scope)
{
    char mine[TEXT_BYTES] = "";
    mesh_status status = (mesh_status)mesh_scope_end(scope);
    snprintf(mine, sizeof mine, "%s", status < 0 ? mesh_last_error()->message : "no error");
    if (is_verbose && mesh_rank() == 0) {
        printf("  %s: %s\n", what, mine);
    }
    struct seen *s = next_seen(p, what);
    if (s == NULL) {
        return;
    }
    s->status = p->is_reference ? status : s->status;
    if (s->status != status) {
        complain(p, "%s: %s where one rank has %s: %s", what, mesh_status_name(status), mesh_status_name(s->status),
                 mine);
        p->n_seen = -1;
        return;
    }
    compare_sentences(p, what, mine);
}
