/* proto/base/suggest.c - edit distance with swaps of neighbours (optimal string alignment).
 *
 *   d[i][j] = least steps from the first i letters of a to the first j letters of b.  Only three rows are needed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define MAX_WORD      64
#define MIN_BEGINNING 2

static size_t step_cost(const char *a, const char *b, size_t i, size_t j, size_t rows[3][MAX_WORD + 1])
{
    size_t *before = rows[0], *above = rows[1], *here = rows[2];
    size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
    size_t least = MIN(replaced, MIN(above[j], here[j - 1]) + 1);
    if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least = MIN(least, before[j - 2] + 1);
    }
    return least;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_WORD || m > MAX_WORD) {
        return SIZE_MAX;
    }
    size_t rows[3][MAX_WORD + 1] = { { 0 } };
    for (size_t j = 0; j <= m; j++) {
        rows[2][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        memmove(rows[0], rows[1], 2 * sizeof rows[0]);
        rows[2][0] = i;
        for (size_t j = 1; j <= m; j++) {
            rows[2][j] = step_cost(a, b, i, j, rows);
        }
    }
    return rows[2][m];
}

/* The one that begins with the word; NULL: none does, or several. */
static const char *only_completion(const char *word, const char *const *known, size_t n_known)
{
    const char *found = NULL;
    size_t len = strlen(word);
    for (size_t i = 0; i < n_known; i++) {
        if (len >= MIN_BEGINNING && strncmp(known[i], word, len) == 0) {
            if (found != NULL && strcmp(found, known[i]) != 0) {
                return NULL;
            }
            found = known[i];
        }
    }
    return found;
}

const char *suggest_nearest(const char *word, const char *const *known, size_t n_known)
{
    const char *nearest = NULL;
    size_t least = MAX((size_t)1, strlen(word) / 3) + 1;
    for (size_t i = 0; i < n_known; i++) {
        size_t distance = suggest_distance(word, known[i]);
        if (distance < least && distance < strlen(known[i])) {
            least = distance;
            nearest = known[i];
        }
    }
    return nearest != NULL ? nearest : only_completion(word, known, n_known);
}
