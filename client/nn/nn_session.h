/* client/nn/nn_session.h - the modules and optimizers of a session, freed with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NN_NN_SESSION_H
#define NN_NN_SESSION_H

#include <mesh/nn.h>

struct nn_session {
    mesh_module *modules;
    mesh_optimizer *optimizers;
};

/* That of this thread's session; NULL: error set. */
struct nn_session *nn_session_current(void);

#endif
