/* client/ctl/output.h - data on standard output: one table of columns gives the table, the JSON document and the JSON lines.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include "ctl/ctl.h"

enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER, CELL_DURATION, CELL_NUMBERS, CELL_TEXTS };

struct cell {
    enum cell_kind kind;
    const char *text;
    int64_t number;          /* CELL_DURATION: ms */
    const uint32_t *numbers; /* [n] */
    char *const *texts;      /* [n] */
    size_t n;
    char buf[80]; /* for a text made on the spot */
};

#define COLUMN_WIDE  1u /* only with -o wide (and in JSON) */
#define COLUMN_RIGHT 2u /* a number: aligned right */
#define COLUMN_STATE 4u /* coloured by its word */

struct column {
    const char *title; /* "RANKS"; NULL: JSON only */
    const char *key;   /* "ranks"; NULL: tables only */
    unsigned flags;
    void (*get)(const void *row, struct cell *ret_cell); /* the cell comes zeroed: CELL_NONE */
};

struct column_table {
    const struct column *columns;
    size_t n;
};

struct view {
    const char *kind;         /* "JobList" */
    const char *items_key;    /* "jobs"; NULL: the document is the head alone */
    struct column_table head; /* of the document as a whole; tables do not show it unless items_key is NULL */
    const void *head_row;
    struct column_table items;
    const void *const *rows; /* [n_rows] */
    size_t n_rows;
    const char *none; /* said on standard error when a table has no rows */
};

/* 0, or a status with the sentence. */
int output_view(const struct ctl *ctl, const struct view *view);

/* A grid of texts [n_rows x n_columns], row by row; titles [n_columns]. */
int output_grid(const struct ctl *ctl, const char *const *titles, const char *const *cells, size_t n_rows,
                size_t n_columns);

/* The text of a cell in a table: "12m", "0,2", "-". */
void cell_format(const struct cell *c, char *buf, size_t cap);
void duration_format(int64_t ms, char *buf, size_t cap); /* "0.8s", "12s", "3m05s", "2h07m", "4d03h" */

void cell_set_text(struct cell *c, const char *text); /* borrowed; NULL or "": CELL_NONE */
void cell_set_number(struct cell *c, int64_t number);
void cell_set_duration(struct cell *c, uint64_t ms);

#endif
