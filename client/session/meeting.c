/* client/session/meeting.c - barriers and agreements of a world inside this process, as pure bookkeeping.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/meeting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "session/session.h"

/* How sentences about it begin: "barrier end", "device_mesh/3". */
static const char *kind_name(enum meeting_kind kind)
{
    return kind == MEETING_BARRIER ? "barrier " : "";
}

static void meeting_free(struct meeting *m)
{
    for (int i = 0; m->seat != NULL && i < m->n; i++) {
        mem_free(m->seat[i].descriptor);
    }
    mem_free(m->seat);
    mem_free(m->name);
    mem_free(m);
}

static struct meeting *meeting_new(const struct meeting_call *call)
{
    struct meeting *m = mem_new(struct meeting);
    if (m == NULL) {
        return NULL;
    }
    m->kind = call->kind;
    m->n = call->n;
    m->name = mem_strdup(call->name);
    m->seat = mem_zalloc((size_t)call->n * sizeof *m->seat);
    if (m->name == NULL || m->seat == NULL) {
        meeting_free(m);
        return NULL;
    }
    for (int i = 0; i < m->n; i++) {
        m->seat[i].rank = call->ranks[i];
    }
    return m;
}

static struct seat *find_seat(const struct meeting *m, int rank)
{
    for (int i = 0; i < m->n; i++) {
        if (m->seat[i].rank == rank) {
            return &m->seat[i];
        }
    }
    return NULL;
}

