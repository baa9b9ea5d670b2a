#!/usr/bin/env python3
"""random_moving.py - prints random cases of moving, joining, cutting, indexing and attention, as random_cases.py does for others.

    random_moving.py SEED COUNT > cases.jsonl

Extents of 0, negative dims, indices that name a place several times or count from the end, any layout of any input.
SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_cases as cases  # noqa: E402


# --- operators: (inputs, attr) -> list of outputs, each (shape, flat data) --------------------------------------------

def built(shape, element):
    return shape, [element(i) for i in cases.indices(shape)]


def replaced(index, d, place):
    return (*index[:d], place, *index[d + 1:])


def dim_of(x, attr):
    return attr["dim"] % len(x[0])


def permute(inputs, attr):
    (shape, _), dims = inputs[0], [d % len(attr["dims"]) for d in attr["dims"]]

    def element(i):
        back = [0] * len(dims)
        for k, d in enumerate(dims):
            back[d] = i[k]
        return cases.at(inputs[0], back)
    return [built([shape[d] for d in dims], element)]


def unsqueeze(inputs, attr):
    shape, data = inputs[0]
    d = attr["dim"] % (len(shape) + 1)
    return [(shape[:d] + [1] + shape[d:], list(data))]


def squeeze(inputs, attr):
    (shape, data), d = inputs[0], dim_of(inputs[0], attr)
    return [(shape[:d] + shape[d + 1:] if shape[d] == 1 else shape, list(data))]


def flip(inputs, attr):
    shape = inputs[0][0]
    dims = {d % len(shape) for d in attr["dims"]}
    return [built(shape, lambda i: cases.at(inputs[0], [n - 1 - j if d in dims else j
                                                        for d, (n, j) in enumerate(zip(shape, i))]))]


def roll(inputs, attr):
    shape, d = inputs[0][0], dim_of(inputs[0], attr)
    return [built(shape, lambda i: cases.at(inputs[0], replaced(i, d, (i[d] - attr["shift"]) % shape[d])))]


def cat(inputs, attr):
    d = dim_of(inputs[0], attr)
    first = inputs[0][0][d]
    shape = replaced(inputs[0][0], d, first + inputs[1][0][d])
    return [built(list(shape), lambda i: cases.at(inputs[0], i) if i[d] < first
                  else cases.at(inputs[1], replaced(i, d, i[d] - first)))]


def stack(inputs, attr):
    shape = inputs[0][0]
    d = attr["dim"] % (len(shape) + 1)
    return [built(shape[:d] + [2] + shape[d:], lambda i: cases.at(inputs[i[d]], i[:d] + i[d + 1:]))]


def narrow_to(x, d, start, length):
    return built(list(replaced(x[0], d, length)), lambda i: cases.at(x, replaced(i, d, i[d] + start)))


def narrow(inputs, attr):
    d = dim_of(inputs[0], attr)
    return [narrow_to(inputs[0], d, attr["start"] % max(1, inputs[0][0][d]) if attr["start"] < 0 else attr["start"],
                      attr["length"])]


def split(inputs, attr):
    d, size = dim_of(inputs[0], attr), attr["split_size"]
    n = inputs[0][0][d]
    return [narrow_to(inputs[0], d, b, min(size, n - b)) for b in range(0, max(n, 1), size)]


def select(inputs, attr):
    shape, d = inputs[0][0], dim_of(inputs[0], attr)
    place = attr["index"] % shape[d]
    return [built(shape[:d] + shape[d + 1:], lambda i: cases.at(inputs[0], (*i[:d], place, *i[d:])))]


def pad(inputs, attr):
    shape, (before, after) = inputs[0][0], attr["pad"]
    out = shape[:-1] + [shape[-1] + before + after]
    return [built(out, lambda i: cases.at(inputs[0], replaced(i, len(i) - 1, i[-1] - before))
                  if 0 <= i[-1] - before < shape[-1] else attr["value"])]


def repeat(inputs, attr):
    shape, times = inputs[0][0], attr["repeats"]
    wide = [1] * (len(times) - len(shape)) + shape
    return [built([n * t for n, t in zip(wide, times)],
                  lambda i: cases.at(inputs[0], [j % n for j, n in zip(i, wide)][len(times) - len(shape):]))]


def embedding(inputs, attr):
    (rows, width), ids = inputs[0][0], inputs[1]
    return [built(ids[0] + [width], lambda i: cases.at(inputs[0], (cases.at(ids, i[:-1]), i[-1])))]


def index_select(inputs, attr):
    (shape, _), index, d = inputs[0], inputs[1], dim_of(inputs[0], attr)
    return [built(list(replaced(shape, d, index[0][0])),
                  lambda i: cases.at(inputs[0], replaced(i, d, index[1][i[d]] % shape[d])))]


def gather(inputs, attr):
    (shape, data), index, d = inputs[0], inputs[1], dim_of(inputs[0], attr)
    return [(index[0], [data[place(shape, replaced(i, d, v % shape[d]))]
                        for i, v in zip(cases.indices(index[0]), index[1])])]


def place(shape, index):
    n = 0
    for extent, i in zip(shape, index):
        n = n * extent + i
    return n


def scatter_add(inputs, attr):
    (shape, data), index, src, d = *inputs, dim_of(inputs[0], attr)
    out = list(data)
    for i, v, x in zip(cases.indices(index[0]), index[1], src[1]):
        out[place(shape, replaced(i, d, v % shape[d]))] += x
    return [(shape, out)]


def one_hot(inputs, attr):
    shape, data = inputs[0]
    return [(shape + [attr["num_classes"]], [int(v == c) for v in data for c in range(attr["num_classes"])])]


def addmm(inputs, attr):
    product = cases.matmul(inputs[1:], {})
    return [built(product[0], lambda i: cases.at(inputs[0], i) + cases.at(product, i))]


def attention(inputs, attr):
    q, k, v = inputs
    keys = cases.transpose([k], {"dim0": -2, "dim1": -1})
    shape, scores = cases.matmul([q, keys], {})
    scores = [x / math.sqrt(q[0][-1]) if i[-1] <= i[-2] or not attr["is_causal"] else -1e30
              for i, x in zip(cases.indices(shape), scores)]
    return [cases.matmul([cases.softmax(False)([(shape, scores)], {"dim": -1}), v], {})]


OPERATORS = {
    "permute": permute, "unsqueeze": unsqueeze, "squeeze": squeeze, "flip": flip, "roll": roll, "cat": cat, "stack": stack,
    "narrow": narrow, "split": split, "select": select, "pad": pad, "repeat": repeat, "embedding": embedding,
    "index_select": index_select, "gather": gather, "scatter_add": scatter_add, "one_hot": one_hot,
    "bmm": lambda inputs, attr: [cases.matmul(inputs, attr)], "addmm": addmm, "scaled_dot_product_attention": attention,
}
HAS_INDEX = {"embedding": 1, "index_select": 1, "gather": 1, "scatter_add": 1, "one_hot": 0}
FLOATING = {"bmm", "addmm", "scaled_dot_product_attention"}


# --- random arguments -------------------------------------------------------------------------------------------------

def index_values(n, extent, may_be_negative):
    least = -extent if may_be_negative and random.random() < 0.3 else 0
    return [random.randrange(least, extent) for _ in range(n)]


def along(shape, **more):
    return {"dim": cases.some_dim(shape), **more}


def of_one(op):
    shape = cases.some_shape(1, 4, 60)
    d = random.randrange(len(shape))
    n, dim = shape[d], d if random.random() < 0.8 else d - len(shape)
    if op == "narrow":
        start = random.randint(0, n)
        length = random.randint(0, n - start)
        return shape, {"dim": dim, "start": start - n if start < n and random.random() < 0.2 else start, "length": length}
    if op == "select":
        shape[d] = max(n, 1)
        return shape, {"dim": dim, "index": random.randrange(-shape[d], shape[d])}
    if op == "squeeze":
        shape[d] = random.choice([1, 1, 1, n])
    if op == "split":
        return shape, {"dim": dim, "split_size": random.randint(max(1, -(-n // 4)), n + 1)}
    attrs = {
        "permute": {"dims": random.sample(range(len(shape)), len(shape))},
        "flip": {"dims": random.sample(range(len(shape)), random.randint(0, len(shape)))},
        "unsqueeze": {"dim": random.randint(-len(shape) - 1, len(shape))}, "squeeze": {"dim": dim},
        "roll": {"dim": dim, "shift": random.randint(-9, 9)},
        "pad": {"pad": [random.randint(0, 3), random.randint(0, 3)], "value": random.choice([0.0, 0.0, 2.0])},
        "repeat": {"repeats": [random.randint(1, 2)] * (random.random() < 0.3) + [random.randint(1, 3) for _ in shape]},
    }
    return shape, attrs[op]


def shapes_of(op):
    """Shapes of all inputs, the attributes, and the extent that an index is within."""
    shape = cases.some_shape(1, 3, 40)
    d = random.randrange(len(shape))
    if op in ("cat", "stack"):
        other = list(replaced(shape, d, cases.extent())) if op == "cat" else shape
        return [shape, other], {"dim": d if op == "cat" else random.randint(-len(shape) - 1, len(shape))}, 0
    if op == "one_hot":
        return [shape[:2]], {"num_classes": 5}, 5
    if op == "embedding":
        return [[random.randint(1, 9), cases.extent()], cases.some_shape(0, 2, 12)], {}, 0
    if op in HAS_INDEX:
        shape[d] = max(1, shape[d])
        index = [cases.extent()] if op == "index_select" else [random.randint(min(1, n), n) for n in shape]
        if op != "index_select":
            index[d] = cases.extent()
        return [shape, index, index][:2 + (op == "scatter_add")], {"dim": d}, shape[d]
    if op in ("bmm", "addmm"):
        b, m, k, n = [cases.extent() for _ in range(4)]
        bias = random.choice([[n], [m, n], [1, n], [m, 1], [1], []])
        return ([[b, m, k], [b, k, n]] if op == "bmm" else [bias, [m, k], [k, n]]), {}, 0
    if op == "scaled_dot_product_attention":
        lead = [random.randint(1, 3) for _ in range(random.randint(1, 2))]
        l, s, e, f = [random.randint(1, 4) for _ in range(4)]
        return [lead + [l, e], lead + [s, e], lead + [s, f]], {"is_causal": random.random() < 0.5}, 0
    shape, attr = of_one(op)
    return [shape], attr, 0


def operator_case(op, mesh):
    shapes, attr, extent = shapes_of(op)
    extent = shapes[0][0] if op == "embedding" else extent
    dtype = random.choice(["f32", "f64"] if op in FLOATING else
                          ["f32", "f32", "f64", "i64", "i32"] + ["bool"] * (op not in ("pad", "scatter_add", "one_hot")))
    dtypes = [dtype] * len(shapes)
    if op in HAS_INDEX:
        dtypes[HAS_INDEX[op]] = random.choice(["i64", "i32"])
    inputs = []
    for k, shape in enumerate(shapes):
        is_index = HAS_INDEX.get(op) == k
        n = cases.count(shape)
        inputs.append((shape, index_values(n, extent, op not in ("embedding", "one_hot")) if is_index
                       else [random.randint(-8, 8) / 4 for _ in range(n)] if dtypes[k][0] == "f"
                       else [random.random() < 0.5 for _ in range(n)] if dtypes[k] == "bool"
                       else [random.randint(-3, 3) for _ in range(n)]))
    kinds = {"f": ["sum", "sum", "avg", "max", "min"], "i": ["sum", "max", "min"], "b": []}
    placed = [cases.placements(s, mesh, [] if HAS_INDEX.get(op) == k else kinds[dtypes[k][0]])
              for k, s in enumerate(shapes)]
    case = {"op": op, "mesh": mesh,
            "in": [cases.tensor(s, t, d, placements=p) for (s, d), t, p in zip(inputs, dtypes, placed)]}
    to = "i64" if op == "one_hot" else dtype
    case["out"] = [cases.tensor(list(s), to, d) for s, d in OPERATORS[op](inputs, attr)]
    if to[0] == "f":
        case["grad"] = [cases.tensor(s, t, gradient(op, inputs, attr, k)) if t[0] == "f" else None
                        for k, ((s, _), t) in enumerate(zip(inputs, dtypes))]
    return case | ({"attr": attr} if attr else {}) | {"tol": [3e-5, 3e-5]}


def loss(op, inputs, attr):
    return sum(x * (7 * i % 11 - 5) / 4 for _, out in OPERATORS[op](inputs, attr) for i, x in enumerate(out))


def gradient(op, inputs, attr, which):
    data, slopes, h = inputs[which][1], [], 1e-4 if op == "scaled_dot_product_attention" else 2.0 ** -10
    for i, x in enumerate(data):
        sides = []
        for data[i] in (x - h, x + h):
            sides.append(loss(op, inputs, attr))
        data[i] = x
        slopes.append((sides[1] - sides[0]) / (2 * h))
    return slopes


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: random_moving.py SEED COUNT")
    seed, n_cases = int(sys.argv[1]), int(sys.argv[2])
    random.seed(seed)
    for n in range(n_cases):
        op = random.choice(list(OPERATORS))
        print(json.dumps({"id": f"{op}/seed{seed}-{n}"} | operator_case(op, random.choice(cases.MESHES))))


if __name__ == "__main__":
    main()
