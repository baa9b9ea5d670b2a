/* tests/truth/conformance_check.c - compares what all ranks saw with the answer of the case, and with each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool differs(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool differs(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, TEXT_BYTES, format, args);
    va_end(args);
    return false;
}

static bool shapes_equal(mesh_shape a, mesh_shape b)
{
    bool are_equal = a.ndim == b.ndim;
    for (int d = 0; are_equal && d < a.ndim; d++) {
        are_equal = a.dim[d] == b.dim[d];
    }
    return are_equal;
}

/* "[2,3]"; of a shape or an index. */
static const char *text_of(mesh_shape s, char *text, size_t cap)
{
    size_t at = (size_t)snprintf(text, cap, "[");
    for (int d = 0; d < s.ndim; d++) {
        at += (size_t)snprintf(text + at, cap - at, d == 0 ? "%lld" : ",%lld", (long long)s.dim[d]);
    }
    snprintf(text + at, cap - at, "]");
    return text;
}
#define SHAPE_BYTES 200

static mesh_shape index_of(mesh_shape s, int64_t i)
{
    mesh_shape index = { .ndim = s.ndim };
    for (int d = s.ndim - 1; d >= 0; d--) {
        index.dim[d] = i % s.dim[d];
        i /= s.dim[d];
    }
    return index;
}

/* Indices may have a narrower integer type than the oracle's. */
static bool dtype_fits(mesh_dtype got, mesh_dtype want)
{
    bool got_is_int = got == MESH_I8 || got == MESH_U8 || got == MESH_I32;
    return got == want || (want == MESH_I64 && got_is_int);
}

static bool is_near(const struct test_case *c, double got, double want)
{
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= c->atol + c->rtol * fabs(want);
}

static bool element_is_right(const struct test_case *c, const struct captured *got, const struct value *want, int64_t i)
{
    if (is_float(want->dtype)) {
        return is_near(c, number_at(got->dtype, got->data, i), number_at(want->dtype, want->data, i));
    }
    return whole_at(got->dtype, got->data, i) == whole_at(want->dtype, want->data, i);
}

static bool check_value(const struct test_case *c, const struct captured *got, const struct value *want, int rank,
                        char *why)
{
    char text[SHAPE_BYTES], text_want[SHAPE_BYTES];
    if (!shapes_equal(got->shape, want->shape)) {
        return differs(why, "%s on rank %d has shape %s, want %s", got->what, rank,
                       text_of(got->shape, text, sizeof text), text_of(want->shape, text_want, sizeof text_want));
    }
    if (!dtype_fits(got->dtype, want->dtype)) {
        return differs(why, "%s on rank %d has dtype %d, want %d (enum mesh_dtype)", got->what, rank, (int)got->dtype,
                       (int)want->dtype);
    }
    for (int64_t i = 0; i < want->n; i++) {
        if (!element_is_right(c, got, want, i)) {
            return differs(why, "%s on rank %d at %s: got %.9g, want %.9g (rtol %g, atol %g)", got->what, rank,
                           text_of(index_of(want->shape, i), text, sizeof text), number_at(got->dtype, got->data, i),
                           number_at(want->dtype, want->data, i), c->rtol, c->atol);
        }
    }
    return true;
}

static bool check_identical(const struct captured *first, const struct captured *other, int rank, char *why)
{
    size_t bytes = (size_t)numel(first->shape) * item_bytes(first->dtype), at = 0;
    if (first->dtype != other->dtype) {
        return differs(why, "%s has dtype %d on rank 0 and %d on rank %d", first->what, (int)first->dtype,
                       (int)other->dtype, rank);
    }
    if (memcmp(first->data, other->data, bytes) == 0) {
        return true;
    }
    while (((const char *)first->data)[at] == ((const char *)other->data)[at]) {
        at++;
    }
    int64_t i = (int64_t)(at / item_bytes(first->dtype));
    return differs(why, "%s at element %lld: rank 0 has %.17g, rank %d has %.17g: not the same bits", first->what,
                   (long long)i, number_at(first->dtype, first->data, i), rank,
                   number_at(other->dtype, other->data, i));
}

/* The ranks that failed, if any: the first one's sentence. */
static bool check_statuses(const struct test_case *c, const struct outcome *outcomes, char *why)
{
    for (int rank = 0; rank < c->n_ranks; rank++) {
        if (outcomes[rank].status < 0) {
            return differs(why, "rank %d: %s", rank, outcomes[rank].message);
        }
    }
    for (int rank = 0; rank < c->n_ranks; rank++) {
        if (!outcomes[rank].was_run) {
            return differs(why, "rank %d did not come to its end", rank);
        }
    }
    return true;
}

/* What every rank must have captured, in order. */
static int wanted_values(const struct test_case *c, const struct value *ret_wanted[CASE_MAX_CAPTURED])
{
    int n = 0;
    for (int i = 0; i < c->n_out; i++) {
        ret_wanted[n++] = &c->out[i];
    }
    for (int i = 0; i < c->n_in; i++) {
        if (c->has_gradient[i]) {
            ret_wanted[n++] = &c->gradient[i];
        }
    }
    return n;
}

static bool check_full_values(const struct test_case *c, const struct outcome *outcomes, char *why)
{
    const struct value *wanted[CASE_MAX_CAPTURED];
    int n = wanted_values(c, wanted);
    for (int rank = 0; rank < c->n_ranks; rank++) {
        if (outcomes[rank].n_captured != n) {
            return differs(why, "rank %d has %d of %d outputs and gradients; an input got no gradient", rank,
                           outcomes[rank].n_captured, n);
        }
        for (int k = 0; k < n; k++) {
            if (!check_value(c, &outcomes[rank].captured[k], wanted[k], rank, why) ||
                !check_identical(&outcomes[0].captured[k], &outcomes[rank].captured[k], rank, why)) {
                return false;
            }
        }
    }
    return true;
}

static bool check_locals(const struct test_case *c, const struct outcome *outcomes, char *why)
{
    mesh_placements p = c->row->is_distribute ? c->in[0].placements : c->attr.to;
    char text[SHAPE_BYTES], text_want[SHAPE_BYTES];
    for (int rank = 0; rank < c->n_ranks; rank++) {
        mesh_shape offset, extent;
        part_box(c->in[0].shape, c->mesh, p, rank, &offset, &extent);
        if (!shapes_equal(offset, c->locals[rank].offset)) {
            return differs(why, "the rule puts the part of rank %d at %s, the file says %s", rank,
                           text_of(offset, text, sizeof text),
                           text_of(c->locals[rank].offset, text_want, sizeof text_want));
        }
        if (outcomes[rank].n_captured != 1) {
            return differs(why, "rank %d has no local part", rank);
        }
        if (!check_value(c, &outcomes[rank].captured[0], &c->locals[rank].value, rank, why)) {
            return false;
        }
    }
    return true;
}

bool case_check(const struct test_case *c, const struct outcome *outcomes, char ret_why[TEXT_BYTES])
{
    if (c->unsupported[0] != '\0') {
        return differs(ret_why, "%s", c->unsupported);
    }
    if (!check_statuses(c, outcomes, ret_why)) {
        return false;
    }
    return c->locals != NULL ? check_locals(c, outcomes, ret_why) : check_full_values(c, outcomes, ret_why);
}
