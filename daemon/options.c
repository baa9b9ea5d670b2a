/* daemon/options.c - load the options in order of rank: defaults, file, environment, flags.
 *
 * The flags are read twice: first to find --config, last to override.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/util.h"

#define SYSTEM_FILE "/etc/meshd/meshd.conf"

enum kind { TEXT, NUMBER, FD, FILE_NAME, ACTION };
#define KIND_TEXT   TEXT
#define KIND_NUMBER NUMBER
#define KIND_FD     FD
#define KIND_FILE   FILE_NAME
#define KIND_ACTION ACTION

static const struct option_row {
    const char *name;
    enum kind kind;
    const char *fallback, *argument, *help;
} rows[N_OPTIONS] = {
#define OPTION(id, name, kind, fallback, argument, help)                                                               \
    [OPTION_##id] = { name, KIND_##kind, fallback, argument, help },
#include "daemon/options.def"
#undef OPTION
};

static int find(const char *name, size_t len)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0) {
            return i;
        }
    }
    return -1;
}

/* dashes: "--" of a flag, "" of a key. */
static int unknown(const char *what, const char *dashes, const char *name, size_t len)
{
    const char *names[N_OPTIONS];
    for (int i = 0; i < N_OPTIONS; i++) {
        names[i] = rows[i].name;
    }
    char given[64];
    snprintf(given, sizeof given, "%.*s", (int)MIN(len, sizeof given - 1), name);
    const char *near = suggest_nearest(given, names, N_OPTIONS);
    if (near == NULL) {
        return err_set(MESH_EINVAL, "there is no %s %s%s; `meshd --help` lists them", what, dashes, given);
    }
    return err_set(MESH_EINVAL, "there is no %s %s%s; did you mean %s%s?", what, dashes, given, dashes, near);
}

static bool is_number(const char *text)
{
    errno = 0;
    char *end;
    long long number = strtoll(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == 0 && errno == 0 && number <= INT32_MAX;
}

static int set(struct options *o, int id, const char *text, const char *origin)
{
    bool is_numeric = rows[id].kind == NUMBER || rows[id].kind == FD;
    if (is_numeric && !is_number(text)) {
        return err_set(MESH_EINVAL, "%s: \"%.60s\" is not a number from 0 to %d", rows[id].name, text, INT32_MAX);
    }
    if (strlen(text) >= sizeof o->value[id].text) {
        return err_set(MESH_EINVAL, "%s: the value is longer than %zu bytes", rows[id].name,
                       sizeof o->value[id].text - 1);
    }
    snprintf(o->value[id].text, sizeof o->value[id].text, "%s", text);
    snprintf(o->value[id].origin, sizeof o->value[id].origin, "%s", origin);
    return 0;
}

static void set_defaults(struct options *o)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        snprintf(o->value[i].text, sizeof o->value[i].text, "%s", rows[i].fallback);
        snprintf(o->value[i].origin, sizeof o->value[i].origin, "default");
    }
}

/* Flags: --name value, --name=value, --action. */
static int read_flag(struct options *o, char *const **argv, bool only_config)
{
    const char *flag = *(*argv)++;
    if (strncmp(flag, "--", 2) != 0) {
        return err_set(MESH_EINVAL, "%.60s: meshd takes options only; `meshd --help` lists them", flag);
    }
    const char *name = flag + 2;
    size_t len = strcspn(name, "=");
    int id = find(name, len);
    if (id < 0) {
        return unknown("option", "--", name, len);
    }
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (rows[id].kind == ACTION) {
        if (value != NULL) {
            return err_set(MESH_EINVAL, "--%s takes no value", rows[id].name);
        }
        value = "1";
    } else if (value == NULL) {
        if (**argv == NULL) {
            return err_set(MESH_EINVAL, "--%s needs a value: --%s %s", rows[id].name, rows[id].name, rows[id].argument);
        }
        value = *(*argv)++;
    }
    return only_config && id != OPTION_CONFIG ? 0 : set(o, id, value, "flag");
}

