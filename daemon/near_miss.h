/* daemon/near_miss.h - which of these words was probably meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NEAR_MISS_H
#define DAEMON_NEAR_MISS_H

/* The closest of the n words within two edits (one for words of up to 4 letters); NULL: none is that close. */
const char *near_miss(const char *given, const char *const *word, int n);

#endif
