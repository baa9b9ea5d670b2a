/* client/dtensor/visualize.c - draws a layout as a table and as SVG: rows and columns are the last two dims, a slice
 * each for every piece of the dims before.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/inspect.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "core/scope.h"
#include "dtensor/picture.h"

/* The dims that are rows, columns; -1: there is none. */
struct axes {
    int row, column, n_outer;
};

static struct axes axes_of(const struct picture *p)
{
    int n = p->tensor->shape.ndim;
    return (struct axes){ .row = n >= 2 ? n - 2 : -1, .column = n >= 1 ? n - 1 : -1, .n_outer = MAX(n - 2, 0) };
}

static int count(const struct picture *p, int d)
{
    return d < 0 ? 1 : p->cuts[d].n;
}

static const char *range(const struct picture *p, int d, int i, char *buf, size_t cap)
{
    struct chunk c = d < 0 ? (struct chunk){ 0 } : p->cuts[d].at[i];
    snprintf(buf, cap, "%lld:%lld", (long long)c.offset, (long long)(c.offset + c.extent));
    if (d < 0) {
        buf[0] = 0;
    }
    return buf;
}

static void set_cell(struct axes a, int *cell, int row, int column)
{
    if (a.row >= 0) {
        cell[a.row] = row;
    }
    if (a.column >= 0) {
        cell[a.column] = column;
    }
}

static int cell_width(const struct picture *p, struct axes a)
{
    int cell[MESH_MAX_NDIM] = { 0 }, width = 0;
    char label[48];
    for (int j = 0; j < count(p, a.column); j++) {
        width = MAX(width, (int)strlen(range(p, a.column, j, label, sizeof label)));
    }
    do {
        for (int i = 0; i < count(p, a.row); i++) {
            for (int j = 0; j < count(p, a.column); j++) {
                struct text t = { .n = 0 };
                set_cell(a, cell, i, j);
                picture_add_ranks(p, cell, &t);
                width = MAX(width, (int)t.n);
            }
        }
    } while (picture_next_slice(p, a.n_outer, cell));
    return width;
}

/* "[0:2, 1:3, :, :]" above a slice of more than two dims. */
static void add_slice_name(const struct picture *p, struct axes a, const int *cell, struct text *t)
{
    char label[48];
    text_add(t, "[");
    for (int d = 0; d < a.n_outer; d++) {
        text_add(t, "%s, ", range(p, d, cell[d], label, sizeof label));
    }
    text_add(t, ":, :]");
}

static void add_table(const struct picture *p, struct axes a, int *cell, int width, struct text *t)
{
    char label[48];
    int margin = 0;
    for (int i = 0; i < count(p, a.row); i++) {
        margin = MAX(margin, (int)strlen(range(p, a.row, i, label, sizeof label)));
    }
    if (a.column >= 0) {
        text_add(t, "%-*s", margin, "");
        for (int j = 0; j < count(p, a.column); j++) {
            text_add(t, "  %-*s", width, range(p, a.column, j, label, sizeof label));
        }
        text_add(t, "\n");
    }
    for (int i = 0; i < count(p, a.row); i++) {
        text_add(t, "%-*s", margin, range(p, a.row, i, label, sizeof label));
        for (int j = 0; j < count(p, a.column); j++) {
            size_t before = t->n;
            set_cell(a, cell, i, j);
            text_add(t, "  ");
            picture_add_ranks(p, cell, t);
            text_add(t, "%*s", width - (int)(t->n - before - 2), "");
        }
        text_add(t, "\n");
    }
}

static bool has_cells(const struct picture *p)
{
    for (int d = 0; d < p->tensor->shape.ndim; d++) {
        if (p->cuts[d].n == 0) {
            return false;
        }
    }
    return true;
}

static void draw_text(const struct picture *p, struct text *t)
{
    char heading[DTENSOR_TEXT_BYTES];
    struct axes a = axes_of(p);
    int cell[MESH_MAX_NDIM] = { 0 };
    text_add(t, "%s\n", dtensor_text(p->tensor, heading, sizeof heading));
    int width = has_cells(p) ? cell_width(p, a) : 0;
    bool more = has_cells(p);
    while (more) {
        if (a.n_outer > 0) {
            add_slice_name(p, a, cell, t);
            text_add(t, "\n");
        }
        add_table(p, a, cell, width, t);
        more = picture_next_slice(p, a.n_outer, cell);
    }
    size_t before = t->n;
    picture_add_empty(p, t);
    text_add(t, "%s", t->n > before ? "\n" : "");
}

/* SVG -------------------------------------------------------------------------------------------------------------- */

#define LONG_SIDE  400.0 /* of the longer axis, in px */
#define LEAST_CELL 36.0
#define MARGIN     60.0
#define LINE       20.0

