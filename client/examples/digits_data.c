/* client/examples/digits_data.c - reads and shuffles the digits.
 *
 * The data that come with this program: "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI
 * Machine Learning Repository, CC BY 4.0; see README.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "digits_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREATEST_PIXEL 16

struct reader {
    const char *path;
    FILE *file;
    char *line;
    size_t line_bytes, line_number, room;
    char *why;
    size_t why_bytes;
};

static int refuse(struct reader *r, const char *at, const char *what)
{
    snprintf(r->why, r->why_bytes, "%s:%zu:%zu: %s", r->path, r->line_number, (size_t)(at - r->line) + 1, what);
    return -1;
}

/* A number 0..greatest, then the character that must follow it. */
static int read_number(struct reader *r, const char **at, int greatest, char follows, int *ret_number)
{
    char what[96], *end;
    snprintf(what, sizeof what, "expected a number from 0 to %d", greatest);
    if (**at < '0' || **at > '9') {
        return refuse(r, *at, what);
    }
    errno = 0;
    long value = strtol(*at, &end, 10);
    if (errno != 0 || value > greatest) {
        return refuse(r, *at, what);
    }
    if (*end != follows) {
        return refuse(r, end,
                      follows == ',' ? "expected a comma: a line has 64 pixels and a class"
                                     : "expected the end of the line after 64 pixels and a class");
    }
    *at = end + (follows == ',' ? 1 : 0);
    *ret_number = (int)value;
    return 0;
}

static int make_room(struct reader *r, struct digits *d)
{
    if (d->n < r->room) {
        return 0;
    }
    size_t room = r->room > 0 ? 2 * r->room : 2048;
    float *pixels = realloc(d->pixels, room * DIGITS_PIXELS * sizeof *pixels);
    d->pixels = pixels != NULL ? pixels : d->pixels;
    int64_t *labels = pixels != NULL ? realloc(d->labels, room * sizeof *labels) : NULL;
    if (labels == NULL) {
        snprintf(r->why, r->why_bytes, "%s: no memory for %zu images", r->path, room);
        return -1;
    }
    d->labels = labels;
    r->room = room;
    return 0;
}

static int read_line(struct reader *r, struct digits *d)
{
    const char *at = r->line;
    int value = 0;
    if (make_room(r, d) < 0) {
        return -1;
    }
    for (size_t i = 0; i < DIGITS_PIXELS; i++) {
        if (read_number(r, &at, GREATEST_PIXEL, ',', &value) < 0) {
            return -1;
        }
        d->pixels[d->n * DIGITS_PIXELS + i] = (float)value / GREATEST_PIXEL;
    }
    if (read_number(r, &at, DIGITS_CLASSES - 1, '\0', &value) < 0) {
        return -1;
    }
    d->labels[d->n++] = value;
    return 0;
}

static int read_lines(struct reader *r, struct digits *d)
{
    for (;;) {
        errno = 0;
        ssize_t n = getline(&r->line, &r->line_bytes, r->file);
        if (n < 0 && !feof(r->file)) {
            snprintf(r->why, r->why_bytes, "cannot read %s: %s", r->path, strerror(errno));
            return -1;
        }
        if (n < 0) {
            return 0;
        }
        r->line_number++;
        r->line[strcspn(r->line, "\r\n")] = '\0';
        if (read_line(r, d) < 0) {
            return -1;
        }
    }
}

static void swap_rows(struct digits *d, size_t a, size_t b)
{
    float row[DIGITS_PIXELS], *pa = d->pixels + a * DIGITS_PIXELS, *pb = d->pixels + b * DIGITS_PIXELS;
    memcpy(row, pa, sizeof row);
    memmove(pa, pb, sizeof row);
    memcpy(pb, row, sizeof row);
    int64_t label = d->labels[a];
    d->labels[a] = d->labels[b];
    d->labels[b] = label;
}

/* Fisher and Yates' shuffle with Knuth's linear congruential generator: the same order on every rank and machine. */
static void shuffle(struct digits *d)
{
    uint64_t state = 1;
    for (size_t i = d->n; i > 1; i--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        swap_rows(d, i - 1, (size_t)((state >> 33) % i));
    }
}

int digits_read(const char *path, struct digits *ret_digits, char *why, size_t why_bytes)
{
    struct digits d = { .n = 0 };
    struct reader r = { .path = path, .file = fopen(path, "r"), .why = why, .why_bytes = why_bytes };
    if (r.file == NULL) {
        snprintf(why, why_bytes, "cannot read %s: %s", path, strerror(errno));
        return -1;
    }
    int result = read_lines(&r, &d);
    free(r.line);
    fclose(r.file);
    if (result < 0) {
        digits_free(&d);
        return -1;
    }
    shuffle(&d);
    *ret_digits = d;
    return 0;
}

void digits_free(struct digits *d)
{
    free(d->pixels);
    free(d->labels);
    *d = (struct digits){ .n = 0 };
}
