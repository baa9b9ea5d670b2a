/* tests/cases/cases_h.c - meshes (section H of the case list; meshes of given ranks are in test_mesh_ranks.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

CASE(case_mnam_a_name_that_no_dim_has_is_refused_with_those_that_are, 4)
{
    (void)me;
    REFUSED(mesh_submesh(m, MESH_NAMES("pp")), MESH_ENOTFOUND, "tp");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a", "a")), MESH_EINVAL, "a");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a")), MESH_EINVAL, "1 names");
    REFUSED(mesh_submesh(mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL), MESH_NAMES("a")), MESH_EINVAL, "names");
    mesh_device_mesh *plane = case_plane(2, 2);
    mesh_scope *s = mesh_scope_begin();
    mesh_comm_reset();
    REQUIRE(mesh_get_local_rank(plane, NULL) == MESH_EINVAL);
    return case_refused(s, MESH_EINVAL, "2");
}

CASE(case_mbig_a_mesh_larger_than_the_world_is_refused, 4)
{
    (void)m;
    (void)me;
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(8), NULL), MESH_EINVAL, "8 ranks but the job has 4");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(4, 0), NULL), MESH_EINVAL, "dim 1 has size 0");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(-4), NULL), MESH_EINVAL, "size -4");
    return 0;
}

CASES("cases H: meshes", ROW(case_mnam_a_name_that_no_dim_has_is_refused_with_those_that_are),
      ROW(case_mbig_a_mesh_larger_than_the_world_is_refused));
