#!/usr/bin/env python3
"""random_cases.py - prints conformance cases of random shapes, meshes and layouts, in the oracle's format.

    random_cases.py SEED COUNT > cases.jsonl

Plain Python on whole tensors is the judge here, and central differences give the gradients: an oracle that shares nothing
with the library, nor with the one that made tests/data/oracle.  A tensor is a pair (shape, flat list in row-major order).
SPDX-License-Identifier: Apache-2.0
"""
import itertools
import json
import math
import random
import sys

MESHES = [[1], [2], [3], [4], [5], [6], [7], [8], [2, 2], [2, 3], [3, 2], [1, 4], [4, 1], [2, 4], [3, 3], [2, 2, 2], [2, 1, 3],
          [1, 2, 2, 2]]
MOST_ELEMENTS = 120


# --- index arithmetic ------------------------------------------------------------------------------------------------

def count(shape):
    return math.prod(shape)


def indices(shape):
    return itertools.product(*[range(n) for n in shape])


def at(tensor, index):
    """The element at index, whose leading entries may be more than the tensor has dims; extents of 1 take any index."""
    shape, data = tensor
    place = 0
    for n, i in zip(shape, index[len(index) - len(shape):]):
        place = place * n + (0 if n == 1 else i)
    return data[place]


def broadcast(a, b):
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + list(a), [1] * (n - len(b)) + list(b)
    return [y if x == 1 else x for x, y in zip(a, b)]


def lines(shape, dim):
    """The places of each line along dim."""
    inner, n = count(shape[dim + 1:]), shape[dim]
    for outer in range(count(shape[:dim])):
        for i in range(inner):
            yield [outer * n * inner + j * inner + i for j in range(n)]


# --- operators -------------------------------------------------------------------------------------------------------

def pairwise(f):
    def op(inputs, attr):
        shape = broadcast(inputs[0][0], inputs[1][0])
        return shape, [f(at(inputs[0], i), at(inputs[1], i)) for i in indices(shape)]
    return op


def elementwise(f):
    return lambda inputs, attr: (inputs[0][0], [f(x, attr) for x in inputs[0][1]])


def matmul(inputs, attr):
    (sa, a), (sb, b) = inputs
    wide_a, wide_b = ([1] + sa if len(sa) == 1 else sa), (sb + [1] if len(sb) == 1 else sb)
    batch, (m, k), n = broadcast(wide_a[:-2], wide_b[:-2]), wide_a[-2:], wide_b[-1]
    out = [sum(at((wide_a, a), (*i[:-1], l)) * at((wide_b, b), (*i[:-2], l, i[-1])) for l in range(k))
           for i in indices(batch + [m, n])]
    return batch + ([m] if len(sa) > 1 else []) + ([n] if len(sb) > 1 else []), out


def linear(inputs, attr):
    (sx, x), (sw, w) = inputs[:2]
    n, k = sw
    bias = inputs[2][1] if len(inputs) > 2 else [0] * n
    out = [sum(x[r * k + l] * w[j * k + l] for l in range(k)) + bias[j] for r in range(count(sx[:-1])) for j in range(n)]
    return sx[:-1] + [n], out


def swapped(items, a, b):
    items = list(items)
    items[a], items[b] = items[b], items[a]
    return items


def transpose(inputs, attr):
    shape = swapped(inputs[0][0], attr["dim0"], attr["dim1"])
    return shape, [at(inputs[0], swapped(i, attr["dim0"], attr["dim1"])) for i in indices(shape)]


def expand(inputs, attr):
    return attr["shape"], [at(inputs[0], i) for i in indices(attr["shape"])]


def reduction(is_mean):
    def op(inputs, attr):
        shape, data = inputs[0]
        dims = {d % len(shape) for d in attr["dims"]} or set(range(len(shape)))
        kept = [1 if d in dims else n for d, n in enumerate(shape)]
        sums = {i: 0 for i in indices(kept)}
        for i, x in zip(indices(shape), data):
            sums[tuple(0 if d in dims else j for d, j in enumerate(i))] += x
        n = math.prod(shape[d] for d in dims)
        out = [x if not is_mean else x / n if n else math.nan for x in sums.values()]
        return (kept if attr["keepdim"] else [n for d, n in enumerate(shape) if d not in dims]), out
    return op


def log_sum_exp(xs):
    m = max(xs)
    return m + math.log(sum(math.exp(x - m) for x in xs))


def softmax(is_log):
    def op(inputs, attr):
        shape, data = inputs[0]
        out = list(data)
        for line in lines(shape, attr["dim"] % len(shape)):
            total = log_sum_exp([data[i] for i in line]) if line else 0
            for i in line:
                out[i] = data[i] - total if is_log else math.exp(data[i] - total)
        return shape, out
    return op


def cross_entropy(inputs, attr):
    (shape, x), (target_shape, target) = inputs
    e, losses, n_counted = attr["label_smoothing"], [], 0
    for t, line in zip(target, lines(shape, 0 if len(shape) == 1 else 1)):
        logs = [x[i] - log_sum_exp([x[j] for j in line]) for i in line]
        counts = t != attr["ignore_index"]
        n_counted += counts
        losses.append(-(1 - e) * logs[t] - e * sum(logs) / len(logs) if counts else 0)
    if attr["reduction"] == "none":
        return target_shape, losses
    total = sum(losses)
    return [], [total if attr["reduction"] == "sum" else total / n_counted if n_counted else math.nan]


