/* tests/bench/canary.c - how near each other two processors are just now: microseconds of a round trip through shared memory.
 *
 * A virtual machine's host may move its processors apart for seconds to minutes, which slows everything between two
 * ranks; runs from such a spell compare with nothing but each other.  Prints the best of a few rounds, or 0 with one processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "processor.h"

#define N_ROUNDS 20
#define N_TRIPS  2000
#define LIMIT_NS 2000000000 /* when the other is not let run at all */

struct shared {
    _Alignas(128) atomic_int ping;
    _Alignas(128) atomic_int pong;
};

static int wait_for(atomic_int *flag, int value, int64_t deadline_ns)
{
    for (unsigned i = 1; atomic_load_explicit(flag, memory_order_acquire) != value; i++) {
        if (i % 4096 == 0 && clock_now_ns() > deadline_ns) {
            return 0;
        }
    }
    return 1;
}

static void answer(struct shared *s, int64_t deadline_ns)
{
    for (int i = 1; i <= N_ROUNDS * N_TRIPS && wait_for(&s->ping, i, deadline_ns); i++) {
        atomic_store_explicit(&s->pong, i, memory_order_release);
    }
}

static double ask(struct shared *s, int64_t deadline_ns)
{
    double best_us = 0;
    for (int round = 0, i = 0; round < N_ROUNDS; round++) {
        int64_t begin_ns = clock_now_ns();
        for (int trip = 0; trip < N_TRIPS; trip++) {
            atomic_store_explicit(&s->ping, ++i, memory_order_release);
            if (!wait_for(&s->pong, i, deadline_ns)) {
                return best_us;
            }
        }
        double us = (double)(clock_now_ns() - begin_ns) / 1000.0 / N_TRIPS;
        best_us = round == 0 || us < best_us ? us : best_us;
    }
    return best_us;
}

static double measure(struct shared *s)
{
    int64_t deadline_ns = clock_now_ns() + LIMIT_NS;
    pid_t child = fork();
    if (child == 0) {
        (void)processor_stay_on(1);
        answer(s, deadline_ns);
        _exit(0);
    }
    (void)processor_stay_on(0);
    double us = child > 0 ? ask(s, deadline_ns) : 0;
    (void)wait(NULL);
    return us;
}

int main(void)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        return 1;
    }
    (void)printf("%.3f\n", processor_count() > 1 ? measure(s) : 0);
    return 0;
}
