"""machine.py - what the scripts of this folder share: running programs within a limit, naming the machine, marks in RESULTS.md."""
import os
import pathlib
import platform
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONGESTION = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
NEAR_US = 0.2  # a canary above this: the processors are far apart


def run_words(words, environment, limit_s):
    """Runs a program to its end, or ends it and all it started: after limit_s, or when we are interrupted."""
    words = [str(w) for w in words]
    process = subprocess.Popen(words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException as e:
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        if not isinstance(e, subprocess.TimeoutExpired):
            raise
        err += f"\nnot over after {limit_s} s"
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def first_line(*words, environment=None):
    try:
        return " ".join((run_words(words, environment or {}, 20).stdout.splitlines() or [""])[0].split())
    except OSError:
        return ""


def processor_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def canary(build):
    return float(run_words([build / "tests/bench/canary"], {}, 10).stdout.strip() or 0)


def facts():
    return {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "machine": f"{os.cpu_count()} x {processor_name()}",
            "kernel": platform.release(), "congestion": CONGESTION.read_text().strip(),
            "commit": first_line("git", "-C", ROOT, "describe", "--always", "--dirty")}


def facts_lines(command, f, versions=()):
    """Two lines of markdown."""
    yield f"`{command}`, release build of {f['commit'] or 'this tree'}, {f['date']}."
    yield ", ".join([f"Machine: {f['machine']}", f"Linux {f['kernel']}", f"congestion control {f['congestion']}", *versions]) + "."


def put_into(path, name, text):
    """Replaces what stands between the marks of that name in a file."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = path.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{path} has no lines '{begin}' and '{end}'")
    path.write_text(f"{before}{begin}\n\n{text.rstrip()}\n\n{end}{after}")
