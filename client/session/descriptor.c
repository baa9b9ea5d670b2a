/* client/session/descriptor.c - compares what ranks say about a thing they must agree on, field by field.
 *
 * Fields are separated by spaces, "name=value", in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/descriptor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "session/session.h"

struct field {
    const char *name;
    size_t name_len; /* 0: there is no such field */
    const char *value;
    size_t value_len;
};

/* The field at *at, which moves behind it. */
static struct field next_field(const char **at)
{
    struct field f = { .name = *at + strspn(*at, " ") };
    size_t len = strcspn(f.name, " ");
    const char *equals = memchr(f.name, '=', len);
    f.name_len = equals != NULL ? (size_t)(equals - f.name) : len;
    f.value = f.name + MIN(f.name_len + 1, len);
    f.value_len = len - (size_t)(f.value - f.name);
    *at = f.name + len;
    return f;
}

static struct field find_field(const char *descriptor, struct field like)
{
    for (struct field f = next_field(&descriptor); f.name_len > 0; f = next_field(&descriptor)) {
        if (f.name_len == like.name_len && memcmp(f.name, like.name, f.name_len) == 0) {
            return f;
        }
    }
    return (struct field){ .name_len = 0 };
}

static bool fields_equal(struct field a, struct field b)
{
    return a.name_len == b.name_len && a.value_len == b.value_len &&
           (a.value_len == 0 || memcmp(a.value, b.value, a.value_len) == 0);
}

/* A field of a that b lacks or says otherwise; name_len 0: there is none. */
static struct field find_difference(const char *a, const char *b)
{
    struct field f = next_field(&a);
    while (f.name_len > 0 && fields_equal(f, find_field(b, f))) {
        f = next_field(&a);
    }
    return f;
}

static void print_value(struct field f, char *buf, size_t cap)
{
    if (f.value_len == 0) {
        snprintf(buf, cap, "%s", f.name_len == 0 ? "(none)" : "(empty)");
    } else if (f.value_len < cap) {
        snprintf(buf, cap, "%.*s", (int)f.value_len, f.value);
    } else {
        snprintf(buf, cap, "%.*s...", (int)(cap - sizeof "..."), f.value);
    }
}

/* The ranks that say of this field what descriptor says: "rank 3 has", "ranks 0-2 have". */
static void print_ranks(const struct seat *seat, int n, struct field about, const char *descriptor, char *buf,
                        size_t cap)
{
    int *rank = mem_new_array(int, (size_t)n);
    int n_ranks = 0;
    char list[48] = "some ranks";
    for (int i = 0; rank != NULL && i < n; i++) {
        if (seat[i].is_taken && fields_equal(find_field(seat[i].descriptor, about), find_field(descriptor, about))) {
            rank[n_ranks++] = seat[i].rank;
        }
    }
    if (rank != NULL) {
        session_rank_list(rank, n_ranks, list, sizeof list);
    }
    mem_free(rank);
    snprintf(buf, cap, "%s %s", list, n_ranks == 1 ? "has" : "have");
}

static int disagree(const char *name, const struct seat *seat, int n, struct field about, const int pair[2])
{
    const char *a = seat[pair[0]].descriptor, *b = seat[pair[1]].descriptor;
    char a_value[50], b_value[50], a_ranks[56], b_ranks[56];
    print_value(find_field(a, about), a_value, sizeof a_value);
    print_value(find_field(b, about), b_value, sizeof b_value);
    print_ranks(seat, n, about, a, a_ranks, sizeof a_ranks);
    print_ranks(seat, n, about, b, b_ranks, sizeof b_ranks);
    return err_set_about(MESH_EMISMATCH, seat[pair[1]].rank, "%.40s: %.*s differs: %s %s, %s %s", name,
                         (int)MIN(about.name_len, 30), about.name, b_ranks, b_value, a_ranks, a_value);
}

int descriptors_compare(const char *name, const struct seat *seat, int n)
{
    int first = 0;
    while (first < n && !seat[first].is_taken) {
        first++;
    }
    for (int i = first + 1; i < n; i++) {
        if (!seat[i].is_taken) {
            continue;
        }
        struct field about = find_difference(seat[first].descriptor, seat[i].descriptor);
        if (about.name_len == 0) {
            about = find_difference(seat[i].descriptor, seat[first].descriptor);
        }
        if (about.name_len > 0) {
            return disagree(name, seat, n, about, (const int[]){ first, i });
        }
    }
    return 0;
}
