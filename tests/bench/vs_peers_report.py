"""vs_peers_report.py - the tables of vs_peers, from the raw rows of a run.

Of each contestant, collective, size and number of ranks there is one median per round.  A figure is the median over the
rounds; beside a ratio of two figures stands, in brackets, that of their best rounds, from which spells with the processors far
apart fall out.  A goal counts as missed when the ratio of best rounds misses it."""
import csv
import json
import statistics

import machine

FLOOR_LIMIT = 1.3
KIB, MIB = 1 << 10, 1 << 20


class Figures:
    """(peer, mode, op, ranks, size asked for) -> the medians of the rounds, in microseconds."""

    def __init__(self, folder):
        self.facts = json.loads((folder / "facts.json").read_text())
        self.medians, self.wrong, self.n_rows = {}, [], 0
        for path in sorted(folder.glob("coll-*.csv")):
            mode = path.name.split("-", 2)[2].rsplit("-", 2)[0]
            with open(path) as f:
                for row in csv.DictReader(f):
                    self.add(row, mode)
        canary = [line.split(",") for line in (folder / "canary.csv").read_text().splitlines()]
        self.n_runs, self.n_far = len(canary), sum(float(us) > machine.NEAR_US for _, us in canary)

    def add(self, row, mode):
        if row.get("check") != "ok":
            self.wrong.append(row)
            return
        ranks = int(row["ranks"])
        key = (row["peer"], mode, row["op"], ranks, self.asked(row["op"], ranks, int(row["bytes"])))
        self.medians.setdefault(key, []).append(float(row["median_us"]))
        self.n_rows += 1

    def asked(self, op, ranks, n_bytes):
        """Sizes are rounded up to an element for each rank."""
        return next((s for s in self.facts["sizes"] if s <= n_bytes < s + 4 * ranks), n_bytes) if op != "barrier" else 0

    def median(self, *key):
        return statistics.median(self.medians[key]) if key in self.medians else None

    def best(self, *key):
        return min(self.medians[key]) if key in self.medians else None

    def faster_mpi(self, pick, mode, point):
        return min((t for t in (pick("openmpi", mode, *point), pick("mpich", mode, *point)) if t), default=None)

    def points(self, ranks):
        for op in self.facts["ops"]:
            for size in [0] if op == "barrier" else self.facts["sizes"]:
                yield op, ranks, size

    def spreads(self):
        """How many times its best round the worst one is, of every figure of ours and of the others."""
        ours, others = [], []
        for key, rounds in self.medians.items():
            (ours if key[0] == "mesh" else others).append(max(rounds) / min(rounds))
        return sorted(ours), sorted(others)


def size_text(n):
    return "-" if n == 0 else f"{n} B" if n < KIB else f"{n // KIB} KiB" if n < MIB else f"{n // MIB} MiB"


def us_text(t):
    return "-" if t is None else f"{t:.2f}" if t < 10 else f"{t:.1f}" if t < 100 else f"{t:,.0f}"


def ratio(a, b):
    return a / b if a and b else None


def ratio_text(a, b):
    return "-" if a is None else f"{a:.2f} ({b:.2f})"


def compare(f, over, under):
    """The ratio of two figures by medians, and by best rounds; over and under take the picker of either."""
    return [ratio(over(pick), under(pick)) for pick in (f.median, f.best)]


def floor_ratio(f, point, link):
    floor = "tcp-reno" if link == "tcp" else "unix"
    return compare(f, lambda pick: pick("mesh", link, *point), lambda pick: pick("floor", floor, *point))


def mpi_ratio(f, point, mode="tcp"):
    return compare(f, lambda pick: f.faster_mpi(pick, mode, point), lambda pick: pick("mesh", "tcp", *point))


# Goals: which rows they speak of, the ratio (by medians, by best rounds), and what it must be.
def is_small_exchange(point):
    return point[1] == 8 and point[0] in ("all_gather", "reduce_scatter") and point[2] <= 16 * KIB


def is_large_reduction(point):
    return point[0] in ("all_reduce", "reduce_scatter") and point[2] in (16 * MIB, 64 * MIB)


