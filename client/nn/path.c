/* client/nn/path.c - names from a root down a tree of modules, "blocks.0.up.weight".
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "nn/module.h"

#define PART_BYTES 128

static const char *name_in_parent(const mesh_module *m)
{
    const struct module_child *c = m->parent->children.at;
    while (c->module != m) {
        c++;
    }
    return c->name;
}

const char *module_path(mesh_module *root, const mesh_module *owner, const char *name)
{
    size_t n = strlen(name) + 1;
    for (const mesh_module *m = owner; m != root; m = m->parent) {
        n += strlen(name_in_parent(m)) + 1;
    }
    char *path = mem_alloc(n);
    if (path == NULL) {
        err_no_memory(n, "the name of a parameter");
        return NULL;
    }
    char *at = path + n - strlen(name) - 1; /* from the end, as the way leads upwards */
    strcpy(at, name);
    for (const mesh_module *m = owner; m != root; m = m->parent) {
        size_t length = strlen(name_in_parent(m));
        *--at = '.';
        at -= length;
        memcpy(at, name_in_parent(m), length);
    }
    mem_free(root->path);
    root->path = path;
    return path;
}

/* "a, b, c": the children, and the parameters if those count; cut to fit. */
static const char *names_text(const mesh_module *m, bool has_parameters, char *buf, size_t cap)
{
    size_t used = 0, n = m->children.n + (has_parameters ? m->parameters.n : 0);
    buf[0] = '\0';
    for (size_t i = 0; i < n && used < cap; i++) {
        const char *name = i < m->children.n ? m->children.at[i].name : m->parameters.at[i - m->children.n].name;
        int written = snprintf(buf + used, cap - used, "%s%s", used > 0 ? ", " : "", name);
        used += written > 0 ? (size_t)written : 0;
    }
    return buf[0] != '\0' ? buf : "none";
}

static int not_found(const mesh_module *at, const char *what, const char *path, const char *part)
{
    char names[160];
    return err_set(MESH_ENOTFOUND, "no %s \"%s\": there is no \"%s\"; there are: %s", what, path, part,
                   names_text(at, strcmp(what, "parameter") == 0, names, sizeof names));
}

/* Down the parts of the path but, if is_parameter, the last, which ret_last becomes. */
static mesh_module *descend(mesh_module *root, const char *path, bool is_parameter, const char **ret_last)
{
    const char *what = is_parameter ? "parameter" : "module";
    mesh_module *at = root;
    while (*path != '\0' && !(is_parameter && strchr(path, '.') == NULL)) {
        char part[PART_BYTES];
        size_t n = strcspn(path, ".");
        int written = snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : sizeof part - 1), path);
        mesh_module *child = written < 0 || n >= sizeof part ? NULL : module_child(at, part);
        if (child == NULL) {
            not_found(at, what, path, part);
            return NULL;
        }
        at = child;
        path += n + (path[n] == '.' ? 1 : 0);
    }
    *ret_last = path;
    return at;
}

mesh_module *module_at(mesh_module *root, const char *path)
{
    const char *last = NULL;
    return descend(root, path, false, &last);
}

struct parameter *module_parameter_at(mesh_module *root, const char *path)
{
    const char *last = NULL;
    mesh_module *owner = descend(root, path, true, &last);
    struct parameter *p = owner == NULL ? NULL : module_own_parameter(owner, last);
    if (owner != NULL && p == NULL) {
        not_found(owner, "parameter", path, last);
    }
    return p;
}
