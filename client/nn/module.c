/* client/nn/module.c - the tree of modules: children, parameters, their names, and when they end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/module.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "nn/nn_session.h"

static atomic_uint_fast64_t last_id;

static void link_module(struct nn_session *s, mesh_module *m)
{
    m->session = s;
    m->next = s->modules;
    if (m->next != NULL) {
        m->next->prev = m;
    }
    s->modules = m;
}

static void unlink_module(mesh_module *m)
{
    if (m->prev != NULL) {
        m->prev->next = m->next;
    } else {
        m->session->modules = m->next;
    }
    if (m->next != NULL) {
        m->next->prev = m->prev;
    }
}

/* Of no class yet; NULL: error set, and self has ended. */
static mesh_module *new_module(void *self, void (*free_self)(void *self))
{
    struct nn_session *session = nn_session_current();
    mesh_module *m = session == NULL ? NULL : mem_new(mesh_module);
    if (m == NULL) {
        if (session != NULL) {
            err_no_memory(sizeof *m, "a module");
        }
        if (free_self != NULL) {
            free_self(self);
        }
        return NULL;
    }
    m->self = self;
    m->id = atomic_fetch_add(&last_id, 1) + 1;
    link_module(session, m);
    return m;
}

mesh_module *module_new(const mesh_module_class *cls, void *self)
{
    mesh_module *m = new_module(self, cls->free);
    if (m != NULL) {
        m->class_ = cls;
    }
    return m;
}

mesh_module *module_new_of_inputs(const mesh_inputs_class *cls, void *self)
{
    mesh_module *m = new_module(self, cls->free);
    if (m != NULL) {
        m->inputs_class = cls;
    }
    return m;
}

mesh_module *module_new_own(const mesh_module_class *cls)
{
    mesh_module *m = module_new(cls, NULL);
    if (m != NULL) {
        m->self = m;
    }
    return m;
}

const char *module_class_name(const mesh_module *m)
{
    return m->class_ != NULL ? m->class_->name : m->inputs_class->name;
}

static void leave_parent(mesh_module *m)
{
    mesh_module *parent = m->parent;
    for (size_t i = 0; parent != NULL && i < parent->children.n; i++) {
        if (parent->children.at[i].module == m) {
            mem_free(parent->children.at[i].name);
            memmove(&parent->children.at[i], &parent->children.at[i + 1],
                    (parent->children.n - i - 1) * sizeof parent->children.at[0]);
            parent->children.n--;
            break;
        }
    }
    m->parent = NULL;
}

static void free_one(mesh_module *m)
{
    for (size_t i = 0; i < m->parameters.n; i++) {
        mem_free(m->parameters.at[i].name);
        dtensor_unref(m->parameters.at[i].value);
    }
    VEC_FINI(&m->parameters);
    VEC_FINI(&m->children);
    void (*free_self)(void *self) = m->class_ != NULL ? m->class_->free : m->inputs_class->free;
    if (free_self != NULL) {
        free_self(m->self);
    }
    unlink_module(m);
    mem_free(m->path);
    mem_free(m);
}

/* Leaves first; a module whose children are gone frees itself, so the walk needs no stack. */
mesh_module *mesh_module_free(mesh_module *m)
{
    mesh_module *at = m;
    while (at != NULL) {
        if (at->children.n > 0) {
            at = at->children.at[at->children.n - 1].module;
            continue;
        }
        mesh_module *up = at == m ? NULL : at->parent;
        leave_parent(at);
        free_one(at);
        at = up;
    }
    return NULL;
}

static int check_name(const char *what, const char *name)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '.') != NULL) {
        return err_set(MESH_EINVAL,
                       "a %s needs a name without dots, which separate the parts of a path; \"%s\" is none", what,
                       name != NULL ? name : "(NULL)");
    }
    return 0;
}

