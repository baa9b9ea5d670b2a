/* client/autograd/public_cross_entropy.c - losses of target classes, whose mean is completed in one reduction.
 *
 *     mean = (sum of the rows' losses) / (number of rows that count)
 *
 * Both are pending sums over the mesh dims that shard the rows.  They travel as the two elements of one tensor, so the
 * mean costs one all_reduce, is exact for uneven shards, and leaves a replicated loss that is read without
 * communication.
 *
 * Where the classes are sharded, the logits stay where they are: log_softmax by shards (an all_reduce of the lines'
 * maxima, one of their sums), then each shard adds what its classes contribute (part of the sums above).  Backward
 * sends nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/group.h>
#include <mesh/ops_reduce.h>

#include <string.h>

#include "autograd/border.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/loss_rows.h"
#include "tensor/shape.h"

static int read_options(const char *name, const mesh_dtensor *logits, const mesh_cross_entropy_options *o,
                        struct op_attr *ret_attr)
{
    static const mesh_cross_entropy_options defaults = { .size = sizeof defaults };
    o = o != NULL ? o : &defaults;
    if ((int)o->reduction < MESH_REDUCTION_MEAN || o->reduction > MESH_REDUCTION_NONE) {
        return err_set(MESH_EINVAL, "%s: %d is no mesh_reduction", name, (int)o->reduction);
    }
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1)) {
        return err_set(MESH_EINVAL, "%s: label_smoothing is %g, outside [0, 1]", name, o->label_smoothing);
    }
    int ndim = logits->shape.ndim;
    if (ndim < 1) {
        return err_set(MESH_ESHAPE, "%s: the classes are a single number; [classes] or [n, classes, ...] is needed",
                       name);
    }
    *ret_attr = (struct op_attr){
        .value = { o->label_smoothing, (double)logits->shape.dim[ndim == 1 ? 0 : 1] },
        .index = { o->ignore_index != NULL ? *o->ignore_index : -100 },
        .mode = (int32_t)o->reduction,
    };
    return 0;
}

static bool is_whole(const mesh_dtensor *x)
{
    for (int d = 0; d < x->placements.n; d++) {
        if (x->placements.at[d].kind != MESH_IS_REPLICATE) {
            return false;
        }
    }
    return true;
}

static mesh_placements replicated(const mesh_device_mesh *m)
{
    mesh_placements p = { .n = m->ndim };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = mesh_replicate();
    }
    return p;
}

/* x[0] and x[1], both scalars laid out alike, as one tensor; NULL: error set. */
static mesh_dtensor *pack(mesh_dtensor *const *x)
{
    bool is_member = x[0]->local->n == 1;
    struct mesh_tensor *local = tensor_new(is_member ? MESH_SHAPE(2) : MESH_SHAPE(0), x[0]->dtype);
    if (local == NULL) {
        return NULL;
    }
    size_t item = dtype_size(x[0]->dtype);
    for (size_t i = 0; is_member && i < 2; i++) {
        memcpy((char *)local->data + i * item, x[i]->local->data, item);
    }
    return dtensor_new(x[0]->mesh, MESH_SHAPE(2), x[0]->dtype, &x[0]->placements, local);
}

static mesh_dtensor *unpack(mesh_dtensor *pair, size_t i)
{
    bool is_member = pair->local->n == 2;
    struct mesh_tensor *local = tensor_new(is_member ? MESH_SCALAR_SHAPE : MESH_SHAPE(0), pair->dtype);
    if (local == NULL) {
        return NULL;
    }
    size_t item = dtype_size(pair->dtype);
    if (is_member) {
        memcpy(local->data, (const char *)pair->local->data + i * item, item);
    }
    return dtensor_new(pair->mesh, MESH_SCALAR_SHAPE, pair->dtype, &pair->placements, local);
}

/* Replaces the two pending scalars by whole ones, in one reduction; the first keeps its place in the graph. */
static int complete(mesh_dtensor **inout_sum, mesh_dtensor **inout_count)
{
    mesh_dtensor *x[2] = { *inout_sum, *inout_count };
    mesh_placements whole = replicated(x[0]->mesh);
    mesh_dtensor *pair = pack(x);
    pair = pair == NULL ? NULL : dtensor_redistribute(pair, &whole);
    mesh_dtensor *sum = pair == NULL ? NULL : unpack(pair, 0);
    mesh_dtensor *count = sum == NULL ? NULL : unpack(pair, 1);
    if (count == NULL) {
        return err_status();
    }
    if (tape_wants(x, 1)) {
        struct tape_entry e = { .name = "cross_entropy", .gradient = &g_redistribute, .n_in = 1, .in = x };
        int r = tape_record(&e, sum);
        if (r < 0) {
            return r;
        }
    }
    *inout_sum = sum;
    *inout_count = count;
    return 0;
}

