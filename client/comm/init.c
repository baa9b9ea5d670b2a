/* client/comm/init.c - mesh_init(): from options and environment to a session.
 *
 *      a daemon or a job named          join it through meshd
 *      neither, and one rank asked for  a world of one
 *      neither, and more asked for      an error that says what to do
 *
 * MESH_ADDRESS, MESH_JOB, MESH_RANK, MESH_WORLD_SIZE stand in for options that were not given; meshctl run sets them.
 * MESH_LOG sets the levels of log lines (base/log.h), MESH_LINK what links are made of.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "comm/join.h"
#include "core/scope.h"
#include "wire/default_address.h"

#define JOIN_TIMEOUT_MS 60000
#define MAX_RANKS       65536

struct settings {
    char address[160]; /* "": none */
    const char *job;   /* NULL: none */
    int rank;          /* -1: meshd assigns */
    int world_size;    /* 0: as launched */
    int64_t join_timeout_ms, timeout_ms;
    enum link_kind policy;
};

/* The caller's struct may be that of an older or a newer header: what it lacks is 0, what we do not know must be 0. */
static int read_options(const mesh_process_group_options *given, mesh_process_group_options *ret_options)
{
    mesh_process_group_options o = { .size = sizeof o };
    if (given == NULL) {
        *ret_options = o;
        return 0;
    }
    if (given->size < sizeof given->size) {
        return err_set(MESH_EINVAL, "the options' first member, size, is %zu: use the macro mesh_init(), which sets it",
                       given->size);
    }
    memcpy(&o, given, MIN(given->size, sizeof o));
    const uint8_t *bytes = (const uint8_t *)given;
    for (size_t i = sizeof o; i < given->size; i++) {
        if (bytes[i] != 0) {
            return err_set(MESH_EINVAL, "the program sets an option that this libmeshclient (" MESH_VERSION
                                        ") does not know: it was built for a later one");
        }
    }
    *ret_options = o;
    return 0;
}

static const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != 0 ? text : NULL;
}

static int number_from_environment(const char *name, long least, long greatest, int *ret_number)
{
    const char *text = environment(name);
    char *end;
    if (text == NULL) {
        return 0;
    }
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*end != 0 || end == text || errno != 0 || n < least || n > greatest) {
        return err_set(MESH_EINVAL, "%s is \"%.40s\": a number from %ld to %ld is needed", name, text, least, greatest);
    }
    *ret_number = (int)n;
    return 0;
}

static int read_ranks(const mesh_process_group_options *o, struct settings *s)
{
    s->rank = -1;
    s->world_size = o->world_size;
    if (o->world_size < 0 || o->world_size > MAX_RANKS) {
        return err_set(MESH_EINVAL, "world_size is %d: 0 (as launched) or 1 to %d is needed", o->world_size, MAX_RANKS);
    }
    int r = o->world_size != 0 ? 0 : number_from_environment("MESH_WORLD_SIZE", 1, MAX_RANKS, &s->world_size);
    if (o->rank != NULL) {
        s->rank = *o->rank;
    } else if (r == 0) {
        r = number_from_environment("MESH_RANK", 0, MAX_RANKS - 1, &s->rank);
    }
    if (r == 0 && o->rank != NULL && s->rank < 0) {
        r = err_set(MESH_EINVAL, "rank is %d: 0 or more is needed; without one meshd assigns it", s->rank);
    }
    if (r == 0 && s->world_size > 0 && s->rank >= s->world_size) {
        r = err_set(MESH_EINVAL, "rank %d is not one of a world of %d", s->rank, s->world_size);
    }
    return r;
}

static int read_times(const mesh_process_group_options *o, struct settings *s)
{
    if (o->join_timeout_ms < 0 || o->timeout_ms < 0) {
        return err_set(MESH_EINVAL, "timeouts are milliseconds, 0 for the default: %" PRId64 " and %" PRId64,
                       o->join_timeout_ms, o->timeout_ms);
    }
    s->join_timeout_ms = o->join_timeout_ms != 0 ? o->join_timeout_ms : JOIN_TIMEOUT_MS;
    s->timeout_ms = o->timeout_ms;
    return 0;
}

static int read_job(const mesh_process_group_options *o, struct settings *s)
{
    const char *address = o->address != NULL ? o->address : environment("MESH_ADDRESS");
    s->job = o->job != NULL ? o->job : environment("MESH_JOB");
    if (address != NULL) {
        if (strlen(address) >= sizeof s->address) {
            return err_set(MESH_EINVAL, "the address of meshd is %zu characters long, %zu at most", strlen(address),
                           sizeof s->address - 1);
        }
        memcpy(s->address, address, strlen(address) + 1);
        if (s->job == NULL) {
            return err_set(MESH_EINVAL,
                           "a meshd is named (%.60s), but no job: set MESH_JOB or the option job, or start "
                           "the program with `meshctl run -n N -- PROGRAM`",
                           address);
        }
        return 0;
    }
    struct address found;
    if (s->job != NULL) {
        if (!default_address_find(&found)) {
            return err_set(MESH_EDAEMON,
                           "job %.60s is named, but no meshd: none listens where one is looked for; set "
                           "MESH_ADDRESS, or start the program with `meshctl run -n N -- PROGRAM`",
                           s->job);
        }
        address_format(&found, s->address, sizeof s->address);
        return 0;
    }
    if (s->world_size > 1) {
        return err_set(MESH_EDAEMON,
                       "%d ranks are asked for, but no meshd is named to bring them together: start the "
                       "program with `meshctl run -n %d -- PROGRAM`",
                       s->world_size, s->world_size);
    }
    if (s->rank > 0) {
        return err_set(MESH_EDAEMON,
                       "this is to be rank %d, but no meshd is named to bring it together with the others: start the "
                       "program with `meshctl run -n N -- PROGRAM`",
                       s->rank);
    }
    return 0;
}

