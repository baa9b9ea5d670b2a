/* tests/world/draws.h - arguments of public functions, of every type, drawn alike on all ranks.
 *
 * Most make sense; as many in a hundred as `hostility` says are what no function can use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORLD_DRAWS_H
#define WORLD_DRAWS_H

#include <stdio.h>

#include <mesh/mesh.h>

#define N_RANKS 4
#define N_OWNED 64

struct draw {
    uint64_t stream;
    int hostility; /* percent */
    void *owned[N_OWNED];
    int n_owned;
    mesh_device_mesh *mesh, *other;
    mesh_work *work;
};

/* What is drawn where an argument has no better idea; filled in by the main thread. */
extern char far_text[3000];
extern FILE *nowhere;

uint64_t mixed(uint64_t x);
bool chance_of(struct draw *d, int percent);
bool hostile(struct draw *d);
void *mine(struct draw *d, size_t bytes);
int draw_int(struct draw *d);
int draw_few(struct draw *d);
int draw_wrong_peer(struct draw *d);
int64_t draw_int64(struct draw *d);
int64_t draw_few64(struct draw *d);
int64_t draw_timeout(struct draw *d);
uint64_t draw_uint64(struct draw *d);
size_t draw_count(struct draw *d);
size_t draw_cap(struct draw *d);
double draw_double(struct draw *d);
bool draw_bool(struct draw *d);
mesh_dtype draw_dtype(struct draw *d);
mesh_reduce_op draw_reduce_op(struct draw *d);
mesh_reduction draw_reduction(struct draw *d);
mesh_comm_kind draw_kind(struct draw *d);
mesh_status draw_status(struct draw *d);
mesh_shape draw_shape(struct draw *d);
mesh_placement draw_placement(struct draw *d);
mesh_placements draw_placements(struct draw *d);
mesh_device_mesh *draw_mesh(struct draw *d);
const char *draw_text(struct draw *d);
const char *const *draw_names(struct draw *d);
void *draw_room(struct draw *d);
char *draw_text_room(struct draw *d);
mesh_shape *draw_shape_room(struct draw *d);
size_t *draw_size_room(struct draw *d);
int64_t *draw_int64_room(struct draw *d);
const char **draw_name_room(struct draw *d);
double *draw_double_room(struct draw *d);
mesh_dtensor **draw_results(struct draw *d);
mesh_group **draw_groups(struct draw *d);
void *const *draw_rooms(struct draw *d);
const size_t *draw_counts(struct draw *d);
const int *draw_ranks(struct draw *d);
FILE *draw_file(struct draw *d);
mesh_dtensor *draw_dtensor(struct draw *d);
mesh_dtensor *const *draw_dtensors(struct draw *d);
mesh_tensor *draw_tensor(struct draw *d);
mesh_group *draw_group(struct draw *d);
mesh_work *draw_work(struct draw *d);
mesh_message *draw_message(struct draw *d);
mesh_transfer *draw_transfers(struct draw *d);
mesh_comm_log *draw_log(struct draw *d);
mesh_scope *draw_scope(struct draw *d);
mesh_named_placement *draw_named(struct draw *d);
mesh_grad_fn draw_grad_fn(struct draw *d);
mesh_check_fn draw_check_fn(struct draw *d);
mesh_io_fn draw_io_fn(struct draw *d);
mesh_partition_fn draw_partition_fn(struct draw *d);
mesh_part_fn draw_part_fn(struct draw *d);
mesh_module *draw_module(struct draw *d);
mesh_optimizer *draw_optimizer(struct draw *d);
mesh_child *draw_children(struct draw *d);
mesh_module_class *draw_module_class(struct draw *d);
mesh_inputs_class *draw_inputs_class(struct draw *d);
mesh_op_class *draw_op_class(struct draw *d);
mesh_op *draw_op(struct draw *d);
mesh_op_args *draw_op_args(struct draw *d);
mesh_parallel_plan *draw_plan(struct draw *d);

#endif