static int mean(mesh_dtensor *sum, mesh_dtensor *count, mesh_dtensor **ret_mean)
{
    bool alike = sum->dtype == count->dtype && mesh_placements_equal(sum->placements, count->placements);
    int r = alike && !is_whole(sum) ? complete(&sum, &count) : 0;
    return r < 0 ? r : ag_apply(OP_div, (mesh_dtensor *[OP_MAX_INPUTS]){ sum, count }, NULL, ret_mean);
}

/* Rows, or their sum (out[0]) and number (out[1]), whichever the reduction needs; recorded. */
static int apply_rows(enum op_id rows, enum op_id sum, mesh_dtensor *const *in, const struct op_attr *attr,
                      mesh_dtensor **ret_out)
{
    return ag_apply(attr->mode == MESH_REDUCTION_NONE ? rows : sum, in, attr, ret_out);
}

/* The checks of the operator itself, before anything is sent; weight (NULL: none) will be in one dtype with in[0]. */
static int check(const char *name, mesh_dtensor *const *in, const mesh_dtensor *weight, const struct op_attr *attr)
{
    struct op_shapes s;
    op_facts(&op_table[OP_cross_entropy_rows], in, attr, &s);
    s.name = name;
    s.in_dtype[0] = weight == NULL ? s.in_dtype[0] : dtype_promoted(s.in_dtype[0], weight->dtype);
    int r = op_table[OP_cross_entropy_rows].shape(&s);
    bool is_known_to_all = is_whole(in[1]) && in[1]->mesh->n_ranks == mesh_world_size();
    struct loss_rows rows = { .all_classes = (int64_t)attr->value[1], .ignored = attr->index[0] };
    return r < 0 || !is_known_to_all ? r : loss_check_targets(s.name, &rows, in[1]->local, NULL, true);
}

static int apply_by_shards(mesh_dtensor **in, int class_dim, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    int r = check("cross_entropy", in, NULL, attr);
    if (r < 0) {
        return r;
    }
    in[0] = settled(in[0]);
    in[2] = in[0] == NULL ? NULL : sharded_softmax(in[0], class_dim, true);
    if (in[2] == NULL) {
        return err_status();
    }
    bool by_row = attr->mode == MESH_REDUCTION_NONE;
    mesh_dtensor *loss_in[OP_MAX_INPUTS] = { in[2], in[1] };
    r = apply_plain(by_row ? OP_nll_loss_rows : OP_nll_loss_sum, loss_in, attr, ret_out);
    struct tape_entry e = {
        .name = "cross_entropy", .gradient = &g_sharded_cross_entropy, .attr = attr, .n_in = 3, .in = in
    };
    return r < 0 || recorded(&e, ret_out[0]) != NULL ? r : err_status();
}

/* weight as [1, classes, 1...], to broadcast over rows; x and it in one dtype. */
static int bring_weight(const char *name, mesh_dtensor **inout_x, mesh_dtensor *weight, mesh_dtensor **ret_weight)
{
    mesh_dtensor *x = *inout_x;
    int class_dim = x->shape.ndim == 1 ? 0 : 1;
    char text[SHAPE_TEXT_BYTES];
    if (weight->shape.ndim != 1 || weight->shape.dim[0] != x->shape.dim[class_dim]) {
        return err_set(MESH_ESHAPE, "%s: a weight of %s for %lld classes: one number for each is needed", name,
                       shape_text(weight->shape, text, sizeof text), (long long)x->shape.dim[class_dim]);
    }
    mesh_dtype both = dtype_promoted(x->dtype, weight->dtype);
    mesh_dtensor *plain = dtensor_alias(weight); /* it has no gradient */
    plain = plain == NULL ? NULL : cast_to(plain, both);
    *ret_weight = grad_reshape(plain, kept_shape(x->shape, ~(UINT32_C(1) << class_dim)));
    *inout_x = *ret_weight == NULL ? NULL : cast_to(x, both);
    return *inout_x != NULL ? 0 : err_status();
}

/* The loss of weighted log-probabilities; the mean divides by the weights of the targets, which is the loss of
 * -weight. */
