/* daemon/sentence.h - the parts error sentences are made of: lists of ranks, printable keys, texts of others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SENTENCE_H
#define DAEMON_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "daemon/actions.h"

/* "rank 3", "ranks 0-2 5", "ranks 0 2 4 ... (900 in all)"; rank [n] ascending; returns buf. */
const char *sentence_ranks(char *buf, size_t cap, const uint32_t *rank, size_t n);
/* The key in quotes with what cannot be printed escaped, cut to fit; returns buf. */
const char *sentence_key(char *buf, size_t cap, struct bytes key);
/* The text of somebody else, cut to fit, with what cannot be printed replaced by '?'; returns buf. */
const char *sentence_clean(char *buf, size_t cap, const char *text);

#endif
