/* daemon/near_miss.c - edit distance (Levenshtein 1966) to a list of words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/near_miss.h"

#include <string.h>

#include "base/util.h"

#define MAX_WORD 63

/* row[j]: edits from the first i letters of a to the first j of b. */
static int distance(const char *a, const char *b)
{
    size_t n_a = strlen(a);
    size_t n_b = strlen(b);
    if (n_a > MAX_WORD || n_b > MAX_WORD) {
        return MAX_WORD;
    }
    int row[MAX_WORD + 1];
    for (size_t j = 0; j <= n_b; j++) {
        row[j] = (int)j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = MIN(changed, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

const char *near_miss(const char *given, const char *const *word, int n)
{
    int best = strlen(given) <= 4 ? 2 : 3;
    const char *found = NULL;
    for (int i = 0; i < n; i++) {
        int d = distance(given, word[i]);
        if (d < best) {
            best = d;
            found = word[i];
        }
    }
    return found;
}
