"""every_call.py - writes C that calls each public function with drawn arguments: every_call.py HEADER... > every_call.inc

Each function of the headers is called by a function of one's own name, each argument drawn by a function that belongs to its
type (draws.c), each option by that of its type.  A type that nobody knows values for, or a function that is neither
called nor exempt, is an error: so is an exempt one that is gone."""
import pathlib
import re
import sys

# What is not called, and why.
EXEMPT = {
    "mesh_init_process_group": "begins a session: test_arguments.c, unit tests of session",
    "mesh_finalize": "ends the session under test",
    "mesh_abort": "ends the job under test",
    "mesh_attach": "a session of another thread: unit tests of session",
    "mesh_world_run": "makes the worlds of this test: test_arguments.c",
    "mesh_perror": "prints",
    "mesh_scope_begin": "scopes are opened around each call: unit tests of core",
    "mesh_scope_end": "as mesh_scope_begin",
    "mesh_scope_next": "as mesh_scope_begin",
    "mesh_free_group": "group handles of others would dangle: test_comm_groups.c",
}

# Fails on the data of one rank, which the others hear of later.
LOCAL = {"mesh_one_hot", "mesh_embedding", "mesh_index_select", "mesh_take_along_dim", "mesh_scatter_add", "mesh_nll_loss_opt",
         "mesh_from_local_opt", "mesh_cross_entropy_opt", "mesh_make_from_callback_opt", "mesh_apply_op"}
# Each rank answers for its own arguments.
JOB_WORLD = ("collective", "p2p", "group", "store")

# Drawn by type; a parameter's name may say more.
DRAWN = {
    "mesh_dtensor *": "dtensor", "mesh_tensor *": "tensor", "mesh_device_mesh *": "mesh", "mesh_group *": "group",
    "mesh_module *": "module", "mesh_optimizer *": "optimizer", "mesh_work *": "work", "mesh_op *": "op",
    "mesh_comm_log *": "log", "mesh_scope *": "scope", "mesh_shape": "shape", "mesh_placements": "placements",
    "mesh_placement": "placement", "mesh_dtype": "dtype", "mesh_reduce_op": "reduce_op", "mesh_reduction": "reduction",
    "mesh_comm_kind": "kind", "mesh_status": "status", "int": "int", "int64_t": "int64", "uint64_t": "uint64", "size_t": "count",
    "double": "double", "bool": "bool", "char *": "text_room", "void *": "room", "FILE *": "file",
    "char *const *": "names", "void *const *": "rooms", "mesh_dtensor *const *": "dtensors", "mesh_dtensor **": "results",
    "mesh_group **": "groups", "mesh_shape *": "shape_room", "size_t *": "size_room", "int64_t *": "int64_room",
    "char **": "name_room", "double *": "double_room", "int *": "ranks", "mesh_message *": "message",
    "mesh_transfer *": "transfers", "mesh_named_placement *": "named", "mesh_child *": "children",
    "mesh_module_class *": "module_class", "mesh_inputs_class *": "inputs_class", "mesh_op_class *": "op_class",
    "mesh_op_args *": "op_args", "mesh_parallel_plan *": "plan", "mesh_grad_fn": "grad_fn", "mesh_check_fn": "check_fn",
    "mesh_io_fn": "io_fn", "mesh_partition_fn": "partition_fn", "mesh_part_fn": "part_fn",
}
NAMED = {
    ("size_t", "cap"): "cap", ("size_t *", "counts"): "counts", ("int", "peer"): "wrong_peer",
    ("int64_t", "timeout_ms"): "timeout", ("int", "n_inputs"): "few", ("int", "n"): "few", ("int", "n_tensors"): "few",
    ("int64_t", "max_elements"): "few64", ("int", "max_pieces"): "few",
}


def declarations(paths):
    functions, structs = [], {}
    for path in paths:
        text = re.sub(r"/\*.*?\*/", " ", open(path).read(), flags=re.S)
        text = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$", "", text)
        for m in re.finditer(r"MESH_API\s+([^;{]*?)\s*\b(\w+)\(([^;{]*)\)\s*(?:MESH_CHECKED)?\s*;", text):
            functions.append((m[1], m[2], " ".join(m[3].split()), pathlib.Path(path).stem))
        assert text.count("MESH_API ") == len(re.findall(r"MESH_API\s[^;{]*\)\s*(?:MESH_CHECKED)?\s*;", text)), path
        for m in re.finditer(r"typedef struct (?:\w+ )?(\w+_options) \{(.*?)\}\s*\1;", text, flags=re.S):
            structs[m[1]] = m[2]
    return functions, structs