static bool has_members(const struct meeting *m, const struct meeting_call *call)
{
    if (m->n != call->n) {
        return false;
    }
    for (int i = 0; i < m->n; i++) {
        if (find_seat(m, call->ranks[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static struct meeting *find_open(const struct meetings *all, const struct meeting_call *call)
{
    struct meeting *m = all->open;
    while (m != NULL && (m->kind != call->kind || strcmp(m->name, call->name) != 0 || !has_members(m, call))) {
        m = m->next;
    }
    return m;
}

static void unlink_meeting(struct meeting **list, struct meeting *m)
{
    for (struct meeting **at = list; *at != NULL; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    m->next = NULL;
}

static void close_meeting(struct meetings *all, struct meeting *m)
{
    unlink_meeting(&all->open, m);
    m->is_over = true;
    if (m->kind == MEETING_AGREEMENT && m->n_taken < m->n) {
        m->is_kept = true;
        m->next = all->failed;
        all->failed = m;
    }
}

static int check_call(const struct meeting_call *call)
{
    bool is_member = false;
    for (int i = 0; i < call->n; i++) {
        is_member = is_member || call->ranks[i] == call->self;
        for (int k = 0; k < i; k++) {
            if (call->ranks[k] == call->ranks[i]) {
                return err_set(MESH_EINVAL, "%s%s: rank %d is named twice among its members", kind_name(call->kind),
                               call->name, call->ranks[i]);
            }
        }
    }
    return is_member ? 0
                     : err_set(MESH_ENOTMEMBER, "%s%s: rank %d is not among its members", kind_name(call->kind),
                               call->name, call->self);
}

/* The agreement of this name that failed before this rank came. */
static struct meeting *find_failed(const struct meetings *all, const struct meeting_call *call)
{
    for (struct meeting *m = call->kind == MEETING_AGREEMENT ? all->failed : NULL; m != NULL; m = m->next) {
        const struct seat *seat = find_seat(m, call->self);
        if (strcmp(m->name, call->name) == 0 && seat != NULL && !seat->is_taken) {
            return m;
        }
    }
    return NULL;
}

bool meetings_have_failed(const struct meetings *all, const struct meeting_call *call)
{
    return find_failed(all, call) != NULL;
}

static bool overlaps(const struct meeting *m, const struct meeting_call *call)
{
    int i = 0;
    while (i < call->n && find_seat(m, call->ranks[i]) == NULL) {
        i++;
    }
    return i < call->n;
}

/* An open agreement of this name among other members, which someone of ours believes to be in. */
static struct meeting *find_conflicting(const struct meetings *all, const struct meeting_call *call)
{
    struct meeting *m = call->kind == MEETING_AGREEMENT ? all->open : NULL;
    while (m != NULL && (m->kind != call->kind || strcmp(m->name, call->name) != 0 || !overlaps(m, call))) {
        m = m->next;
    }
    return m;
}

static void disagree_on_members(struct meetings *all, struct meeting *m, const struct meeting_call *call)
{
    char theirs[60] = "others", ours[60];
    int *rank = mem_new_array(int, (size_t)m->n);
    for (int i = 0; rank != NULL && i < m->n; i++) {
        rank[i] = m->seat[i].rank;
    }
    if (rank != NULL) {
        session_rank_list(rank, m->n, theirs, sizeof theirs);
    }
    mem_free(rank);
    session_rank_list(call->ranks, call->n, ours, sizeof ours);
    err_set_about(MESH_EMISMATCH, call->self, "%.40s: members differ: rank %d named %s, others %s", m->name, call->self,
                  ours, theirs);
    m->outcome = *err_last();
    close_meeting(all, m);
}

/* Room for whom the call names as well: all of them must hear of the disagreement. */
static int add_seats(struct meeting *m, const struct meeting_call *call)
{
    size_t old_bytes = (size_t)m->n * sizeof *m->seat, new_bytes = old_bytes + (size_t)call->n * sizeof *m->seat;
    struct seat *seat = mem_realloc(m->seat, old_bytes, new_bytes);
    if (seat == NULL) {
        return err_no_memory(new_bytes, "a barrier or agreement");
    }
    m->seat = seat;
    for (int i = 0; i < call->n; i++) {
        if (find_seat(m, call->ranks[i]) == NULL) {
            m->seat[m->n++] = (struct seat){ .rank = call->ranks[i] };
        }
    }
    return 0;
}

static int find_or_open(struct meetings *all, const struct meeting_call *call, struct meeting **ret_meeting)
{
    struct meeting *m = find_failed(all, call);
    if (m == NULL) {
        m = find_open(all, call);
    }
    if (m == NULL && (m = find_conflicting(all, call)) != NULL) {
        disagree_on_members(all, m, call);
        int r = add_seats(m, call);
        if (r < 0) {
            return r;
        }
    }
    if (m == NULL) {
        m = meeting_new(call);
        if (m == NULL) {
            return err_no_memory(sizeof *m + (size_t)call->n * sizeof *m->seat, "a barrier or agreement");
        }
        m->next = all->open;
        all->open = m;
    }
    *ret_meeting = m;
    return 0;
}

static int take_seat(struct meeting *m, const struct meeting_call *call)
{
    struct seat *seat = find_seat(m, call->self);
    if (seat->is_taken) {
        return err_set(MESH_ESTATE, "%s%s: rank %d waits at it already", kind_name(m->kind), m->name, call->self);
    }
    const char *descriptor = call->descriptor != NULL ? call->descriptor : "";
    seat->descriptor = mem_strdup(descriptor);
    if (seat->descriptor == NULL) {
        return err_no_memory(strlen(descriptor) + 1, "a descriptor to agree on");
    }
    seat->is_taken = true;
    m->n_taken++;
    m->n_inside++;
    return 0;
}

/* Over when all are there; an agreement also at the first difference, so that nobody waits for those who may never come. */
static void conclude(struct meetings *all, struct meeting *m)
{
    int r = m->kind == MEETING_AGREEMENT ? descriptors_compare(m->name, m->seat, m->n) : 0;
    if (r < 0) {
        m->outcome = *err_last();
    }
    if (r < 0 || m->n_taken == m->n) {
        close_meeting(all, m);
    }
}

int meeting_enter(struct meetings *all, const struct meeting_call *call, struct meeting **ret_meeting)
{
    struct meeting *m = NULL;
    int r = check_call(call);
    if (r == 0) {
        r = find_or_open(all, call, &m);
    }
    if (r < 0) {
        return r;
    }
    r = take_seat(m, call);
    if (r < 0) {
        if (m->n_taken == 0) {
            unlink_meeting(&all->open, m);
            meeting_free(m);
        }
        return r;
    }
    if (!m->is_over) {
        conclude(all, m);
    }
    *ret_meeting = m;
    return 0;
}

void meeting_time_out(struct meetings *all, struct meeting *m, int64_t timeout_ms)
{
    char missing[120] = "ranks";
    int *rank = mem_new_array(int, (size_t)m->n);
    int n = 0, first = -1;
    for (int i = 0; i < m->n; i++) {
        if (!m->seat[i].is_taken) {
            first = first < 0 ? m->seat[i].rank : first;
            if (rank != NULL) {
                rank[n++] = m->seat[i].rank;
            }
        }
    }
    if (rank != NULL) {
        session_rank_list(rank, n, missing, sizeof missing);
    }
    mem_free(rank);
    m->outcome = (mesh_error){ .status = MESH_ETIMEDOUT, .rank = first, .where = "" };
    snprintf(m->outcome.message, sizeof m->outcome.message,
             "%s%.40s: %s did not %s within %" PRId64 " ms (%d of %d did)", kind_name(m->kind), m->name, missing,
             m->kind == MEETING_BARRIER ? "arrive" : "call", timeout_ms, m->n_taken, m->n);
    close_meeting(all, m);
}

void meeting_give_up(struct meetings *all, struct meeting *m, const mesh_error *why)
{
    m->outcome = *why;
    close_meeting(all, m);
}

void meetings_lose(struct meetings *all, int rank, const char *sentence)
{
    struct meeting *next;
    for (struct meeting *m = all->open; m != NULL; m = next) {
        next = m->next;
        if (find_seat(m, rank) == NULL) {
            continue;
        }
        m->outcome = (mesh_error){ .status = MESH_EPEER, .rank = rank, .where = "" };
        snprintf(m->outcome.message, sizeof m->outcome.message, "%s%.40s: %.180s", kind_name(m->kind), m->name,
                 sentence);
        close_meeting(all, m);
    }
}

int meeting_leave(struct meetings *all, struct meeting *m)
{
    PRE(m->is_over && m->n_inside > 0);
    mesh_error outcome = m->outcome;
    m->n_inside--;
    if (m->is_kept && m->n_taken == m->n) {
        unlink_meeting(&all->failed, m);
        m->is_kept = false;
    }
    if (m->n_inside == 0 && !m->is_kept) {
        meeting_free(m);
    }
    return outcome.status == 0 ? 0 : err_set_about(outcome.status, outcome.rank, "%s", outcome.message);
}

static void free_list(struct meeting **list)
{
    while (*list != NULL) {
        struct meeting *m = *list;
        *list = m->next;
        meeting_free(m);
    }
}

void meetings_fini(struct meetings *all)
{
    free_list(&all->open);
    free_list(&all->failed);
}
