/* client/examples/digits_data.h - the handwritten digits of digits.csv, shuffled.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_DIGITS_DATA_H
#define EXAMPLES_DIGITS_DATA_H

#include <stddef.h>
#include <stdint.h>

enum { DIGITS_PIXELS = 64, DIGITS_CLASSES = 10 };

struct digits {
    size_t n;
    float *pixels;   /* [n][64], 0..1 */
    int64_t *labels; /* [n], 0..9 */
};

/* Reads lines of 64 pixel counts 0..16 and a class 0..9 and brings them into one fixed order.  0, or -1 and one
 * sentence in `why`, e.g. "digits.csv:7:12: ...". */
int digits_read(const char *path, struct digits *ret_digits, char *why, size_t why_bytes);
void digits_free(struct digits *d);

#endif
