/* tests/truth/operator_missing.c - the section of OPERATORS.md on what would be right although no rule says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "truth/missing.h"
#include "truth/operator_table.h"

#define N_RANKS 3 /* that rules are derived for */

static const char introduction[] =
    "\n## Right without a rule\n\n"
    "Placements for which running the kernel on each rank's parts gives parts of the right result, that no rule has: "
    "found\n"
    "by trying all placements of inputs and results of each sample on one mesh dim of 2 to 5 ranks, with four sets of\n"
    "numbers, pending values spread evenly and unevenly. What follows from a rule by splitting a whole input, which "
    "costs\n"
    "nothing, is left out, and so are pending products and bits beside other reductions. It is what these numbers do "
    "not\n"
    "refute, not what is proved: of integers, say, some of it would not hold for all. Samples whose result is one "
    "number\n"
    "throughout, whatever the inputs, are not searched, nor are those with too many combinations:\n";

static const char columns[] = "\n| operator | tried on | right without a rule |\n|---|---|---|\n";

static void print_one(FILE *to, const struct entry *e, const struct missing *m)
{
    char text[RULE_TEXT_BYTES];
    fprintf(to, "| `%s` | ", e->op->name);
    entry_print_sample(to, e);
    for (int k = 0; k < m->n; k++) {
        fprintf(to, "%s`%s`", k == 0 ? " | " : ", ", entry_rule_text(e, &m->at[k], text));
    }
    fputs(" |\n", to);
}

static void print_large(FILE *to, const struct entry *e, bool is_first)
{
    fprintf(to, "%s`%s` ", is_first ? "" : "; ", e->op->name);
    entry_print_sample(to, e);
}

void print_missing(FILE *to)
{
    struct entry *e = malloc(sizeof *e);
    struct missing *found = calloc((size_t)n_samples, sizeof *found);
    bool is_first = true;
    parts_must(e != NULL && found != NULL, "no memory");
    fputs(introduction, to);
    for (int k = 0; k < n_samples; k++) {
        entry_init(e, &samples[k], N_RANKS);
        missing_find(&samples[k], &e->rules, &found[k]);
        if (found[k].is_large) {
            print_large(to, e, is_first);
            is_first = false;
        }
    }
    fputs(is_first ? "none.\n" : ".\n", to);
    fputs(columns, to);
    for (int k = 0; k < n_samples; k++) {
        entry_init(e, &samples[k], N_RANKS);
        if (found[k].n > 0) {
            print_one(to, e, &found[k]);
        }
    }
    free(found);
    free(e);
}
