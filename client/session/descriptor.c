/* client/session/descriptor.c - compares what ranks say about a thing they must agree on, field by field.
 *
 * Fields are separated by spaces and compared in order: the kth of one against the kth of the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/descriptor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "session/session.h"

struct field {
    const char *text; /* "shape=2x4", not terminated */
    size_t len;       /* 0: there is no such field */
};

static struct field field_at(const char *descriptor, int index)
{
    const char *at = descriptor + strspn(descriptor, " ");
    for (int i = 0; i < index && *at != 0; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return (struct field){ .text = at, .len = strcspn(at, " ") };
}

static bool fields_equal(struct field a, struct field b)
{
    return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

static size_t name_length(struct field f)
{
    const char *equals = memchr(f.text, '=', f.len);
    return equals != NULL ? (size_t)(equals - f.text) : f.len;
}

/* "2x4" of "shape=2x4" when both fields are about the same thing, else the whole; "nothing" when there is none. */
static void print_value(struct field f, size_t name_len, char *buf, size_t cap)
{
    size_t skip = f.len > name_len ? name_len + 1 : 0;
    if (f.len == 0) {
        snprintf(buf, cap, "nothing");
    } else if (f.len == skip) {
        snprintf(buf, cap, "an empty value");
    } else {
        snprintf(buf, cap, "%.*s", (int)MIN(f.len - skip, 60), f.text + skip);
    }
}

/* The ranks whose field is this one. */
static void print_ranks(const struct seat *seat, int n, int index, struct field value, char *buf, size_t cap)
{
    int *rank = mem_new_array(int, (size_t)n);
    int n_ranks = 0;
    for (int i = 0; rank != NULL && i < n; i++) {
        if (seat[i].is_taken && fields_equal(field_at(seat[i].descriptor, index), value)) {
            rank[n_ranks++] = seat[i].rank;
        }
    }
    if (rank != NULL) {
        session_rank_list(rank, n_ranks, buf, cap);
    } else {
        snprintf(buf, cap, "some ranks");
    }
    mem_free(rank);
}

static int disagree(const char *name, const struct seat *seat, int n, int index, const int pair[2])
{
    struct field a = field_at(seat[pair[0]].descriptor, index), b = field_at(seat[pair[1]].descriptor, index);
    struct field named = a.len > 0 ? a : b;
    size_t name_len = name_length(named);
    bool same_name = a.len == 0 || b.len == 0 || (name_length(b) == name_len && memcmp(a.text, b.text, name_len) == 0);
    char a_value[64], b_value[64], a_ranks[48], b_ranks[48];
    print_value(a, same_name ? name_len : a.len, a_value, sizeof a_value);
    print_value(b, same_name ? name_len : b.len, b_value, sizeof b_value);
    print_ranks(seat, n, index, a, a_ranks, sizeof a_ranks);
    print_ranks(seat, n, index, b, b_ranks, sizeof b_ranks);
    return err_set_about(MESH_EMISMATCH, seat[pair[1]].rank, "%.40s: ranks disagree on %.*s: %s on %s, %s on %s", name,
                         (int)MIN(name_len, 30), named.text, a_value, a_ranks, b_value, b_ranks);
}

/* The first field of the two in which they differ; -1: none. */
static int first_difference(const char *a, const char *b)
{
    for (int index = 0;; index++) {
        struct field f = field_at(a, index);
        if (!fields_equal(f, field_at(b, index))) {
            return index;
        }
        if (f.len == 0) {
            return -1;
        }
    }
}

int descriptors_compare(const char *name, const struct seat *seat, int n)
{
    int first = -1;
    for (int i = 0; i < n; i++) {
        if (!seat[i].is_taken) {
            continue;
        }
        first = first < 0 ? i : first;
        int index = first_difference(seat[first].descriptor, seat[i].descriptor);
        if (index >= 0) {
            return disagree(name, seat, n, index, (const int[]){ first, i });
        }
    }
    return 0;
}
