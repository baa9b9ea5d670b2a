/* client/ctl/mesh_view.c - mesh descriptors, row titles and groups: arithmetic on a row-major array of ranks.
 *
 *   rank of coordinate (c0, c1, ...) = ranks[c0 * stride0 + c1 * stride1 + ...],  stride of the last dimension 1
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/mesh_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The value of `field=` in a descriptor of fields parted by spaces; its length, or -1 when it is not there. */
static int find_field(const char *descriptor, const char *field, const char **ret_value)
{
    size_t len = strlen(field);
    for (const char *at = descriptor; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word > len && at[len] == '=' && memcmp(at, field, len) == 0) {
            *ret_value = at + len + 1;
            return (int)(word - len - 1);
        }
        at += word + strspn(at + word, " ");
    }
    return -1;
}

static bool parse_shape(struct mesh_view *v, const char *text, int len)
{
    const char *end = text + len;
    while (text < end && v->ndim < MESH_MAX_MESH_NDIM) {
        char *after = NULL;
        unsigned long extent = strtoul(text, &after, 10);
        if (after == text || extent == 0 || extent > UINT32_MAX || (after < end && *after != 'x')) {
            return false;
        }
        v->shape[v->ndim++] = (uint32_t)extent;
        text = after + 1;
    }
    return v->ndim > 0 && text >= end;
}

static void parse_names(struct mesh_view *v, const char *text, int len)
{
    const char *end = text + (len > 0 ? len : 0);
    for (int i = 0; i < v->ndim; i++) {
        size_t n = text < end ? strcspn(text, ", ") : 0;
        v->names[i] = v->name[i];
        if (n > 0) {
            (void)snprintf(v->name[i], sizeof v->name[i], "%.*s", (int)n, text);
        } else {
            (void)snprintf(v->name[i], sizeof v->name[i], "dim%d", i);
        }
        text += text < end ? n + 1 : 0;
    }
}

int mesh_view_parse(struct mesh_view *ret_view, const char *descriptor, const uint32_t *ranks, size_t n_ranks)
{
    struct mesh_view *v = ret_view;
    const char *shape = "";
    const char *names = "";
    const char *device = "";
    uint64_t n = 1;
    *v = (struct mesh_view){ .ranks = ranks, .n_ranks = n_ranks };
    int shape_len = find_field(descriptor, "shape", &shape);
    if (shape_len < 0 || !parse_shape(v, shape, shape_len)) {
        return err_set(MESH_EPROTO, "'%.80s' describes no device mesh", descriptor);
    }
    for (int i = 0; i < v->ndim && n <= n_ranks; i++) {
        n *= v->shape[i];
    }
    if (n != n_ranks) {
        return err_set(MESH_EPROTO, "a mesh of shape %.*s has %zu members", shape_len, shape, n_ranks);
    }
    int names_len = find_field(descriptor, "names", &names);
    int device_len = find_field(descriptor, "device", &device);
    parse_names(v, names, names_len);
    (void)snprintf(v->device, sizeof v->device, "%.*s", device_len > 0 ? device_len : 0, device);
    return 0;
}

void mesh_view_row_title(const struct mesh_view *v, size_t row, char *buf, size_t cap)
{
    size_t used = 0;
    size_t stride = 1;
    buf[0] = '\0';
    for (int i = 0; i < v->ndim - 1; i++) {
        stride *= v->shape[i];
    }
    for (int i = 0; i < v->ndim - 1 && used < cap; i++) {
        stride /= v->shape[i];
        int n = snprintf(buf + used, cap - used, "%s%s=%zu", i > 0 ? " " : "", v->name[i], row / stride % v->shape[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

void mesh_view_groups(const struct mesh_view *v, int dim, struct buf *text)
{
    size_t stride = 1;
    for (int i = dim + 1; i < v->ndim; i++) {
        stride *= v->shape[i];
    }
    buf_printf(text, "%s", v->name[dim]);
    for (size_t first = 0; first < v->n_ranks; first++) {
        if (first / stride % v->shape[dim] != 0) {
            continue;
        }
        for (size_t i = 0; i < v->shape[dim]; i++) {
            buf_printf(text, "%s%u", i == 0 ? " [" : " ", v->ranks[first + i * stride]);
        }
        buf_printf(text, "]");
    }
}
