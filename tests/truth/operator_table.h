/* tests/truth/operator_table.h - one row of the document that operator_table.c writes, for those who write its sections.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_OPERATOR_TABLE_H
#define TRUTH_OPERATOR_TABLE_H

#include <stdio.h>

#include "truth/samples.h"

#define RULE_TEXT_BYTES 256

struct note;
struct entry { /* a row of the operator table and its rules on one sample */
    const struct op_row *op;
    const struct note *note;
    const struct sample *sample;
    struct op_shapes shapes;
    struct rule_list rules;
};
void entry_init(struct entry *e, const struct sample *s, int n_ranks);
void entry_print_sample(FILE *to, const struct entry *e);
const char *entry_rule_text(const struct entry *e, const struct rule *r, char *buf); /* RULE_TEXT_BYTES */

/* operator_comm.c: what calls communicate, by counters. */
void print_communication(FILE *to);

/* operator_missing.c: what would be right and has no rule. */
void print_missing(FILE *to);

#endif
