#!/usr/bin/env python3
"""random_pointwise.py - prints random cases of the pointwise family, as random_cases.py does for the first operators.

    random_pointwise.py SEED COUNT > cases.jsonl

Inputs stay where a function has a slope: away from kinks, ties and the ends of domains.  Operators of two numbers also get
two dtypes, by the table of promotion.
SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_cases as cases  # noqa: E402

WIDTH = ["bool", "i32", "i64", "f32", "f64"]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softplus(x):
    return x if x > 20 else math.log1p(math.exp(x))


def triangle(is_lower):
    def op(inputs, attr):
        shape, data = inputs[0]
        keep = [(i[-1] - i[-2] <= attr["diagonal"]) if is_lower else (i[-1] - i[-2] >= attr["diagonal"])
                for i in cases.indices(shape)]
        return shape, [x if k else 0 for x, k in zip(data, keep)]
    return op


def where(inputs, attr):
    shape = cases.broadcast(cases.broadcast(inputs[0][0], inputs[1][0]), inputs[2][0])
    return shape, [cases.at(inputs[1 if cases.at(inputs[0], i) else 2], i) for i in cases.indices(shape)]


def masked_fill(inputs, attr):
    shape = cases.broadcast(inputs[0][0], inputs[1][0])
    return shape, [attr["value"] if cases.at(inputs[1], i) else cases.at(inputs[0], i) for i in cases.indices(shape)]


def lerp(inputs, attr):
    shape, w = cases.broadcast(inputs[0][0], inputs[1][0]), attr["weight"]
    return shape, [(1 - w) * cases.at(inputs[0], i) + w * cases.at(inputs[1], i) for i in cases.indices(shape)]


# name: function, where its inputs may be, whether it also has integers
OF_ONE = {
    "abs": (lambda x, a: abs(x), "off_zero", True), "ceil": (lambda x, a: math.ceil(x), "off_grid", True),
    "clamp": (lambda x, a: min(max(x, a["min"]), a["max"]), "quarters", False),
    "cos": (lambda x, a: math.cos(x), "any", False), "erf": (lambda x, a: math.erf(x), "any", False),
    "exp": (lambda x, a: math.exp(x), "any", False), "expm1": (lambda x, a: math.expm1(x), "any", False),
    "floor": (lambda x, a: math.floor(x), "off_grid", True),
    "leaky_relu": (lambda x, a: x if x > 0 else x * a["negative_slope"], "off_zero", False),
    "log": (lambda x, a: math.log(x), "positive", False), "log1p": (lambda x, a: math.log1p(x), "positive", False),
    "pow_scalar": (lambda x, a: x ** a["exponent"], "positive", False),
    "reciprocal": (lambda x, a: 1 / x, "off_zero", False), "round": (lambda x, a: round(x), "off_grid", True),
    "rsqrt": (lambda x, a: 1 / math.sqrt(x), "positive", False), "sigmoid": (lambda x, a: sigmoid(x), "any", False),
    "sign": (lambda x, a: (x > 0) - (x < 0), "off_zero", True), "silu": (lambda x, a: x * sigmoid(x), "any", False),
    "sin": (lambda x, a: math.sin(x), "any", False), "softplus": (lambda x, a: softplus(x), "any", False),
    "sqrt": (lambda x, a: math.sqrt(x), "positive", False), "square": (lambda x, a: x * x, "any", True),
    "neg": (lambda x, a: -x, "any", True),
}
OF_TWO = {
    "maximum": max, "minimum": min, "pow": lambda a, b: a ** b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b),
}
TRUTHS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isnan"}
OTHERS = {"where": where, "masked_fill": masked_fill, "lerp": lerp, "tril": triangle(True), "triu": triangle(False),
          "logical_not": cases.elementwise(lambda x, a: not x), "isnan": cases.elementwise(lambda x, a: x != x)}
cases.OPERATORS.update({n: cases.elementwise(f) for n, (f, _, _) in OF_ONE.items()})
cases.OPERATORS.update({n: cases.pairwise(f) for n, f in OF_TWO.items()})
cases.OPERATORS.update(OTHERS)
cases.CURVED.update(set(OF_ONE) | {"pow"})


def attributes(op):
    return {"clamp": {"min": -0.8, "max": 1.1}, "leaky_relu": {"negative_slope": 0.125},
            "pow_scalar": {"exponent": random.choice([3.0, 0.5, -1.0, 0.0])}, "lerp": {"weight": random.choice([0.25, 0.75])},
            "masked_fill": {"value": random.choice([0.0, -2.0])},
            "tril": {"diagonal": random.randint(-3, 3)}, "triu": {"diagonal": random.randint(-3, 3)}}.get(op, {})


def number(dtype, region, turn):
    """turn: 0 or 1, of the first or second input: floating numbers of the two never tie."""
    if dtype == "bool":
        return random.random() < 0.5
    if dtype[0] == "i":
        return random.randint(1, 4) if region == "positive" else random.randint(-3, 3)
    sign = random.choice([-1, 1])
    return {"positive": random.randint(2, 8) / 4, "off_zero": sign * random.randint(1, 8) / 4,
            "off_grid": sign * random.randint(0, 8) / 4 + 0.1,
            "quarters": random.randint(-8, 8) / 4 + turn / 8}.get(region, round(random.uniform(-2, 2), 6))


def dtypes_of(op):
    if op in ("where", "masked_fill"):
        of = [random.choice(WIDTH[1:]) for _ in range(2)]
        return ["bool"] + of if op == "where" else [of[0], "bool"]
    if op in ("logical_not", "isnan", "tril", "triu"):
        return [random.choice(WIDTH)]
    if op in OF_ONE:
        return [random.choice(["f32", "f64"] + ["i32", "i64"] * OF_ONE[op][2])]
    if op in ("lerp", "pow"):
        return [random.choice(["f32", "f64"]) for _ in range(2)]
    of = [random.choice(WIDTH) for _ in range(2)]
    return of if op in TRUTHS or set(of) != {"bool"} else ["f32", "bool"]


def out_dtype(op, dtypes):
    if op in TRUTHS:
        return "bool"
    counted = dtypes[1:] if op == "where" else dtypes[:1] if op == "masked_fill" else dtypes
    return max(counted, key=WIDTH.index)


def shapes_of(op, n):
    shape = cases.some_shape(2 if op in ("tril", "triu") else 0, 4)
    shapes = [cases.narrower(shape) if random.random() < 0.4 else shape for _ in range(n)]
    return shapes if n > 1 else [shape]


def operator_case(op, mesh):
    dtypes, attr = dtypes_of(op), attributes(op)
    region = OF_ONE[op][1] if op in OF_ONE else "positive" if op == "pow" else "quarters"
    inputs = [(s, [number(t, region, k % 2) for _ in range(cases.count(s))])
              for k, (s, t) in enumerate(zip(shapes_of(op, len(dtypes)), dtypes))]
    kinds = {"f": ["sum", "avg", "max", "min"], "i": ["sum", "max", "min"], "b": []}
    case = {"op": op, "mesh": mesh,
            "in": [cases.tensor(s, t, d, placements=cases.placements(s, mesh, kinds[t[0]]))
                   for (s, d), t in zip(inputs, dtypes)]}
    shape, data = cases.OPERATORS[op](inputs, attr)
    to = out_dtype(op, dtypes)
    case["out"] = [cases.tensor(shape, to, [bool(x) for x in data] if to == "bool" else data)]
    if to[0] == "f":
        case["grad"] = [cases.tensor(i[0], t, cases.gradient(op, inputs, attr, k)) if t[0] == "f" else None
                        for k, (i, t) in enumerate(zip(inputs, dtypes))]
    return case | ({"attr": attr} if attr else {}) | {"tol": [3e-5, 3e-5]}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: random_pointwise.py SEED COUNT")
    seed, n_cases = int(sys.argv[1]), int(sys.argv[2])
    random.seed(seed)
    names = list(OF_ONE) + list(OF_TWO) * 2 + list(OTHERS) * 3
    for n in range(n_cases):
        op = random.choice(names)
        print(json.dumps({"id": f"{op}/seed{seed}-{n}"} | operator_case(op, random.choice(cases.MESHES))))


if __name__ == "__main__":
    main()
