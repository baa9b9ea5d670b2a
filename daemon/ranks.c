/* daemon/ranks.c - the order of ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ranks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"

static size_t digits(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n])) {
        n++;
    }
    return n;
}

/* Two runs of digits: without leading zeros the longer one is the larger number. */
static int compare_numbers(const char *a, size_t n_a, const char *b, size_t n_b)
{
    for (; n_a > 1 && *a == '0'; a++) {
        n_a--;
    }
    for (; n_b > 1 && *b == '0'; b++) {
        n_b--;
    }
    if (n_a != n_b) {
        return n_a < n_b ? -1 : 1;
    }
    return memcmp(a, b, n_a);
}

int natural_compare(const char *a, const char *b)
{
    const char *p = a;
    const char *q = b;
    while (*p != 0 && *q != 0) {
        size_t n_p = digits(p);
        size_t n_q = digits(q);
        int order = n_p > 0 && n_q > 0 ? compare_numbers(p, n_p, q, n_q) : (unsigned char)*p - (unsigned char)*q;
        if (order != 0) {
            return order;
        }
        p += n_p > 0 ? n_p : 1;
        q += n_q > 0 ? n_q : 1;
    }
    if (*p != *q) {
        return *p == 0 ? -1 : 1;
    }
    return strcmp(a, b); /* "node01" and "node1" */
}

struct place {
    const struct member *member;
    size_t arrival;
};

static int by_host_and_slot(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    int order = natural_compare(x->member->host, y->member->host);
    if (order != 0) {
        return order;
    }
    if (x->member->slot != y->member->slot) {
        return x->member->slot < y->member->slot ? -1 : 1;
    }
    return x->arrival < y->arrival ? -1 : 1;
}

static int by_host_and_rank(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a;
    const struct member *y = *(struct member *const *)b;
    int order = strcmp(x->host, y->host);
    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Fills in the places among the ranks of the same host; table is in order of rank. */
static void number_locals(struct member *table, struct member **order, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        order[i] = &table[i];
    }
    qsort(order, n, sizeof *order, by_host_and_rank);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && strcmp(order[end]->host, order[begin]->host) == 0; end++) {
        }
        for (size_t i = begin; i < end; i++) {
            order[i]->local_rank = (uint32_t)(i - begin);
            order[i]->local_size = (uint32_t)(end - begin);
        }
    }
}

static void fill_table(struct member *table, const struct member *member, const struct place *place, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (member[i].wanted >= 0) {
            CHECK((size_t)member[i].wanted < n && table[member[i].wanted].client == 0);
            table[member[i].wanted] = member[i];
        }
    }
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (place[i].member->wanted >= 0) {
            continue;
        }
        while (table[next].client != 0) {
            next++;
        }
        table[next] = *place[i].member;
    }
    for (size_t i = 0; i < n; i++) {
        table[i].rank = (uint32_t)i;
    }
}

int ranks_assign(struct member *member, size_t n)
{
    int r = 0;
    struct place *place = mem_new_array(struct place, n);
    struct member *table = mem_new_array(struct member, n);
    struct member **order = mem_new_array(struct member *, n);
    if (place == NULL || table == NULL || order == NULL) {
        r = err_no_memory(n * sizeof *table, "the rank table");
        goto free_all;
    }
    memset(table, 0, n * sizeof *table);
    for (size_t i = 0; i < n; i++) {
        place[i] = (struct place){ .member = &member[i], .arrival = i };
    }
    qsort(place, n, sizeof *place, by_host_and_slot);
    fill_table(table, member, place, n);
    number_locals(table, order, n);
    memcpy(member, table, n * sizeof *member);
free_all:
    mem_free(order);
    mem_free(table);
    mem_free(place);
    return r;
}

void member_fini(struct member *m)
{
    for (size_t i = 0; i < m->n_addresses; i++) {
        mem_free(m->address[i]);
    }
    m->n_addresses = 0;
}

const char *member_name(const struct member *m, char *buf, size_t cap)
{
    snprintf(buf, cap, "rank %u (%s, pid %u)", m->rank, m->host, m->pid);
    return buf;
}
