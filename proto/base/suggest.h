/* proto/base/suggest.h - which of the known words a mistyped one was probably meant to be.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* Insertions, deletions, replacements and swaps of neighbours that make b out of a; words over 64 bytes count as far apart. */
size_t suggest_distance(const char *a, const char *b);

/* The nearest word, the first of equals; when none is near (more than a third of the letters, and more than 1, differ) the only
 * one that begins with the given word, of two letters at least; else NULL. */
const char *suggest_nearest(const char *word, const char *const *known, size_t n_known);

#endif