def gelu(x, attr):
    if attr["approximate"] == "none":
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


OPERATORS = {
    "add": pairwise(lambda a, b: a + b), "sub": pairwise(lambda a, b: a - b), "mul": pairwise(lambda a, b: a * b),
    "div": pairwise(lambda a, b: a / b), "neg": elementwise(lambda x, attr: -x),
    "mul_scalar": elementwise(lambda x, attr: x * attr["value"]),
    "add_scalar": elementwise(lambda x, attr: x + attr["value"]),
    "relu": elementwise(lambda x, attr: max(x, 0)), "tanh": elementwise(lambda x, attr: math.tanh(x)),
    "gelu": elementwise(gelu), "matmul": matmul, "linear": linear, "transpose": transpose, "expand": expand,
    "reshape": lambda inputs, attr: (attr["shape"], list(inputs[0][1])),
    "sum": reduction(False), "mean": reduction(True), "softmax": softmax(False), "log_softmax": softmax(True),
    "cross_entropy": cross_entropy,
}
FOR_INTEGERS = {"add", "sub", "mul", "neg", "mul_scalar", "add_scalar", "relu", "matmul", "transpose", "reshape", "expand", "sum"}
CURVED = {"gelu", "tanh", "softmax", "log_softmax", "cross_entropy", "div"}


# --- random inputs ---------------------------------------------------------------------------------------------------

def extent():
    return 0 if random.random() < 0.06 else random.choice([1, 2, 3, 4, 5, 6, 7, 9])


def some_shape(least_ndim, most_ndim, most=MOST_ELEMENTS):
    while True:
        shape = [extent() for _ in range(random.randint(least_ndim, most_ndim))]
        if count(shape) <= most:
            return shape


def narrower(shape):
    """A shape that broadcasts to it."""
    gone = random.choice([0, 0, 0] + list(range(len(shape) + 1)))
    return [1 if random.random() < 0.3 else n for n in shape[gone:]]


def some_dim(shape):
    return random.randrange(-len(shape), len(shape)) if random.random() < 0.2 else random.randrange(len(shape))


def factors(n):
    """A shape of n elements."""
    shape = [1] * (random.random() < 0.3)
    while n > 1 and len(shape) < 4:
        shape.append(random.choice([d for d in range(2, n + 1) if n % d == 0]))
        n //= shape[-1]
    shape += [n] * (n > 1)
    random.shuffle(shape)
    return shape


def placements(shape, mesh, kinds):
    """kinds: which Partial may appear; one of them per tensor."""
    kind, chosen = random.choice(kinds) if kinds else None, []
    for _ in mesh:
        dice = random.random()
        if kind and dice < 0.25:
            chosen.append(f"P({kind})")
        elif shape and dice < 0.7:
            chosen.append(f"S({some_dim(shape)})")
        else:
            chosen.append("R")
    return chosen


def values(n, dtype, op):
    if dtype[0] == "i":
        return [random.randint(-3, 3) for _ in range(n)]
    if op in ("relu", "div"):  # away from the kink and from zero
        return [random.choice([-1, 1]) * random.randint(2, 8) / 4 for _ in range(n)]
    return [round(random.uniform(-2, 2), 6) if op in CURVED else random.randint(-8, 8) / 4 for _ in range(n)]


def inputs_of(op):
    """Shapes of the inputs, and the attributes."""
    shape = some_shape(0, 4)
    if op in ("add", "sub", "mul", "div"):
        return random.choice([[shape, shape], [narrower(shape), shape], [shape, narrower(shape)]]), {}
    if op == "matmul":
        batch, m, k, n = some_shape(0, 2, 12), extent(), extent(), extent()
        a, b = narrower(batch) + [m, k], narrower(batch) + [k, n]
        return random.choice([[a, b], [a, b], [a, b], [[k], b], [a, [k]]]), {}
    if op == "linear":
        x, n = some_shape(1, 3), extent()
        return [x, [n, x[-1]]] + ([[n]] if random.random() < 0.6 else []), {}
    if op == "reshape":
        return [shape], {"shape": factors(count(shape)) if count(shape) else [0, 3]}
    if op == "expand":
        return [narrower(shape)], {"shape": shape}
    if op in ("sum", "mean"):
        dims = random.sample(range(len(shape)), random.randint(0, len(shape)))
        return [shape], {"dims": [d - len(shape) if random.random() < 0.2 else d for d in dims],
                         "keepdim": random.random() < 0.5}
    if op in ("softmax", "log_softmax", "transpose"):
        shape = some_shape(1, 4)
        names = ["dim0", "dim1"] if op == "transpose" else ["dim"]
        return [shape], {name: some_dim(shape) for name in names}
    attrs = {"mul_scalar": {"value": random.choice([-2.0, 3.0, 0.0])}, "add_scalar": {"value": random.choice([-2.0, 3.0])},
             "gelu": {"approximate": random.choice(["none", "tanh"])}}
    return [shape], attrs.get(op, {})


