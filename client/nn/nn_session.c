/* client/nn/nn_session.c - hangs the lists of modules and optimizers into the session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/nn_session.h"

#include "base/alloc.h"
#include "base/error.h"
#include "nn/module.h"
#include "nn/optim.h"

static void nn_session_free(void *state)
{
    struct nn_session *s = state;
    while (s->optimizers != NULL) {
        mesh_optimizer_free(s->optimizers);
    }
    while (s->modules != NULL) {
        mesh_module_free(s->modules);
    }
    mem_free(s);
}

struct nn_session *nn_session_current(void)
{
    struct mesh_session *session = session_require();
    if (session == NULL) {
        return NULL;
    }
    if (session->slot[SESSION_SLOT_NN].state == NULL) {
        struct nn_session *s = mem_new(struct nn_session);
        if (s == NULL) {
            err_no_memory(sizeof *s, "the session's list of modules");
            return NULL;
        }
        session->slot[SESSION_SLOT_NN].state = s;
        session->slot[SESSION_SLOT_NN].free = nn_session_free;
    }
    return session->slot[SESSION_SLOT_NN].state;
}
