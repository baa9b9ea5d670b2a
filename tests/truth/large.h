/* tests/truth/large.h - samples large enough that a copy of a tensor shows beside what is allocated in small pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_LARGE_H
#define TRUTH_LARGE_H

#include "truth/samples.h"

/* The sample as large as its row takes it. */
struct sample sample_largest(const struct sample *s);

/* And what a handful of blocks are rounded up by: small ones to 64 bytes, those of 128 KiB and more to a page; and the
 * small objects of a call or a gradient. */
size_t with_slack(size_t bytes);

#endif