GOALS = [
    ("over TCP faster than the faster MPI (MPI / ours above 1)", lambda p: True, mpi_ratio, lambda p, r: r > 1),
    ("over TCP within 1.3 times the floor (ours / floor)", lambda p: not is_small_exchange(p),
     lambda f, p: floor_ratio(f, p, "tcp"), lambda p, r: r <= FLOOR_LIMIT),
    ("small all_gather and reduce_scatter of 8 ranks over TCP: about 75 us (taken as up to 80)", is_small_exchange,
     lambda f, p: [f.median("mesh", "tcp", *p), f.best("mesh", "tcp", *p)], lambda p, us: us <= 80),
    ("all_reduce and reduce_scatter over TCP: of 64 MiB twice, of 16 MiB 1.5 times as fast as the faster MPI (MPI / ours)",
     is_large_reduction, mpi_ratio, lambda p, r: r >= (2 if p[2] == 64 * MIB else 1.5)),
    ("over unix sockets within 1.3 times the unix floor (ours / floor)", lambda p: True,
     lambda f, p: floor_ratio(f, p, "unix"), lambda p, r: r <= FLOOR_LIMIT),
]


def goal_lines(f):
    for text, is_meant, measure, is_met in GOALS:
        rows = [(p, measure(f, p)) for n in f.facts["ranks"] for p in f.points(n) if is_meant(p)]
        rows = [(p, m) for p, m in rows if m[0] is not None]
        if not rows:
            continue
        missed = [(p, m) for p, m in rows if not is_met(p, m[1])]
        by_median = sum(is_met(p, m[0]) for p, m in rows)
        yield f"- {text}: {len(rows) - len(missed)} of {len(rows)} rows by best rounds, {by_median} by medians."
        if missed:
            yield "  Missed: " + "; ".join(f"{p[1]} ranks {p[0]} {size_text(p[2])} {ratio_text(*m)}" for p, m in missed) + "."


def table_lines(f, ranks):
    yield f"#### {ranks} ranks"
    yield ""
    yield ("| collective | size | tcp us | floor us | ours / floor | Open MPI us | MPICH us | MPI / ours | MPI with reno / ours "
           "| unix us | floor us | ours / floor |")
    yield "|---|---|" + "---:|" * 10
    for point in f.points(ranks):
        op, _, size = point
        us = [us_text(f.median(peer, mode, *point)) for peer, mode in
              (("mesh", "tcp"), ("floor", "tcp-reno"), ("openmpi", "tcp"), ("mpich", "tcp"), ("mesh", "unix"), ("floor", "unix"))]
        yield (f"| {op} | {size_text(size)} | {us[0]} | {us[1]} | {ratio_text(*floor_ratio(f, point, 'tcp'))} | {us[2]} | {us[3]} "
               f"| {ratio_text(*mpi_ratio(f, point))} | {ratio_text(*mpi_ratio(f, point, 'tcp-sysreno'))} "
               f"| {us[4]} | {us[5]} | {ratio_text(*floor_ratio(f, point, 'unix'))} |")
    yield ""


def spread_text(spreads):
    return f"{spreads[len(spreads) // 2]:.2f} in the middle, {spreads[len(spreads) * 9 // 10]:.2f} in nine of ten, {spreads[-1]:.2f} at worst"


def head_lines(f):
    facts = f.facts
    ours, others = f.spreads()
    yield from machine.facts_lines(facts["command"], facts, facts["versions"])
    yield (f"{facts['rounds']} round{'s' if facts['rounds'] > 1 else ''}, contestants in turn within each; {f.n_runs} runs, {f.n_far} of them with the processors far apart; "
           f"{facts['reps']} batches of about {facts['batch_ms']:g} ms a point.")
    if ours and others:
        yield f"Spread (worst round / best round): ours {spread_text(ours)}; the others' {spread_text(others)}."
    yield ("Times are microseconds a call, medians over the rounds; in brackets the ratio of the best rounds. floor: the same collectives "
           "over bare sockets (reno on TCP). MPI: the faster of Open MPI and MPICH over TCP; above two ranks only Open MPI, as MPICH "
           "cannot give way on a crowded processor. gloo: not run, it has no Debian package.")
    if f.wrong:
        yield f"**{len(f.wrong)} rows gave wrong results and are left out.**"
    if not any(key[1] == "tcp-sysreno" for key in f.medians):
        yield "Peers with reno as the system's default: not run."


def section(folder):
    f = Figures(folder)
    lines = [*head_lines(f), "", "Goals:", "", *goal_lines(f), ""]
    for ranks in f.facts["ranks"]:
        lines += table_lines(f, ranks)
    return "\n".join(lines).rstrip() + "\n"
