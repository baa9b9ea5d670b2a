/* tests/truth/missing.h - the other way about: what could be run part by part although no rule says so.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_MISSING_H
#define TRUTH_MISSING_H

#include "truth/claim.h"

#define MISSING_MAX 400

struct missing {
    bool
        is_constant; /* the result is the same number everywhere, whatever the inputs: any reduction is right, none is listed */
    bool is_large; /* too many combinations: not searched */
    int n;
    struct rule at[MISSING_MAX];
};

/* Tries all placements of the inputs and the results on one mesh dim, of 2 to 5 ranks, with several sets of numbers.
 * Left out: what follows from a rule in `rules` (derived on 3 ranks) by moves that cost nothing, a whole input being
 * split or pending; pending products and bits beside other reductions. */
void missing_find(const struct sample *s, const struct rule_list *rules, struct missing *ret_missing);

/* Why the brute force does not refute r: it follows from one of the rules, or missing_find() lists it, or it holds with
 * all numbers of a sample whose result, or one of whose inputs, says nothing. */
bool missing_has_answer(const struct sample *s, const struct rule_list *rules, const struct rule *r);

#endif