static int check_new_name(mesh_module *m, const char *what, const char *name)
{
    int r = check_name(what, name);
    for (size_t i = 0; r == 0 && i < m->children.n; i++) {
        if (strcmp(m->children.at[i].name, name) == 0) {
            r = err_set(MESH_EEXIST, "the module has a child \"%s\" already", name);
        }
    }
    if (r == 0 && module_own_parameter(m, name) != NULL) {
        r = err_set(MESH_EEXIST, "the module has a parameter \"%s\" already", name);
    }
    return r;
}

static int check_child(const mesh_module *m, const char *name, const mesh_module *child)
{
    if (child == NULL) {
        return err_set(MESH_EINVAL, "the child \"%s\" is NULL", name);
    }
    if (child->parent != NULL) {
        return err_set(MESH_ESTATE, "the child \"%s\" has a parent already", name);
    }
    for (const mesh_module *up = m; up != NULL; up = up->parent) {
        if (up == child) {
            return err_set(MESH_EINVAL, "the child \"%s\" holds the module it is to be added to", name);
        }
    }
    return 0;
}

int module_add_child(mesh_module *m, const char *name, mesh_module *child)
{
    int r = check_new_name(m, "child", name);
    r = r < 0 ? r : check_child(m, name, child);
    if (r < 0) {
        return r;
    }
    char *copy = mem_strdup(name);
    struct module_child *c = copy == NULL ? NULL : VEC_PUSH(&m->children);
    if (c == NULL) {
        mem_free(copy);
        return err_no_memory(strlen(name) + sizeof *c, "a child of a module");
    }
    *c = (struct module_child){ .name = copy, .module = child };
    child->parent = m;
    return 0;
}

static struct parameter *new_parameter(mesh_module *m, const char *name)
{
    if (check_new_name(m, "parameter", name) < 0) {
        return NULL;
    }
    char *copy = mem_strdup(name);
    struct parameter *p = copy == NULL ? NULL : VEC_PUSH(&m->parameters);
    if (p == NULL) {
        mem_free(copy);
        err_no_memory(strlen(name) + sizeof *p, "a parameter of a module");
        return NULL;
    }
    *p = (struct parameter){ .name = copy };
    return p;
}

int module_add_recipe(mesh_module *m, const char *name, const struct recipe *recipe)
{
    struct parameter *p = new_parameter(m, name);
    if (p == NULL) {
        return err_status();
    }
    p->recipe = *recipe;
    return 0;
}

int module_add_value(mesh_module *m, const char *name, mesh_dtensor *value)
{
    struct parameter *p = new_parameter(m, name);
    if (p == NULL) {
        return err_status();
    }
    p->value = dtensor_ref(value);
    value->requires_grad = true;
    return tied_mark(value);
}

struct parameter *module_own_parameter(mesh_module *m, const char *name)
{
    for (size_t i = 0; i < m->parameters.n; i++) {
        if (strcmp(m->parameters.at[i].name, name) == 0) {
            return &m->parameters.at[i];
        }
    }
    return NULL;
}

mesh_module *module_child(const mesh_module *m, const char *name)
{
    for (size_t i = 0; i < m->children.n; i++) {
        if (strcmp(m->children.at[i].name, name) == 0) {
            return m->children.at[i].module;
        }
    }
    return NULL;
}

mesh_module *module_following(mesh_module *root, mesh_module *m)
{
    if (m->children.n > 0) {
        return m->children.at[0].module;
    }
    for (; m != root; m = m->parent) {
        const mesh_module *parent = m->parent;
        size_t i = 0;
        while (parent->children.at[i].module != m) {
            i++;
        }
        if (i + 1 < parent->children.n) {
            return parent->children.at[i + 1].module;
        }
    }
    return NULL;
}

struct parameter *module_tree_parameter(mesh_module *m, size_t i, mesh_module **ret_owner)
{
    for (mesh_module *at = m; at != NULL; at = module_following(m, at)) {
        if (i < at->parameters.n) {
            *ret_owner = at;
            return &at->parameters.at[i];
        }
        i -= at->parameters.n;
    }
    return NULL;
}
