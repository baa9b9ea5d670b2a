/* daemon/descriptor.c - compare descriptors field by field.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/descriptor.h"

#include <stdio.h>
#include <string.h>

struct field {
    const char *name;
    size_t name_len;
    const char *value; /* NULL: there is no '=' */
    size_t value_len;
};

/* The field at *p, which moves behind it; false at the end. */
static bool next_field(const char **p, struct field *ret_field)
{
    *p += strspn(*p, " ");
    size_t len = strcspn(*p, " ");
    if (len == 0) {
        return false;
    }
    const char *equals = memchr(*p, '=', len);
    *ret_field = (struct field){ .name = *p, .name_len = len };
    if (equals != NULL) {
        ret_field->name_len = (size_t)(equals - *p);
        ret_field->value = equals + 1;
        ret_field->value_len = len - ret_field->name_len - 1;
    }
    *p += len;
    return true;
}

static bool find_field(const char *text, const struct field *like, struct field *ret_field)
{
    struct field f;
    while (next_field(&text, &f)) {
        if (f.name_len == like->name_len && memcmp(f.name, like->name, f.name_len) == 0) {
            *ret_field = f;
            return true;
        }
    }
    return false;
}

static void copy(char *buf, size_t cap, const char *text, size_t len)
{
    if (len < cap) {
        snprintf(buf, cap, "%.*s", (int)len, text);
    } else {
        snprintf(buf, cap, "%.*s...", (int)(cap - sizeof "..."), text);
    }
}

static void copy_value(char *buf, size_t cap, const struct field *f)
{
    if (f == NULL || f->value == NULL) {
        copy(buf, cap, "(none)", strlen("(none)"));
    } else {
        copy(buf, cap, f->value, f->value_len);
    }
}

static bool same_value(const struct field *x, const struct field *y)
{
    return (x->value == NULL) == (y->value == NULL) && x->value_len == y->value_len &&
           (x->value == NULL || memcmp(x->value, y->value, x->value_len) == 0);
}

/* Looks for a field of a that b lacks or says otherwise. */
static bool differs_one_way(const char *a, const char *b, bool is_swapped, struct difference *ret)
{
    struct field x, y;
    while (next_field(&a, &x)) {
        bool found = find_field(b, &x, &y);
        if (found && same_value(&x, &y)) {
            continue;
        }
        copy(ret->field, sizeof ret->field, x.name, x.name_len);
        copy_value(is_swapped ? ret->b : ret->a, sizeof ret->a, &x);
        copy_value(is_swapped ? ret->a : ret->b, sizeof ret->b, found ? &y : NULL);
        return true;
    }
    return false;
}

bool descriptor_differs(const char *a, const char *b, struct difference *ret_difference)
{
    if (strcmp(a, b) == 0) {
        return false;
    }
    if (differs_one_way(a, b, false, ret_difference) || differs_one_way(b, a, true, ret_difference)) {
        return true;
    }
    copy(ret_difference->field, sizeof ret_difference->field, "descriptor", strlen("descriptor"));
    copy(ret_difference->a, sizeof ret_difference->a, a, strlen(a));
    copy(ret_difference->b, sizeof ret_difference->b, b, strlen(b));
    return true;
}
