/* proto/wire/machine.h - state machines as tables: names, allowed moves, a trace line for each move.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_MACHINE_H
#define WIRE_MACHINE_H

#include <stdint.h>

#define TO(state)       (UINT32_C(1) << (state))
#define MACHINE_INITIAL 1u
#define MACHINE_FINAL   2u

struct machine_state {
    const char *name;
    uint32_t moves; /* TO(a) | TO(b) */
    unsigned flags;
};

struct machine {
    const struct machine_state *states;
    const char *what; /* "dial" */
    unsigned id;      /* dial#7 */
    int state;
};

void machine_init(struct machine *m, const char *what, const struct machine_state *states, int n_states);
void machine_move(struct machine *m, int to); /* a move that the table does not allow is our own mistake: CHECK */

#endif
