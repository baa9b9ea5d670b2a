/* tests/cases/case_list.h - numbers, layouts and claims that the tests of the case list share.
 *
 *     CASE(case_<id>_<claim>, ranks) { body }     on a mesh m of that many ranks in a line
 *     EVERYWHERE(case_<id>_<claim>) { body }      on every mesh of `case_spots`, and under many layouts of each: at->m, LAY(at, ...)
 *     CASES("title", ROW(case_...), ...);         the rows of a file
 *
 * A body runs on every rank, in a scope of its own that must end well.  case_suite.c makes the rows tests of simulated worlds,
 * case_processes.c runs them as one rank of a job of processes.
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

struct case_row {
    const char *name;
    int n_ranks; /* 0: every number of ranks that a spot has */
    rank_fn on;
};
struct case_rows {
    const char *title;
    const struct case_row *rows;
    int n;
};
extern const struct case_rows cases; /* of the file that is linked */

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, name##_ranks, name##_on                                                                                 \
    }
#define CASES(title, ...)                                                                                              \
    static const struct case_row rows[] = { __VA_ARGS__ };                                                             \
    const struct case_rows cases = { title, rows, (int)(sizeof rows / sizeof rows[0]) }

#define CASE(name, n_ranks)                                                                                            \
    enum { name##_ranks = (n_ranks) };                                                                                 \
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
    static int name##_in(mesh_device_mesh *m, int me)

/* A mesh, and a draw of layouts for the tensors that a body makes on it. */
struct spot {
    mesh_device_mesh *m;
    uint64_t draw;
};
#define EVERYWHERE(name)                                                                                               \
    enum { name##_ranks = 0 };                                                                                         \
    static int name##_in(struct spot *at);                                                                             \
    static int name##_on(void *arg)                                                                                    \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return case_spots_run(name##_in);                                                                              \
    }                                                                                                                  \
    static int name##_in(struct spot *at)
int case_spots_run(int (*body)(struct spot *at));

/* A tensor under placements that the spot draws: whole, sharded, or (LAY only) in uneven parts of a pending sum. */
#define LAY(at, s, ...)   spot_lay((at), MESH_F64, (s), (const double[]){ __VA_ARGS__ }, true)
#define SPLIT(at, s, ...) spot_lay((at), MESH_F64, (s), (const double[]){ __VA_ARGS__ }, false)
#define INTS(at, s, ...)  spot_lay((at), MESH_I64, (s), (const double[]){ __VA_ARGS__ }, false)
#define BOOLS(at, s, ...) spot_lay((at), MESH_BOOL, (s), (const double[]){ __VA_ARGS__ }, false)
mesh_placements spot_whole(const struct spot *at); /* replicated along every mesh dim */
mesh_placements spot_split(struct spot *at);       /* drawn for a tensor of two dims, nothing pending */
mesh_dtensor *spot_lay(struct spot *at, mesh_dtype t, mesh_shape s, const double *values, bool may_pend);
/* The claim that the whole x has just these elements, to within 1e-7. */
#define IS(x, ...)                                                                                                     \
    REQUIRE_OK(case_elements_are(__FILE__, __LINE__, (x), (const double[]){ __VA_ARGS__ },                             \
                                 sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)))
int case_elements_are(const char *file, int line, mesh_dtensor *x, const double *want, size_t n);

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
mesh_device_mesh *case_plane(int rows, int columns); /* of all ranks; its dims are called a and b */
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
