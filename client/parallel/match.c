/* client/parallel/match.c - walks a path part by part, each matched like a file name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/match.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define PART_BYTES 128

/* "a, b, c" of all children of these modules, cut to fit. */
static const char *children_text(const module_list *modules, char *buf, size_t cap)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < modules->n; i++) {
        for (size_t j = 0; j < modules->at[i]->children.n && used < cap; j++) {
            int n = snprintf(buf + used, cap - used, "%s%s", used > 0 ? ", " : "", modules->at[i]->children.at[j].name);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    return buf[0] != '\0' ? buf : "none";
}

static int push(module_list *list, mesh_module *m)
{
    mesh_module **at = VEC_PUSH(list);
    if (at == NULL) {
        return err_no_memory(sizeof *at, "the modules of a plan");
    }
    *at = m;
    return 0;
}

/* All children of `from` whose name matches the part. */
static int step(const module_list *from, const char *part, module_list *to)
{
    int r = 0;
    for (size_t i = 0; i < from->n; i++) {
        const mesh_module *m = from->at[i];
        for (size_t j = 0; r == 0 && j < m->children.n; j++) {
            r = fnmatch(part, m->children.at[j].name, 0) == 0 ? push(to, m->children.at[j].module) : 0;
        }
    }
    return r;
}

/* The part of the path up to the next dot; moves on behind it. */
static int next_part(const char *pattern, const char **inout_rest, char *part)
{
    size_t n = strcspn(*inout_rest, ".");
    bool is_empty = n == 0 || strcmp(*inout_rest + n, ".") == 0;
    if (is_empty || n >= PART_BYTES) {
        return err_set(MESH_EINVAL, "the module path \"%.80s\" has a part that is %s", pattern,
                       is_empty ? "empty" : "longer than 127 bytes");
    }
    memcpy(part, *inout_rest, n);
    part[n] = '\0';
    *inout_rest += n + ((*inout_rest)[n] == '.' ? 1 : 0);
    return 0;
}

/* Replaces the modules by their children that match the next part. */
static int descend(const char *pattern, const char **inout_rest, module_list *inout_at)
{
    char part[PART_BYTES], names[120];
    module_list below = { .at = NULL };
    int r = next_part(pattern, inout_rest, part);
    r = r < 0 ? r : step(inout_at, part, &below);
    if (r == 0 && below.n == 0) {
        r = err_set(MESH_ENOTFOUND, "no module matches \"%.48s\": \"%.24s\" fits no child there; there are: %s",
                    pattern, part, children_text(inout_at, names, sizeof names));
    }
    VEC_FINI(inout_at);
    *inout_at = below;
    return r;
}

int match_modules(mesh_module *root, const char *pattern, module_list *inout_found)
{
    module_list at = { .at = NULL };
    const char *rest = pattern;
    int r = push(&at, root);
    while (r == 0 && *rest != '\0') {
        r = descend(pattern, &rest, &at);
    }
    for (size_t i = 0; r == 0 && i < at.n; i++) {
        r = push(inout_found, at.at[i]);
    }
    VEC_FINI(&at);
    return r;
}
