/* client/ctl/options.c - reads a command line by tables of options.
 *
 * Forms: --name value, --name=value, -x value, -xvalue, -xyz for flags; "--" ends the options; "-" is an operand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"

struct reader {
    const struct option_table *tables;
    size_t n_tables;
    char *const *argv;
    int next; /* index of the next word of argv */
};

struct found {
    const struct option *option;
    void *value;
};

static bool takes_value(const struct option *o)
{
    return o->kind != OPTION_FLAG && o->kind != OPTION_COUNT;
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = { { "", 1 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || errno != 0 || text[0] == ' ') {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcmp(end, units[i].unit) == 0 && number <= INT64_MAX / units[i].ms && number >= INT64_MIN / units[i].ms) {
            *ret_ms = number * units[i].ms;
            return true;
        }
    }
    return false;
}

static bool number_parse(const char *text, int64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || text[0] == ' ') {
        return false;
    }
    *ret_number = number;
    return true;
}

static int set_number(const struct option *o, const char *spelling, const char *text, int64_t *value)
{
    int64_t number = 0;
    bool is_time = o->kind == OPTION_DURATION;
    bool is_read = is_time ? duration_parse(text, &number) : number_parse(text, &number);
    if (!is_read) {
        return err_set(MESH_EINVAL, "%s is '%.40s': %s is wanted", spelling, text,
                       is_time ? "a time like 500ms, 5s or 2m" : "a number");
    }
    if (number < o->min || number > o->max) {
        return err_set(MESH_EINVAL, "%s is %lld%s: it goes from %lld to %lld", spelling, (long long)number,
                       is_time ? " ms" : "", (long long)o->min, (long long)o->max);
    }
    *value = number;
    return 0;
}

static int set_choice(const struct option *o, const char *spelling, const char *text, int *value)
{
    size_t len = strlen(text);
    const char *at = o->value_name;
    for (int i = 0; at != NULL; i++) {
        const char *end = strchr(at, '|');
        size_t n = end != NULL ? (size_t)(end - at) : strlen(at);
        if (n == len && memcmp(at, text, n) == 0) {
            *value = i;
            return 0;
        }
        at = end != NULL ? end + 1 : NULL;
    }
    return err_set(MESH_EINVAL, "%s is '%.40s': it is one of %s", spelling, text, o->value_name);
}

static int set_value(const struct found *f, const char *spelling, const char *text)
{
    switch (f->option->kind) {
    case OPTION_FLAG:
        *(bool *)f->value = true;
        return 0;
    case OPTION_COUNT:
        *(int *)f->value += 1;
        return 0;
    case OPTION_TEXT:
        *(const char **)f->value = text;
        return 0;
    case OPTION_NUMBER:
    case OPTION_DURATION:
        return set_number(f->option, spelling, text, f->value);
    case OPTION_CHOICE:
        return set_choice(f->option, spelling, text, f->value);
    case OPTION_LIST: {
        struct text_list *list = f->value;
        if (list->n == OPTIONS_MAX_LIST) {
            return err_set(MESH_ETOOLARGE, "%s was given more than %d times", spelling, OPTIONS_MAX_LIST);
        }
        list->at[list->n++] = text;
        return 0;
    }
    }
    return err_set(MESH_EINVAL, "%s is of no known kind", spelling);
}

static bool find_option(const struct reader *r, const char *name, size_t name_len, char letter, struct found *ret_found)
{
    for (size_t t = 0; t < r->n_tables; t++) {
        for (size_t i = 0; i < r->tables[t].n; i++) {
            const struct option *o = &r->tables[t].rows[i];
            bool is_it = name != NULL ? strlen(o->name) == name_len && memcmp(o->name, name, name_len) == 0
                                      : o->letter == letter;
            if (is_it) {
                *ret_found = (struct found){ .option = o, .value = (char *)r->tables[t].values + o->offset };
                return true;
            }
        }
    }
    return false;
}

static int unknown_option(const struct reader *r, const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (size_t t = 0; t < r->n_tables; t++) {
        for (size_t i = 0; i < r->tables[t].n && n < ARRAY_SIZE(names); i++) {
            names[n++] = r->tables[t].rows[i].name;
        }
    }
    const char *near = suggest_nearest(name, names, n);
    if (near != NULL) {
        return err_set(MESH_EINVAL, "unknown option '--%.40s'; did you mean '--%s'?", name, near);
    }
    return err_set(MESH_EINVAL, "unknown option '--%.40s'", name);
}

static int read_long(struct reader *r, const char *word)
{
    char name[64];
    const char *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
    struct found f;
    (void)snprintf(name, sizeof name, "%.*s", (int)MIN(len, sizeof name - 1), word);
    if (!find_option(r, word, len, 0, &f)) {
        return unknown_option(r, name);
    }
    char spelling[72];
    (void)snprintf(spelling, sizeof spelling, "--%s", f.option->name);
    if (!takes_value(f.option)) {
        return equals != NULL ? err_set(MESH_EINVAL, "%s takes no value", spelling) : set_value(&f, spelling, NULL);
    }
    const char *text = equals != NULL ? equals + 1 : r->argv[r->next];
    if (text == NULL) {
        return err_set(MESH_EINVAL, "%s needs a value: %s %s", spelling, spelling, f.option->value_name);
    }
    r->next += equals == NULL;
    return set_value(&f, spelling, text);
}

static int read_letters(struct reader *r, const char *letters)
{
    for (const char *at = letters; *at != '\0'; at++) {
        struct found f;
        char spelling[3] = { '-', *at, '\0' };
        if (!find_option(r, NULL, 0, *at, &f)) {
            return err_set(MESH_EINVAL, "unknown option '%s'", spelling);
        }
        if (takes_value(f.option)) {
            const char *text = at[1] != '\0' ? at + 1 : r->argv[r->next];
            if (text == NULL) {
                return err_set(MESH_EINVAL, "%s needs a value: %s %s", spelling, spelling, f.option->value_name);
            }
            r->next += at[1] == '\0';
            return set_value(&f, spelling, text);
        }
        int s = set_value(&f, spelling, NULL);
        if (s != 0) {
            return s;
        }
    }
    return 0;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0;
}

static int read_option(struct reader *r)
{
    const char *word = r->argv[r->next++];
    return word[1] == '-' ? read_long(r, word + 2) : read_letters(r, word + 1);
}

int options_parse_leading(const struct option_table *table, char *const *argv)
{
    struct reader r = { .tables = table, .n_tables = 1, .argv = argv };
    while (argv[r.next] != NULL && is_option(argv[r.next])) {
        int status = read_option(&r);
        if (status != 0) {
            return status;
        }
    }
    return r.next;
}

int options_parse(const struct option_table *tables, size_t n_tables, char *const *argv,
                  struct arguments *ret_arguments)
{
    struct reader r = { .tables = tables, .n_tables = n_tables, .argv = argv };
    struct arguments args = { .n_operands = 0 };
    while (argv[r.next] != NULL) {
        const char *word = argv[r.next];
        if (strcmp(word, "--") == 0) {
            args.program = &argv[r.next + 1];
            break;
        }
        if (is_option(word)) {
            int status = read_option(&r);
            if (status != 0) {
                return status;
            }
            continue;
        }
        if (args.n_operands == OPTIONS_MAX_OPERANDS) {
            return err_set(MESH_EINVAL, "'%.40s' is one word too many", word);
        }
        args.operand[args.n_operands++] = word;
        r.next++;
    }
    *ret_arguments = args;
    return 0;
}
