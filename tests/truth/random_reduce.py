#!/usr/bin/env python3
"""random_reduce.py - prints random cases of reductions, scans, sorts, normalisation and losses, as random_cases.py does for the
first operators.

    random_reduce.py SEED COUNT > cases.jsonl

Extremes are unique where a gradient is asked for; where an order is asked for there are ties.
SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_cases as cases  # noqa: E402


def norm_of(xs, p):
    if p in ("inf", "-inf"):
        return (max if p == "inf" else min)(abs(x) for x in xs)
    if p == 0:
        return sum(x != 0 for x in xs)
    return sum(abs(x) ** p for x in xs) ** (1 / p)


def variance(xs, correction):
    if not xs:
        return math.nan
    mean, n = sum(xs) / len(xs), len(xs) - correction
    total = sum((x - mean) ** 2 for x in xs)
    return total / n if n > 0 else math.nan if total == 0 else math.inf


def log_sum_exp(xs):
    return cases.log_sum_exp(xs) if xs else -math.inf


OF_LINES = {
    "amax": lambda xs, a: max(xs), "amin": lambda xs, a: min(xs), "prod": lambda xs, a: math.prod(xs),
    "all": lambda xs, a: all(xs), "any": lambda xs, a: any(xs), "logsumexp": lambda xs, a: log_sum_exp(xs),
    "var": lambda xs, a: variance(xs, a["correction"]), "norm": lambda xs, a: norm_of(xs, a["p"]),
}


def reduction(f):
    def op(inputs, attr):
        shape, data = inputs[0]
        dims = {d % len(shape) for d in attr["dims"]} or set(range(len(shape)))
        kept = [1 if d in dims else n for d, n in enumerate(shape)]
        parts = {i: [] for i in cases.indices(kept)}
        for i, x in zip(cases.indices(shape), data):
            parts[tuple(0 if d in dims else j for d, j in enumerate(i))].append(x)
        out = [f(xs, attr) for xs in parts.values()]
        return (kept if attr["keepdim"] else [n for d, n in enumerate(shape) if d not in dims]), out
    return op


def arg(best):
    def op(inputs, attr):
        shape, data = inputs[0]
        dim = attr["dim"] % len(shape)
        kept = [1 if d == dim else n for d, n in enumerate(shape)]
        found = [min(range(len(line)), key=lambda j: (best * data[line[j]], j)) for line in cases.lines(shape, dim)]
        return (kept if attr["keepdim"] else kept[:dim] + kept[dim + 1:]), found
    return op


def cumsum(inputs, attr):
    shape, data = inputs[0]
    out = list(data)
    for line in cases.lines(shape, attr["dim"] % len(shape)):
        total = 0
        for i in line:
            total += data[i]
            out[i] = total
    return shape, out


def ordered(inputs, attr, k, sign):
    """The first k of each line in order, values and indices."""
    shape, data = inputs[0]
    dim = attr["dim"] % len(shape)
    to = shape[:dim] + [k] + shape[dim + 1:]
    values, indices = [0] * cases.count(to), [0] * cases.count(to)
    for line, out in zip(cases.lines(shape, dim), cases.lines(to, dim)):
        order = sorted(range(len(line)), key=lambda j: (sign * data[line[j]], j))
        for i, j in zip(out, order):
            values[i], indices[i] = data[line[j]], j
    return to, values, indices


def normalize(is_layer):
    def op(inputs, attr):
        shape, data = inputs[0]
        n = cases.count(shape[len(shape) - attr["normalized_dims"]:])
        weight = inputs[1][1] if len(inputs) > 1 else [1] * n
        bias = inputs[2][1] if len(inputs) > 2 else [0] * n
        out = []
        for r in range(len(data) // n if n else 0):
            xs = data[r * n:(r + 1) * n]
            mean = sum(xs) / n if is_layer else 0
            scale = 1 / math.sqrt(sum((x - mean) ** 2 for x in xs) / n + attr["eps"])
            out += [(x - mean) * scale * w + b for x, w, b in zip(xs, weight, bias)]
        return shape, out
    return op


def reduced(losses, shape, n, how):
    if how == "none":
        return shape, losses
    return [], [sum(losses) if how == "sum" else sum(losses) / n if n else math.nan]


def mse_loss(inputs, attr):
    losses = [(x - y) ** 2 for x, y in zip(inputs[0][1], inputs[1][1])]
    return reduced(losses, inputs[0][0], len(losses), attr["reduction"])


def nll_loss(inputs, attr):
    (shape, x), (rows, target) = inputs
    lines = cases.lines(shape, 0 if len(shape) == 1 else 1)
    losses = [-x[line[t]] if t != attr["ignore_index"] else 0 for t, line in zip(target, lines)]
    return reduced(losses, rows, sum(t != attr["ignore_index"] for t in target), attr["reduction"])


OPERATORS = {name: reduction(f) for name, f in OF_LINES.items()} | {
    "argmax": arg(-1), "argmin": arg(1), "cumsum": cumsum, "layer_norm": normalize(True), "rms_norm": normalize(False),
    "sort": lambda inputs, a: ordered(inputs, a, inputs[0][0][a["dim"]], -1 if a["descending"] else 1),
    "topk": lambda inputs, a: ordered(inputs, a, a["k"], -1), "mse_loss": mse_loss, "nll_loss": nll_loss,
}
cases.OPERATORS.update(OPERATORS)
cases.CURVED.update(OPERATORS)
ORDERED = ("argmax", "argmin", "sort", "topk")
INTEGERS = ("amax", "amin", "prod", "all", "any", "cumsum") + ORDERED


def dims_of(op, shape):
    dims = random.sample(range(len(shape)), random.randint(0, len(shape)))
    return {"dims": [d - len(shape) if random.random() < 0.2 else d for d in dims], "keepdim": random.random() < 0.5}


def inputs_of(op):
    """Shapes of the floating inputs, and the attributes."""
    how = random.choice(["mean", "sum", "none"])
    if op == "mse_loss":
        return [cases.some_shape(0, 3)] * 2, {"reduction": how}
    if op in ("layer_norm", "rms_norm"):
        shape = [cases.extent()] * random.randint(0, 1) + [random.randint(2, 7) for _ in range(random.randint(1, 2))]
        n = random.randint(1, len(shape))
        n = n if all(shape[len(shape) - n:]) else n - 1
        most = 2 if op == "layer_norm" else 1
        return [shape] + [shape[len(shape) - n:]] * random.randint(0, most), {
            "normalized_dims": n, "eps": random.choice([1e-5, 1e-2])}
    shape = cases.some_shape(0 if op in OF_LINES else 1, 4)
    attr = dims_of(op, shape) if op in OF_LINES else {"dim": cases.some_dim(shape)}
    attr |= {"var": {"correction": random.choice([0, 1])}, "sort": {"descending": random.random() < 0.5},
             "norm": {"p": random.choice([2.0, 2.0, 1.0, 3.0, 0.0, "inf", "-inf"])},
             "argmax": {"keepdim": random.random() < 0.5}, "argmin": {"keepdim": random.random() < 0.5},
             }.get(op, {})
    needs_some = op in ("amax", "amin", "argmax", "argmin") or attr.get("p") in ("inf", "-inf")
    gone = attr["dims"] or range(len(shape)) if "dims" in attr else [attr["dim"]]
    for d in gone if needs_some else []:
        shape[d] = shape[d] or 2
    if op == "topk":
        attr["k"] = random.randint(0, min(shape[attr["dim"]], random.choice([2, 9])))
    return [shape], attr


def number(op, dtype, coarse):
    if dtype == "bool":
        return random.random() < (0.8 if op == "all" else 0.2)
    if dtype[0] == "i":
        return random.randint(-3, 3)
    if op == "norm":
        return random.choice([-1, 1]) * round(random.uniform(0.25, 2), 6)
    return random.randint(-8, 8) / 4 if coarse else round(random.uniform(-2, 2), 6)


def operator_case(op, mesh):
    dtype = random.choice(["f32", "f32", "f64"] + ["i64", "i32"] * (op in INTEGERS) + ["bool"] * 6 * (op in ("all", "any")))
    target, has_kinds = None, ["sum", "max", "min"] if op in ORDERED else ["sum", "avg", "max", "min"]
    if op == "nll_loss":
        shape, target, attr = cases.cross_entropy_inputs()
        del attr["label_smoothing"]
        shapes = [shape]
    else:
        shapes, attr = inputs_of(op)
    inputs = [(list(s), [number(op, dtype, op in ORDERED) for _ in range(cases.count(s))]) for s in shapes]
    kinds = {"f": has_kinds, "i": ["sum", "max", "min"], "b": []}[dtype[0]]
    case = {"op": op, "mesh": mesh,
            "in": [cases.tensor(s, dtype, d, placements=cases.placements(s, mesh, kinds)) for s, d in inputs]}
    if target:
        inputs.append(target)
        case["in"].append(cases.tensor(target[0], "i64", target[1], placements=cases.placements(target[0], mesh, [])))
    shape, *outs = cases.OPERATORS[op](inputs, attr)
    to = "bool" if op in ("all", "any") else "i64" if op[:3] == "arg" or (
        op in ("prod", "cumsum") and dtype[0] != "f") else dtype
    outs[0] = [{math.inf: "inf", -math.inf: "-inf"}.get(x, x) for x in outs[0]]
    case["out"] = [cases.tensor(shape, t, d) for t, d in zip([to, "i64"], outs)]
    is_finite = all(not isinstance(x, str) and math.isfinite(x) for x in outs[0])
    if to[0] == "f" and is_finite and op not in ORDERED:
        case["grad"] = [None if i is target else cases.tensor(i[0], dtype, cases.gradient(op, inputs, attr, k))
                        for k, i in enumerate(inputs)]
    tolerance = 1e-3 if op in ("layer_norm", "rms_norm", "prod", "var") and dtype == "f32" else 3e-5
    return case | {"attr": attr, "tol": [tolerance, tolerance]}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: random_reduce.py SEED COUNT")
    seed, n_cases = int(sys.argv[1]), int(sys.argv[2])
    random.seed(seed)
    for n in range(n_cases):
        op = random.choice(list(OPERATORS))
        print(json.dumps({"id": f"{op}/seed{seed}-{n}"} | operator_case(op, random.choice(cases.MESHES))))


if __name__ == "__main__":
    main()