static int read_flags(struct options *o, char *const *argv, bool only_config)
{
    for (argv += argv[0] != NULL; *argv != NULL;) {
        int r = read_flag(o, &argv, only_config);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_environment(struct options *o, int only)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, "MESHD_%s", rows[i].name);
        for (int k = 0; k < len; k++) {
            name[k] = name[k] == '-' ? '_' : (char)toupper((unsigned char)name[k]);
        }
        const char *value = rows[i].kind == ACTION || (only >= 0 && only != i) ? NULL : getenv(name);
        int r = value == NULL ? 0 : set(o, i, value, "environment");
        if (r < 0) {
            return err_wrap(r, "%s", name);
        }
    }
    return 0;
}

struct file_reader {
    struct options *options;
    const char *path;
    int status; /* of the first line that is wrong */
    mesh_error error;
};

static int read_line(struct file_reader *f, const char *section, const char *name, const char *value)
{
    if (section[0] != 0 && strcmp(section, "meshd") != 0) {
        return err_set(MESH_EINVAL, "there is no section [%.60s]; the options stand under [meshd]", section);
    }
    int id = find(name, strlen(name));
    if (id < 0) {
        return unknown("key", "", name, strlen(name));
    }
    if (rows[id].kind != TEXT && rows[id].kind != NUMBER) {
        return err_set(MESH_EINVAL, "%s is an option of the command line, not of the file", rows[id].name);
    }
    return set(f->options, id, value, f->path);
}

static int line_cb(void *arg, const char *section, const char *name, const char *value)
{
    struct file_reader *f = arg;
    if (f->status < 0) {
        return 1;
    }
    f->status = read_line(f, section, name, value);
    if (f->status < 0) {
        f->error = *mesh_last_error();
    }
    return f->status == 0;
}

static int read_file(struct options *o)
{
    const char *path = o->value[OPTION_CONFIG].text;
    if (path[0] == 0) {
        if (access(SYSTEM_FILE, R_OK) != 0) {
            return 0;
        }
        path = SYSTEM_FILE;
    }
    struct file_reader f = { .options = o, .path = path };
    int line = ini_parse(path, line_cb, &f);
    if (line == -1) {
        return err_set(MESH_EINVAL, "%.200s: cannot be read: %s", path, strerror(errno));
    }
    if (f.status < 0) {
        err_restore(&f.error);
        return err_wrap(f.status, "%.120s:%d", path, line);
    }
    if (line != 0) {
        return err_set(MESH_EINVAL, "%.120s:%d: this line is neither `key = value` nor [meshd]", path, line);
    }
    return 0;
}

int options_load(struct options *o, char *const *argv)
{
    set_defaults(o);
    int r = read_environment(o, OPTION_CONFIG);
    if (r == 0) {
        r = read_flags(o, argv, true);
    }
    /* --help and --version answer even next to a broken file. */
    struct options flags = *o;
    if (r == 0) {
        r = read_flags(&flags, argv, false);
    }
    if (r == 0 && (options_is_set(&flags, OPTION_HELP) || options_is_set(&flags, OPTION_VERSION))) {
        *o = flags;
        return 0;
    }
    if (r == 0) {
        r = read_file(o);
    }
    if (r == 0) {
        r = read_environment(o, -1);
    }
    return r < 0 ? r : read_flags(o, argv, false);
}

const char *options_text(const struct options *o, enum option id)
{
    return o->value[id].text;
}

int64_t options_number(const struct options *o, enum option id)
{
    return strtoll(o->value[id].text, NULL, 10);
}

bool options_is_set(const struct options *o, enum option id)
{
    return strcmp(o->value[id].text, "1") == 0;
}

void options_print(const struct options *o, FILE *out)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        if (rows[i].kind != ACTION) {
            fprintf(out, "%-18s = %-24s # %s\n", rows[i].name, o->value[i].text, o->value[i].origin);
        }
    }
}

void options_help(FILE *out)
{
    fprintf(out,
            "usage: meshd [option ...]\n\n"
            "The daemon of one node: brings the ranks of jobs together, keeps their stores, notices their deaths.\n"
            "Runs in the foreground, logs to stderr, ends on SIGTERM.\n\n");
    for (int i = 0; i < N_OPTIONS; i++) {
        char flag[48];
        snprintf(flag, sizeof flag, "--%s %s", rows[i].name, rows[i].argument != NULL ? rows[i].argument : "");
        fprintf(out, "  %-23s %s\n", flag, rows[i].help);
    }
    fprintf(out,
            "\nEach option with a value may also stand in the environment (MESHD_SOCKET) or, except descriptors, in\n"
            "the file (socket = /path).  Flags win over the environment, that over the file.\n");
}
