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
    return err_set(MESH_ENOTFOUND, "no %s \"%.48s\": there is no \"%.24s\"; there are: %s", what, path, part,
                   names_text(at, strcmp(what, "parameter") == 0, names, sizeof names));
}

/* Reads the part that a path begins with; *ret_rest: what follows its dot, NULL where the path ends.  false: it is too
 * long. */
static bool read_part(const char *path, char part[PART_BYTES], const char **ret_rest)
{
    size_t n = strcspn(path, ".");
    snprintf(part, PART_BYTES, "%.*s", (int)(n < PART_BYTES ? n : PART_BYTES - 1), path);
    *ret_rest = path[n] == '.' ? path + n + 1 : NULL;
    return n < PART_BYTES;
}

/* Down the parts of the path but, if is_parameter, the last, which ret_last becomes. */
static mesh_module *descend(mesh_module *root, const char *path, bool is_parameter, const char **ret_last)
{
    mesh_module *at = root;
    const char *rest = *path == '\0' && !is_parameter ? NULL : path;
    while (rest != NULL && !(is_parameter && strchr(rest, '.') == NULL)) {
        char part[PART_BYTES];
        bool is_name = read_part(rest, part, &rest);
        mesh_module *child = is_name ? module_child(at, part) : NULL;
        if (child == NULL) {
            not_found(at, is_parameter ? "parameter" : "module", path, part);
            return NULL;
        }
        at = child;
    }
    *ret_last = rest;
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
