/* proto/base/call_words.c - a collective call in words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/call_words.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/util.h"

static const char *const kind_names[] = {
    [MESH_COMM_ALL_REDUCE] = "all_reduce",
    [MESH_COMM_REDUCE_SCATTER] = "reduce_scatter",
    [MESH_COMM_ALL_GATHER] = "all_gather",
    [MESH_COMM_ALL_TO_ALL] = "all_to_all",
    [MESH_COMM_BROADCAST] = "broadcast",
    [MESH_COMM_SCATTER] = "scatter",
    [MESH_COMM_GATHER] = "gather",
    [MESH_COMM_REDUCE] = "reduce",
    [MESH_COMM_SEND] = "send",
    [MESH_COMM_RECV] = "recv",
    [MESH_COMM_BARRIER] = "barrier",
};

const char *comm_kind_name(mesh_comm_kind kind)
{
    return (unsigned)kind < ARRAY_SIZE(kind_names) && kind_names[kind] != NULL ? kind_names[kind] : "?";
}

/* "recv f32[8] from group rank 2, tag 0" */
static const char *message_text(const struct call_words *c, char *buf, size_t cap)
{
    char peer[32] = "any rank", tag[24] = "any tag";
    if (c->root >= 0) {
        snprintf(peer, sizeof peer, "group rank %d", (int)c->root);
    }
    if (c->splits != UINT32_MAX) {
        snprintf(tag, sizeof tag, "tag %" PRIu32, c->splits);
    }
    snprintf(buf, cap, "%s %s[%" PRIu64 "] %s %s, %s", comm_kind_name((mesh_comm_kind)c->kind),
             dtype_name((mesh_dtype)c->dtype), c->count, c->kind == MESH_COMM_SEND ? "to" : "from", peer, tag);
    return buf;
}

const char *call_words_text(const struct call_words *c, char *buf, size_t cap)
{
    const char *kind = comm_kind_name((mesh_comm_kind)c->kind);
    char op[16] = "", root[32] = "", splits[32] = "";
    if (c->kind == MESH_COMM_BARRIER) {
        snprintf(buf, cap, "%s", kind);
        return buf;
    }
    if (c->kind == MESH_COMM_SEND || c->kind == MESH_COMM_RECV) {
        return message_text(c, buf, cap);
    }
    if (c->op != 0) {
        snprintf(op, sizeof op, " %s", reduce_op_name((mesh_reduce_op)c->op));
    }
    if (c->root >= 0) {
        snprintf(root, sizeof root, " %s root %d",
                 c->kind == MESH_COMM_BROADCAST || c->kind == MESH_COMM_SCATTER ? "from" : "at", (int)c->root);
    }
    if (c->splits != 0) {
        snprintf(splits, sizeof splits, " split as #%08" PRIx32, c->splits);
    }
    snprintf(buf, cap, "%s%s %s[%" PRIu64 "%s]%s", kind, op, dtype_name((mesh_dtype)c->dtype), c->count, splits, root);
    return buf;
}