# --- cases -----------------------------------------------------------------------------------------------------------

def loss(op, inputs, attr):
    return sum(x * (7 * i % 11 - 5) / 4 for i, x in enumerate(OPERATORS[op](inputs, attr)[1]))


def gradient(op, inputs, attr, which):
    data, slopes, h = inputs[which][1], [], 1e-4 if op in CURVED else 2.0 ** -10
    for i, x in enumerate(data):
        sides = []
        for data[i] in (x - h, x + h):
            sides.append(loss(op, inputs, attr))
        data[i] = x
        slopes.append((sides[1] - sides[0]) / (2 * h))
    return slopes


def tensor(shape, dtype, data, **more):
    data = ["nan" if isinstance(x, float) and math.isnan(x) else x for x in data]
    return {"shape": shape, "dtype": dtype, "data": data, **more}


def part(shape, mesh, placed, rank):
    """Offset and extent of a rank's part: ceil chunks, earlier mesh dims outermost."""
    offset, size, inner = [0] * len(shape), list(shape), count(mesh)
    for n, p in zip(mesh, placed):
        inner //= n
        if p[0] == "S":
            d = int(p[2:-1]) % len(shape)
            chunk, c = -(-size[d] // n), rank // inner % n
            begin, end = min(size[d], c * chunk), min(size[d], (c + 1) * chunk)
            offset[d], size[d] = offset[d] + begin, end - begin
    return [n if s == 0 else o for n, s, o in zip(shape, size, offset)], size


def layout_case(op, mesh):
    shape = some_shape(0, 4)
    whole = (shape, [float(i % 23) for i in range(count(shape))])
    before = placements(shape, mesh, ["sum", "avg", "max", "min"] if op == "redistribute" else [])
    after = placements(shape, mesh, []) if op == "redistribute" else before
    found = []
    for rank in range(count(mesh)):
        offset, size = part(shape, mesh, after, rank)
        data = [at(whole, [o + j for o, j in zip(offset, i)]) for i in indices(size)]
        found.append({"rank": rank, "offset": offset, "shape": size, "data": data})
    case = {"op": op, "mesh": mesh, "in": [tensor(*whole[:1], "f32", whole[1], placements=before)], "locals": found,
            "tol": [1e-6, 1e-6]}
    return case | ({"attr": {"to": after}} if op == "redistribute" else {})


def cross_entropy_inputs():
    c = random.randint(1, 7)
    shape = random.choice([[extent(), c], [c], [random.randint(1, 3), c, random.randint(1, 4)]])
    ignored = random.choice([-100, -100, 0])
    rows = [n for d, n in enumerate(shape) if d != (0 if len(shape) == 1 else 1)]
    target = [random.choice([random.randrange(c), random.randrange(c), ignored]) for _ in range(count(rows))]
    attr = {"reduction": random.choice(["mean", "sum", "none"]), "ignore_index": ignored,
            "label_smoothing": random.choice([0.0, 0.0, 0.1, 0.3])}
    return shape, (rows, target), attr


def operator_case(op, mesh):
    dtype = random.choice(["f32", "f32", "f64"] + ["i64", "i32"] * (op in FOR_INTEGERS))
    target = None
    if op == "cross_entropy":
        shape, target, attr = cross_entropy_inputs()
        shapes = [shape]
    else:
        shapes, attr = inputs_of(op)
    inputs = [(shape, values(count(shape), dtype, op)) for shape in shapes]
    kinds = ["sum", "sum", "avg", "max", "min"] if dtype[0] == "f" else ["sum", "max", "min"]
    case = {"op": op, "mesh": mesh, "in": [tensor(s, dtype, d, placements=placements(s, mesh, kinds)) for s, d in inputs]}
    if target:
        inputs.append(target)
        case["in"].append(tensor(target[0], "i64", target[1], placements=placements(target[0], mesh, [])))
    shape, data = OPERATORS[op](inputs, attr)
    case["out"] = [tensor(shape, "i64" if op == "sum" and dtype[0] == "i" else dtype, data)]
    if dtype[0] == "f" and not any(math.isnan(x) for x in data):
        case["grad"] = [None if i is target else tensor(i[0], dtype, gradient(op, inputs, attr, k))
                        for k, i in enumerate(inputs)]
    return case | ({"attr": attr} if attr else {}) | {"tol": [2e-5, 2e-5]}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: random_cases.py SEED COUNT")
    seed, n_cases = int(sys.argv[1]), int(sys.argv[2])
    random.seed(seed)
    names = list(OPERATORS) + ["matmul", "linear", "reshape", "distribute_tensor"] + ["redistribute"] * 4
    for n in range(n_cases):
        op, mesh = random.choice(names), random.choice(MESHES)
        case = operator_case(op, mesh) if op in OPERATORS else layout_case(op, mesh)
        print(json.dumps({"id": f"{op}/seed{seed}-{n}"} | case))


if __name__ == "__main__":
    main()