static int begin_alone(const struct settings *s)
{
    struct local_world *world = local_world_new(1);
    if (world == NULL) {
        return err_last()->status;
    }
    struct mesh_session *session = session_new(s->timeout_ms);
    if (session != NULL) {
        session->control = control_local_new(session, world, 0);
    }
    if (session == NULL || session->control == NULL) {
        session_free(session);
        local_world_free(world);
        return err_last()->status;
    }
    struct join_request q = { .job = "local", .rank = 0, .timeout_ms = s->join_timeout_ms };
    session->world = world;
    int r = session_begin(session, &q, NULL, LINK_SIM);
    if (r < 0) {
        local_world_free(world);
        return r;
    }
    comm_of(session)->owned_world = world;
    log_info("comm", "neither a meshd nor a job is named: this is a world of one rank");
    return 0;
}

static int begin_with_daemon(const struct settings *s)
{
    struct mesh_session *session = session_new(s->timeout_ms);
    if (session == NULL) {
        return err_last()->status;
    }
    session->control = control_meshd_new(session, s->address);
    if (session->control == NULL) {
        mesh_error why = *err_last();
        session_free(session);
        return err_restore(&why);
    }
    struct join_request q = {
        .job = s->job, .world_size = s->world_size, .rank = s->rank, .timeout_ms = s->join_timeout_ms
    };
    return session_begin(session, &q, NULL, s->policy);
}

static int read_log_levels(void)
{
    const char *spec = environment("MESH_LOG");
    int r = spec != NULL ? log_configure(spec) : 0;
    return r < 0 ? err_wrap(r, "MESH_LOG") : 0;
}

int mesh_init_process_group(const mesh_process_group_options *options)
{
    err_enter("mesh_init");
    struct mesh_session *s = session_current();
    if (s != NULL) {
        if (!comm_of(s)->is_simulated) {
            return err_set(MESH_ESTATE, "mesh_init() was called before on this thread: mesh_finalize() comes first");
        }
        comm_of(s)->n_inits++;
        return 0;
    }
    mesh_process_group_options o = { .size = sizeof o };
    struct settings settings = { .rank = -1 };
    int r = read_log_levels();
    r = r < 0 ? r : read_options(options, &o);
    r = r < 0 ? r : read_ranks(&o, &settings);
    r = r < 0 ? r : read_times(&o, &settings);
    r = r < 0 ? r : read_job(&o, &settings);
    r = r < 0 ? r : link_policy_from_environment(&settings.policy);
    if (r < 0) {
        return r;
    }
    return settings.address[0] != 0 ? begin_with_daemon(&settings) : begin_alone(&settings);
}

int mesh_finalize(void)
{
    err_enter(__func__);
    struct mesh_session *s = session_require();
    if (s == NULL) {
        return MESH_ESTATE;
    }
    if (!session_is_mine(s)) {
        return err_set(MESH_ESTATE, "this thread is attached: it ends that by mesh_attach(NULL), and the thread that "
                                    "joined the job calls mesh_finalize()");
    }
    if (comm_of(s)->n_inits > 0) {
        comm_of(s)->n_inits--; /* the end of a mesh_init() inside a world of threads */
        return 0;
    }
    struct local_world *world = comm_of(s)->owned_world;
    int r = session_end(s);
    local_world_free(world);
    return r;
}

int mesh_abort(const char *why)
{
    err_enter(__func__);
    struct mesh_session *s = session_require();
    if (s == NULL) {
        return MESH_ESTATE;
    }
    const char *sentence = why != NULL && why[0] != 0 ? why : "mesh_abort() was called";
    struct report report = { .kind = REPORT_ABORT, .status = MESH_EABORTED, .culprit = -1, .sentence = sentence };
    s->control->ops->report(s->control, &report, NULL);
    (void)err_set(MESH_EABORTED, "rank %d failed: %s", s->rank, sentence);
    session_abort(s, err_last());
    return 0;
}

int mesh_attach(mesh_session *s)
{
    err_enter(__func__);
    struct mesh_session *current = session_current();
    if (s == NULL) {
        if (current == NULL) {
            return err_set(MESH_ESTATE, "this thread is not attached to a session");
        }
        return session_is_mine(current)
                   ? err_set(MESH_ESTATE, "this thread joined the job: it leaves by mesh_finalize()")
                   : session_detach();
    }
    if (current != NULL) {
        return err_set(MESH_ESTATE, "this thread takes part in a session already: mesh_attach(NULL) comes first");
    }
    return session_attach(s);
}
