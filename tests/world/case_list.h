/* tests/world/case_list.h - numbers, layouts and claims that the tests of the case list share.
 *
 * A test is CASE(case_<id>_<claim>, ranks) { body }: the body runs on every rank, on a mesh m of one dimension, in a scope of
 * its own that must end well.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORLD_CASE_LIST_H
#define WORLD_CASE_LIST_H

#include "harness/ranks.h"

#define ON(...)     MESH_PLACEMENTS(__VA_ARGS__)
#define R           mesh_replicate()
#define S(d)        mesh_shard(d)
#define P(op)       mesh_partial(op)
#define SHAPE(...)  MESH_SHAPE(__VA_ARGS__)
#define VALUES(...) ((const double[]){ __VA_ARGS__ })

#define CASE(name, n_ranks)                                                                                            \
    static int name##_in(mesh_device_mesh *m, int me);                                                                 \
    static int name##_on(void *arg)                                                                                    \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(n_ranks), MESH_NAMES("tp"));                          \
        mesh_scope *scope = mesh_scope_begin();                                                                        \
        REQUIRE(m != NULL && scope != NULL);                                                                           \
        REQUIRE_OK(name##_in(m, mesh_rank()));                                                                         \
        REQUIRE(mesh_scope_end(scope) == 0);                                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    START_TEST(name)                                                                                                   \
    {                                                                                                                  \
        ranks_run((n_ranks), name##_on, NULL);                                                                         \
    }                                                                                                                  \
    END_TEST                                                                                                           \
    static int name##_in(mesh_device_mesh *m, int me)

/* The call is refused on this rank: with this status, these words, and nothing sent. */
#define REFUSED(call, status, words)                                                                                   \
    do {                                                                                                               \
        mesh_scope *refused_in = mesh_scope_begin();                                                                   \
        mesh_comm_reset();                                                                                             \
        REQUIRE((call) == NULL);                                                                                       \
        REQUIRE_OK(case_refused(refused_in, (status), (words)));                                                       \
    } while (0)
int case_refused(mesh_scope *s, mesh_status status, const char *words);

/* f32: values, or 0, 1, 2, ... of NULL. */
mesh_tensor *case_tensor(mesh_shape s, const double *values);
mesh_dtensor *case_laid(mesh_device_mesh *m, mesh_shape s, const double *values, mesh_placements p);
/* The same number all over this rank's part. */
mesh_dtensor *case_from_full(mesh_device_mesh *m, mesh_shape local, double value, mesh_placements p);

/* The claims that this rank's part, or the whole tensor, has this shape and these numbers (NULL: 0, 1, 2, ...). */
int case_local_is(mesh_dtensor *x, mesh_shape s, const double *values);
int case_full_is(mesh_dtensor *x, mesh_shape s, const double *values);
bool case_lies(const mesh_dtensor *x, mesh_placements p);
/* Calls of every kind since the last mesh_comm_reset(), and their bytes. */
uint64_t case_n_calls(void);
uint64_t case_n_bytes(void);

#endif
