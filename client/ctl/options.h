/* client/ctl/options.h - command line options as rows: parsing, checking and near misses come from the table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_OPERANDS 8
#define OPTIONS_MAX_LIST     256

struct text_list {
    const char *at[OPTIONS_MAX_LIST];
    size_t n;
};

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_COUNT,    /* int, one more each time */
    OPTION_TEXT,     /* const char * */
    OPTION_NUMBER,   /* int64_t in min..max */
    OPTION_DURATION, /* int64_t milliseconds in min..max; written "500", "500ms", "5s", "2m" or "1h" */
    OPTION_CHOICE,   /* int, the index in value_name, "table|wide|json|jsonl" */
    OPTION_LIST,     /* struct text_list, one more item each time */
};

struct option {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;          /* of the value in the struct that the table describes */
    const char *value_name; /* NULL for flags and counts */
    int64_t min, max;
    const char *help;
};

struct option_table {
    const struct option *rows;
    size_t n;
    void *values; /* the struct; the rows' offsets point into it */
};

struct arguments {
    const char *operand[OPTIONS_MAX_OPERANDS];
    int n_operands;
    char *const *program; /* what follows "--", NULL-terminated; NULL: there was no "--" */
};

/* Reads argv [ended by NULL]; an option is looked for in the tables in order.  MESH_EINVAL with the sentence. */
int options_parse(const struct option_table *tables, size_t n_tables, char *const *argv,
                  struct arguments *ret_arguments);

/* As above, but stops before the first operand; returns how many words were options, or a negative status. */
int options_parse_leading(const struct option_table *table, char *const *argv);

/* "500", "500ms", "5s", "2m", "1h" */
bool duration_parse(const char *text, int64_t *ret_ms);

#endif