/* Where the pieces of dim d lie in a drawing: piece i is at[i], at[i + 1]. */
static double place_of(const struct picture *p, int d, int i)
{
    double at = 0, whole = d < 0 ? 1 : (double)p->tensor->shape.dim[d];
    for (int k = 0; k < i; k++) {
        double part = d < 0 ? 1 : (double)p->cuts[d].at[k].extent / whole;
        at += MAX(LEAST_CELL, part * LONG_SIDE / (d < 0 ? LONG_SIDE / LEAST_CELL : 1));
    }
    return at;
}

static void add_rect(const struct picture *p, struct axes a, const int *cell, double top, struct text *t)
{
    int i = a.row >= 0 ? cell[a.row] : 0, j = a.column >= 0 ? cell[a.column] : 0;
    double x = MARGIN + place_of(p, a.column, j), y = top + place_of(p, a.row, i);
    double width = place_of(p, a.column, j + 1) - place_of(p, a.column, j);
    double height = place_of(p, a.row, i + 1) - place_of(p, a.row, i);
    int hue = 0;
    for (int d = 0; d < p->tensor->shape.ndim; d++) {
        hue = hue * 7 + cell[d] * 53;
    }
    text_add(
        t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"hsl(%d,60%%,85%%)\" stroke=\"#333\"/>\n",
        x, y, width, height, hue % 360);
    text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x + width / 2, y + height / 2 + 4);
    picture_add_ranks(p, cell, t);
    text_add(t, "</text>\n");
}

static void add_labels(const struct picture *p, struct axes a, double top, struct text *t)
{
    char label[48];
    for (int j = 0; a.column >= 0 && j < count(p, a.column); j++) {
        text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                 MARGIN + (place_of(p, a.column, j) + place_of(p, a.column, j + 1)) / 2, top - 6,
                 range(p, a.column, j, label, sizeof label));
    }
    for (int i = 0; a.row >= 0 && i < count(p, a.row); i++) {
        text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", MARGIN - 6,
                 top + (place_of(p, a.row, i) + place_of(p, a.row, i + 1)) / 2 + 4,
                 range(p, a.row, i, label, sizeof label));
    }
}

static double add_slice(const struct picture *p, struct axes a, int *cell, double top, struct text *t)
{
    if (a.n_outer > 0) {
        text_add(t, "<text x=\"6\" y=\"%.1f\">", top + 14);
        add_slice_name(p, a, cell, t);
        text_add(t, "</text>\n");
        top += LINE;
    }
    top += LINE;
    add_labels(p, a, top, t);
    for (int i = 0; i < count(p, a.row); i++) {
        for (int j = 0; j < count(p, a.column); j++) {
            set_cell(a, cell, i, j);
            add_rect(p, a, cell, top, t);
        }
    }
    return top + place_of(p, a.row, count(p, a.row)) + LINE;
}

static void draw_svg(const struct picture *p, struct text *t)
{
    char heading[DTENSOR_TEXT_BYTES];
    struct axes a = axes_of(p);
    int cell[MESH_MAX_NDIM] = { 0 }, n_slices = 1;
    for (int d = 0; d < a.n_outer; d++) {
        n_slices *= p->cuts[d].n;
    }
    bool more = has_cells(p);
    double width = MARGIN + MAX(LONG_SIDE, more ? place_of(p, a.column, count(p, a.column)) : 0) + LINE;
    double slice = (more ? place_of(p, a.row, count(p, a.row)) : 0) + (a.n_outer > 0 ? 3 : 2) * LINE;
    double height = 3 * LINE + n_slices * slice, top = LINE;
    text_add(t,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
             "font-size=\"12\">\n<text x=\"6\" y=\"16\">%s</text>\n",
             width, height, dtensor_text(p->tensor, heading, sizeof heading));
    while (more) {
        top = add_slice(p, a, cell, top, t);
        more = picture_next_slice(p, a.n_outer, cell);
    }
    text_add(t, "<text x=\"6\" y=\"%.1f\">", top + 14);
    picture_add_empty(p, t);
    text_add(t, "</text>\n</svg>\n");
}

static int visualize(const mesh_dtensor *x, struct text t, void (*draw)(const struct picture *p, struct text *t))
{
    struct picture p;
    int r = !x                    ? err_set(MESH_EINVAL, "the tensor is NULL")
            : !t.buf && t.cap > 0 ? err_set(MESH_EINVAL, "the buffer is NULL but has %zu bytes", t.cap)
                                  : picture_init(&p, x);
    if (r < 0) {
        scope_fail(r);
        return r;
    }
    draw(&p, &t);
    picture_fini(&p);
    return (int)MIN(t.n, (size_t)INT32_MAX);
}

int mesh_visualize_sharding(const mesh_dtensor *x, char *buf, size_t cap)
{
    return scope_enter(__func__) ? visualize(x, (struct text){ .buf = buf, .cap = cap }, draw_text) : err_status();
}

int mesh_visualize_sharding_svg(const mesh_dtensor *x, char *buf, size_t cap)
{
    return scope_enter(__func__) ? visualize(x, (struct text){ .buf = buf, .cap = cap }, draw_svg) : err_status();
}