static int weighted(mesh_dtensor *log_probabilities, mesh_dtensor *target, mesh_dtensor *weight,
                    const struct op_attr *attr, mesh_dtensor **ret_loss)
{
    struct op_attr plain = *attr, whole = { .shape = log_probabilities->shape };
    mesh_dtensor *in[OP_MAX_INPUTS] = { log_probabilities, weight }, *out[OP_MAX_OUTPUTS], *total[OP_MAX_OUTPUTS];
    int r = ag_apply(OP_mul, in, NULL, out);
    in[0] = r < 0 ? NULL : out[0];
    in[1] = target;
    r = r < 0 ? r : apply_rows(OP_nll_loss_rows, OP_nll_loss_sum, in, attr, out);
    *ret_loss = r < 0 ? NULL : out[0];
    if (r < 0 || attr->mode != MESH_REDUCTION_MEAN) {
        return r;
    }
    plain.value[0] = 0;
    in[0] = grad_op1(OP_expand, grad_op1(OP_neg, weight, NULL), &whole);
    r = in[0] == NULL ? err_status() : apply_plain(OP_nll_loss_sum, in, &plain, total);
    return r < 0 ? r : mean(out[0], total[0], ret_loss);
}

static int weighted_cross_entropy(mesh_dtensor **in, mesh_dtensor *weight, int class_dim, const struct op_attr *attr,
                                  mesh_dtensor **ret_loss)
{
    int r = check("cross_entropy", in, weight, attr);
    r = r < 0 ? r : bring_weight("cross_entropy", &in[0], weight, &weight);
    mesh_dtensor *log_probabilities = r < 0 ? NULL : softmax_of(OP_log_softmax, in[0], class_dim);
    if (log_probabilities == NULL) {
        return err_status();
    }
    return weighted(log_probabilities, in[1], weight, attr, ret_loss);
}

static int cross_entropy(mesh_dtensor *logits, mesh_dtensor *target, const mesh_cross_entropy_options *o,
                         mesh_dtensor **ret_loss)
{
    struct op_attr attr;
    mesh_dtensor *in[OP_MAX_INPUTS] = { logits, target }, *out[OP_MAX_OUTPUTS] = { NULL };
    int r = read_options("cross_entropy", logits, o, &attr), class_dim = logits->shape.ndim == 1 ? 0 : 1;
    if (r < 0) {
        return r;
    }
    if (o != NULL && o->weight != NULL) {
        return weighted_cross_entropy(in, o->weight, class_dim, &attr, ret_loss);
    }
    if (is_sharded_along(logits, UINT32_C(1) << class_dim)) {
        r = apply_by_shards(in, class_dim, &attr, out);
    } else {
        r = apply_rows(OP_cross_entropy_rows, OP_cross_entropy_sum, in, &attr, out);
    }
    if (r == 0 && attr.mode == MESH_REDUCTION_MEAN) {
        r = mean(out[0], out[1], &out[0]);
    }
    *ret_loss = out[0];
    return r;
}

MESH_API mesh_dtensor *mesh_cross_entropy_opt(mesh_dtensor *logits, mesh_dtensor *target,
                                              const mesh_cross_entropy_options *o)
{
    mesh_dtensor *in[2] = { logits, target }, *loss = NULL;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    int r = cross_entropy(logits, target, o, &loss);
    return public_result(mark, r < 0 ? scope_fail(r) : loss);
}

static int nll_loss(mesh_dtensor *log_probabilities, mesh_dtensor *target, const mesh_nll_loss_options *o,
                    mesh_dtensor **ret_loss)
{
    struct op_attr attr;
    mesh_cross_entropy_options as = { .size = sizeof as };
    mesh_dtensor *in[OP_MAX_INPUTS] = { log_probabilities, target }, *out[OP_MAX_OUTPUTS] = { NULL };
    if (o != NULL) {
        as.reduction = o->reduction;
        as.ignore_index = o->ignore_index;
    }
    int r = read_options("nll_loss", log_probabilities, &as, &attr);
    if (r == 0 && o != NULL && o->weight != NULL) {
        mesh_dtensor *weight = NULL;
        r = check("nll_loss", in, o->weight, &attr);
        r = r < 0 ? r : bring_weight("nll_loss", &log_probabilities, o->weight, &weight);
        return r < 0 ? r : weighted(log_probabilities, target, weight, &attr, ret_loss);
    }
    r = r < 0 ? r : apply_rows(OP_nll_loss_rows, OP_nll_loss_sum, in, &attr, out);
    if (r == 0 && attr.mode == MESH_REDUCTION_MEAN) {
        r = mean(out[0], out[1], &out[0]);
    }
    *ret_loss = out[0];
    return r;
}

MESH_API mesh_dtensor *mesh_nll_loss_opt(mesh_dtensor *log_probabilities, mesh_dtensor *target,
                                         const mesh_nll_loss_options *o)
{
    mesh_dtensor *in[2] = { log_probabilities, target }, *loss = NULL;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    int r = nll_loss(log_probabilities, target, o, &loss);
    return public_result(mark, r < 0 ? scope_fail(r) : loss);
}
