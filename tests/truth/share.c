/* tests/truth/share.c - even samples of products, and the count of what they left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/share.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_COUNTS 32

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LESS 4
#else
#define LESS 1
#endif

static struct count {
    const char *what;
    int64_t tried, total;
} counts[MAX_COUNTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void print_counts(void)
{
    for (int i = 0; i < MAX_COUNTS && counts[i].what != NULL; i++) {
        const struct count *c = &counts[i];
        printf("%s: %lld of %lld tried\n", c->what, (long long)c->tried, (long long)c->total);
    }
}

static void count(const char *what, int64_t tried, int64_t total)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    if (counts[0].what == NULL) {
        atexit(print_counts);
    }
    while (i < MAX_COUNTS - 1 && counts[i].what != NULL && strcmp(counts[i].what, what) != 0) {
        i++;
    }
    counts[i].what = what;
    counts[i].tried += tried;
    counts[i].total += total;
    pthread_mutex_unlock(&lock);
}

static int64_t asked(const char *name, int64_t least)
{
    const char *text = getenv(name);
    long n = text != NULL ? strtol(text, NULL, 10) : least;
    return n > least ? n : least;
}

int64_t share_times(void)
{
    return asked("TRUTH_TIMES", 1);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Steps of the golden section spread evenly; without a common divisor they meet every number once. */
struct share share_of(const char *what, int64_t total, int64_t most)
{
    int64_t n = MIN(total, MAX(most * share_times() / LESS, 1));
    struct share s = { .total = total, .left = n, .step = 1 };
    if (n < total) {
        s.step = (int64_t)((double)total * 0.6180339887) + 1;
        while (common_divisor(s.step, total) != 1) {
            s.step++;
        }
        s.at = (int64_t)((uint64_t)asked("TRUTH_SEED", 0) * UINT64_C(0x9E3779B97F4A7C15) % (uint64_t)total);
    }
    if (what != NULL) {
        count(what, n, total);
    }
    return s;
}

bool share_next(struct share *s, int64_t *ret_number)
{
    if (s->left == 0) {
        return false;
    }
    s->left--;
    *ret_number = s->at;
    s->at = (s->at + s->step) % s->total;
    return true;
}

void share_one_process(void)
{
    setenv("CK_FORK", "no", 0);
}
