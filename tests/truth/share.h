/* tests/truth/share.h - how much of a large product of cases a test tries: all of a small one, of a large one an even
 * sample.
 *
 * The sample is the same in every run.  TRUTH_TIMES=n in the environment asks for n times as much, TRUTH_SEED=n begins
 * elsewhere (./dev truth-full does both).  A build with a sanitizer looks for faults of memory, not of arithmetic, and
 * is several times slower: it tries a quarter.  What was tried of how much is printed when the program ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_SHARE_H
#define TRUTH_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct share {
    int64_t total, left, step, at;
};

/* At most `most` of the numbers below total.  what: counted under this name; NULL: not counted. */
struct share share_of(const char *what, int64_t total, int64_t most);

int64_t share_times(void); /* how many times as much as usual */

/* false: no more; each number at most once. */
bool share_next(struct share *s, int64_t *ret_number);

/* Before the suite is made: its tests run in this process instead of in one fork each, which costs a hundred times more
 * than most of them and would lose the counts. */
void share_one_process(void);

#endif
