/* proto/base/status.c - the names and texts of statuses.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/base.h>

const char *mesh_status_name(mesh_status s)
{
    switch (s) {
#define X(name, value, text)                                                                                           \
    case MESH_##name:                                                                                                  \
        return "MESH_" #name;
        MESH_STATUS_MAP(X)
#undef X
    }
    return "MESH_?";
}

const char *mesh_status_text(mesh_status s)
{
    switch (s) {
#define X(name, value, text)                                                                                           \
    case MESH_##name:                                                                                                  \
        return text;
        MESH_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}
