/* tests/e2e/ctl.c - starts meshctl and looks at what it printed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl.h"

#include <check.h>
#include <string.h>

enum { MAX_WORDS = 64 };

void ctl_start(struct proc *p, const struct ctl_line *line)
{
    const char *argv[MAX_WORDS] = { program_path("MESHCTL_PROGRAM") };
    const char *environment[MAX_WORDS] = { "MESH_ADDRESS", "MESH_JOB", "MESH_RANK", "XDG_RUNTIME_DIR", "NO_COLOR=1" };
    char address[160];
    int n = 5;
    for (int i = 0; line->args[i] != NULL; i++) {
        ck_assert_int_lt(i + 2, MAX_WORDS);
        argv[i + 1] = line->args[i];
    }
    for (int i = 0; line->environment != NULL && line->environment[i] != NULL; i++) {
        ck_assert_int_lt(n + 2, MAX_WORDS);
        environment[n++] = line->environment[i];
    }
    if (line->address != NULL) {
        (void)snprintf(address, sizeof address, "MESH_ADDRESS=%s", line->address);
        environment[n++] = address;
    }
    proc_start(p, &(struct proc_options){ .argv = argv, .environment = environment });
}

void ctl_run(struct proc *p, const struct ctl_line *line)
{
    ctl_start(p, line);
    ck_assert_msg(proc_wait(p, CTL_TIMEOUT_MS), "meshctl %s does not end; it said:\n%.3000s%.3000s", line->args[0],
                  p->out.text, p->err.text);
}

static void expect_text(const char *where, const char *text, const char *want)
{
    if (want == NULL) {
        return;
    }
    if (want[0] == '\0') {
        ck_assert_msg(text[0] == '\0', "%s should be empty and is:\n%.3000s", where, text);
    } else {
        ck_assert_msg(strstr(text, want) != NULL, "'%s' is not in %s, which is:\n%.3000s", want, where, text);
    }
}

void ctl_expect(struct proc *p, int code, const char *out, const char *err)
{
    ck_assert_msg(proc_code(p) == code, "exit code %d instead of %d; it said:\n%.3000s%.3000s", proc_code(p), code,
                  p->out.text, p->err.text);
    expect_text("standard output", p->out.text, out);
    expect_text("standard error", p->err.text, err);
    proc_fini(p);
}

json_t *ctl_json(const struct proc *p)
{
    json_error_t why;
    json_t *document = json_loads(p->out.text, 0, &why);
    ck_assert_msg(document != NULL, "not JSON (%s):\n%.3000s", why.text, p->out.text);
    ck_assert_str_eq(json_string_value(json_object_get(document, "apiVersion")), "mesh/v1");
    return document;
}

int count_text(const char *all, const char *text)
{
    int n = 0;
    for (const char *at = all; (at = strstr(at, text)) != NULL; at += strlen(text)) {
        n++;
    }
    return n;
}
