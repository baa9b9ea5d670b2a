/* tests/e2e/ctl.h - meshctl as the tests call it: one line, then what it printed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef E2E_CTL_H
#define E2E_CTL_H

#include <jansson.h>

#include "harness/procs.h"

/* The environment of all calls: no daemon named, no usual places, no colours; then the test's own, NULL-terminated. */
struct ctl_line {
    const char *address; /* NULL: none is named */
    const char *const *environment;
    const char *const *args; /* after "meshctl", NULL-terminated */
};

void ctl_start(struct proc *p, const struct ctl_line *line);
void ctl_run(struct proc *p, const struct ctl_line *line); /* to its end, within CTL_TIMEOUT_MS */

#define CTL_TIMEOUT_MS 90000

#define CTL(p, address_, ...)                                                                                          \
    ctl_run((p), &(struct ctl_line){ .address = (address_), .args = (const char *[]){ __VA_ARGS__, NULL } })

/* The exit code and what must stand in standard output and standard error ("": nothing may stand there; NULL: no matter). */
void ctl_expect(struct proc *p, int code, const char *out, const char *err); /* also frees p */

json_t *ctl_json(const struct proc *p); /* standard output, parsed */

/* How often `text` stands in `all`. */
int count_text(const char *all, const char *text);

#endif
