/* proto/wire/machine.c - moves between states, checked against the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/machine.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/log.h"

static _Atomic unsigned n_machines; /* only names machines in the trace */

void machine_init(struct machine *m, const char *what, const struct machine_state *states, int n_states)
{
    int initial = -1;
    PRE(n_states > 0 && n_states <= 32);
    for (int s = 0; s < n_states; s++) {
        bool is_final = (states[s].flags & MACHINE_FINAL) != 0;
        CHECK(states[s].name != NULL && (states[s].moves == 0) == is_final);
        CHECK(n_states == 32 || states[s].moves >> n_states == 0);
        if (states[s].flags & MACHINE_INITIAL) {
            CHECK(initial < 0);
            initial = s;
        }
    }
    CHECK(initial >= 0);
    *m = (struct machine){
        .states = states, .what = what, .id = atomic_fetch_add(&n_machines, 1) + 1, .state = initial
    };
}

void machine_move(struct machine *m, int to)
{
    const struct machine_state *from = &m->states[m->state];
    CHECK((from->moves & TO(to)) != 0);
    log_at("wire", LOG_TRACE, "%s#%u %s -> %s", m->what, m->id, from->name, m->states[to].name);
    m->state = to;
}
