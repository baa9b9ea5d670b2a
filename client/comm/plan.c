/* client/comm/plan.c - building plans, whichever algorithm.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/util.h"

struct algorithm {
    const char *name;
    mesh_comm_kind kind;
    int (*make)(struct plan *p, const struct plan_request *q);
    uint64_t (*sent)(const struct plan_request *q);
};

static const struct algorithm algorithms[N_PLAN_ALGORITHMS] = {
    [PLAN_NONE] = { .name = "none" },
#define PLAN(id, kind, name, make, sent) [PLAN_##id] = { name, kind, make, sent },
#include "comm/plans/plans.def"
#undef PLAN
};

const char *plan_name(enum plan_algorithm a)
{
    return (unsigned)a < N_PLAN_ALGORITHMS ? algorithms[a].name : "?";
}

mesh_comm_kind plan_kind(enum plan_algorithm a)
{
    return algorithms[a].kind;
}

uint64_t plan_elements_sent(const struct plan_request *q)
{
    return algorithms[q->algorithm].sent(q);
}

struct plan *plan_new(const struct plan_request *q)
{
    PRE(q->algorithm > PLAN_NONE && q->algorithm < N_PLAN_ALGORITHMS && algorithms[q->algorithm].kind == q->kind);
    struct plan *p = mem_new(struct plan);
    if (p == NULL) {
        (void)err_no_memory(sizeof *p, "the plan of a collective");
        return NULL;
    }
    p->algorithm = q->algorithm;
    p->rank = q->rank;
    p->size = q->size;
    int r = algorithms[q->algorithm].make(p, q);
    if (r == 0 && p->is_failed) {
        r = err_no_memory(p->transfers.n * sizeof *p->transfers.at, "the plan of a collective");
    }
    return r == 0 ? p : plan_free(p);
}

struct plan *plan_free(struct plan *p)
{
    if (p != NULL) {
        VEC_FINI(&p->rounds);
        VEC_FINI(&p->transfers);
        VEC_FINI(&p->locals);
        (void)mem_free(p);
    }
    return NULL;
}

void plan_round(struct plan *p)
{
    struct plan_round *round = p->is_failed ? NULL : VEC_PUSH(&p->rounds);
    if (round == NULL) {
        p->is_failed = true;
        return;
    }
    *round = (struct plan_round){ .first_local = p->locals.n, .first_transfer = p->transfers.n };
}

void plan_local(struct plan *p, enum plan_local_kind kind, struct plan_slice to, struct plan_slice from)
{
    if (to.count == 0) {
        return;
    }
    struct plan_local *l = p->is_failed ? NULL : VEC_PUSH(&p->locals);
    if (l == NULL) {
        p->is_failed = true;
        return;
    }
    *l = (struct plan_local){ .kind = kind, .to = to, .from = from };
    p->rounds.at[p->rounds.n - 1].n_locals++;
}

void plan_transfer(struct plan *p, struct plan_transfer t)
{
    struct plan_transfer *slot = p->is_failed ? NULL : VEC_PUSH(&p->transfers);
    if (slot == NULL) {
        p->is_failed = true;
        return;
    }
    *slot = t;
    struct plan_round *round = &p->rounds.at[p->rounds.n - 1];
    round->n_transfers++;
    p->max_transfers = MAX(p->max_transfers, round->n_transfers);
}

void plan_exchange(struct plan *p, int to, struct plan_slice send, struct plan_transfer receive)
{
    if (to == receive.peer) {
        receive.send = send;
    } else {
        plan_transfer(p, (struct plan_transfer){ .peer = to, .send = send });
    }
    plan_transfer(p, receive);
}

struct plan_slice plan_slice(enum plan_buffer b, size_t offset, size_t count)
{
    return (struct plan_slice){ .buffer = b, .offset = offset, .count = count };
}

static int parts_alloc(struct plan_parts *ret, int size)
{
    ret->size = size;
    ret->offset = mem_new_array(size_t, (size_t)size + 1);
    return ret->offset != NULL ? 0 : err_no_memory(((size_t)size + 1) * sizeof(size_t), "the parts of a collective");
}

int plan_parts_given(struct plan_parts *ret, int size, size_t count, const size_t *counts)
{
    int r = parts_alloc(ret, size);
    if (r < 0) {
        return r;
    }
    ret->offset[0] = 0;
    for (int i = 0; i < size; i++) {
        ret->offset[i + 1] = ret->offset[i] + (counts != NULL ? counts[i] : count);
    }
    return 0;
}

/* Parts begin at multiples of 16 elements, so that they are as well aligned as the vector. */
int plan_parts_split(struct plan_parts *ret, int size, size_t count)
{
    int r = parts_alloc(ret, size);
    if (r < 0) {
        return r;
    }
    size_t each = count / (size_t)size + (count % (size_t)size != 0);
    each = count >= (size_t)size * 64 ? (each + 15) / 16 * 16 : each;
    for (int i = 0; i <= size; i++) {
        ret->offset[i] = MIN(count, each * (size_t)i);
    }
    ret->offset[size] = count;
    return 0;
}

void plan_parts_fini(struct plan_parts *p)
{
    p->offset = mem_free(p->offset);
}

size_t plan_parts_total(const struct plan_parts *p)
{
    return p->offset[p->size];
}

struct plan_slice plan_part(enum plan_buffer b, const struct plan_parts *p, int i)
{
    return plan_slice(b, p->offset[i], p->offset[i + 1] - p->offset[i]);
}

void plan_partners(int rank, int size, int i, int *ret_to, int *ret_from)
{
    bool is_power_of_two = (size & (size - 1)) == 0;
    *ret_to = is_power_of_two ? rank ^ i : (rank + i) % size;
    *ret_from = is_power_of_two ? rank ^ i : (rank - i + size) % size;
}