def typed(declaration):
    """("mesh_shape *", "dims") of "const mesh_shape *dims"."""
    m = re.fullmatch(r"(.*?)(\w+)", " ".join(declaration.split()))
    words = re.sub(r"^const ", "", m[1].strip())
    return re.sub(r"(\w)(\*)", r"\1 \2", words), m[2]


def is_text(declaration):
    return bool(re.match(r"\s*const char \*\w+$", declaration))


def drawn(declaration, where):
    kind, name = typed(declaration)
    if is_text(declaration):
        return "draw_text(d)"
    if kind.endswith("_options *"):
        return f"draw_{kind[:-2]}(d)"
    word = NAMED.get((kind, name)) or DRAWN.get(kind)
    if word is None:
        sys.exit(f'every_call.py: no values are known for "{kind}" ({where}): add it to DRAWN')
    return f"draw_{word}(d)"


def options(name, body):
    yield f"static {name} *draw_{name}(struct draw *d)\n{{\n    {name} *o = mine(d, sizeof *o);"
    yield "    if (hostile(d)) {\n        return NULL;\n    }"
    yield "    o->size = sizeof *o;"
    for field in filter(None, (" ".join(f.split()) for f in body.split(";"))):
        first, *others = field.split(",")
        kind = re.match(r"(.*?)\w+(\[\d+\])?$", first)[1]
        for one in [first] + [kind + o.strip() for o in others]:
            m = re.fullmatch(r"(.*?)(\w+)(?:\[(\d+)\])?", " ".join(one.split()))
            if m[2] == "size":
                continue
            for i in range(int(m[3] or 1)):
                place = f"{m[2]}[{i}]" if m[3] else m[2]
                yield f"    if (chance_of(d, 40)) {{\n        o->{place} = {drawn(m[1] + m[2], name)};\n    }}"
    yield "    return o;\n}\n"


def call(result, name, parameters):
    args = [] if parameters == "void" else re.split(r",(?![^()]*\))", parameters)
    yield f"static void call_{name}(struct draw *d)\n{{"
    for i, a in enumerate(args):
        base = re.fullmatch(r"(.*?)(\w+)", a.strip())[1].strip()
        yield f"    {base}{'' if base.endswith('*') else ' '}a{i} = {drawn(a.strip(), name)};"
    yield "    begin_call(d);"
    if result == "mesh_work *":
        yield f"    d->work = {name}({', '.join(f'a{i}' for i in range(len(args)))});"
    else:
        cast = "" if result == "void" else "(void)!" if result == "int" else "(void)"
        yield f"    {cast}{name}({', '.join(f'a{i}' for i in range(len(args)))});"
    if not args:
        yield "    (void)d;"
    yield "}\n"


def check_headers(paths):
    """None of the folder's headers with functions may be missing."""
    there = {p for p in pathlib.Path(paths[0]).parent.glob("*.h") if "MESH_API " in p.read_text()}
    missing = sorted(p.name for p in there if p.name not in {pathlib.Path(q).name for q in paths})
    if missing:
        sys.exit(f"every_call.py: public headers that tests/world/meson.build does not name: {', '.join(missing)}")


def main():
    check_headers(sys.argv[1:])
    functions, structs = declarations(sys.argv[1:])
    gone = (set(EXEMPT) | LOCAL) - {f[1] for f in functions}
    if gone:
        sys.exit(f"every_call.py: named, but no public functions: {', '.join(sorted(gone))}")
    called = [f for f in functions if f[1] not in EXEMPT]
    needed = {n for _, _, p, _ in called for n in re.findall(r"\w+_options\b", p)}
    unknown = needed - set(structs)
    if unknown:
        sys.exit(f"every_call.py: options whose members are not understood: {', '.join(sorted(unknown))}")
    for name in sorted(needed):
        print("\n".join(options(name, structs[name])))
    for f in called:
        print("\n".join(call(*f[:3])))
    print("static const struct {\n    const char *name;\n    void (*call)(struct draw *d);")
    print("    bool is_of_each_rank; /* what a rank says depends on the rank */\n} calls[] = {")
    for _, name, _, header in called:
        print(f'    {{ "{name}", call_{name}, {int(name in LOCAL or header in JOB_WORLD)} }},')
    print("};")


main()
