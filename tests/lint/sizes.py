"""sizes.py - holds the budgets: functions up to 70 lines (tables and step switches in sizes.txt up to 120), files up to 600
lines, six parameters; and prints the median and the ninth decile of function lengths."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_FUNCTION, MAX_TABLE, MAX_FILE, MAX_PARAMETERS = 70, 120, 600, 6


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [p for p in out.stdout.split() if (ROOT / p).exists()]


def functions(files):
    """(name, file, lines, parameters) of each function."""
    out = subprocess.run(["ctags", "-x", "--c-kinds=f", "--_xformat=%N\t%F\t%n\t%{end}\t%S", "-L", "-"], cwd=ROOT,
                         input="\n".join(files), capture_output=True, text=True, check=True)
    for line in out.stdout.splitlines():
        name, path, begin, end, signature = (line.split("\t") + [""])[:5]
        if end.isdigit():
            inside = signature.strip("()")
            n_parameters = 0 if inside in ("", "void") else top_level_commas(inside) + 1
            yield name, path, int(end) - int(begin) + 1, n_parameters


def top_level_commas(text):
    depth = commas = 0
    for letter in text:
        depth += letter in "(["
        depth -= letter in ")]"
        commas += letter == "," and depth == 0
    return commas


def is_public(path, name):
    return name.startswith("mesh_")


def main():
    exceptions = {tuple(l.split()) for l in (ROOT / "tests/lint/sizes.txt").read_text().splitlines() if l and l[0] != "#"}
    found, lengths = [], []
    for name, path, n_lines, n_parameters in functions(tracked("*.c")):
        if not path.startswith("tests/"):
            lengths.append(n_lines)
        limit = MAX_TABLE if (name, path) in exceptions else MAX_FUNCTION
        if n_lines > limit:
            found.append(f"{path}: {name} has {n_lines} lines; {limit} are allowed")
        # Public signatures are fixed by the interface; callbacks by their type.
        if n_parameters > MAX_PARAMETERS and not is_public(path, name) and (name, path) not in exceptions:
            found.append(f"{path}: {name} takes {n_parameters} parameters; {MAX_PARAMETERS} are allowed")
    for path in tracked("*.c", "*.h", "*.py", "*.def"):
        n_lines = len((ROOT / path).read_text().splitlines())
        if n_lines > MAX_FILE:
            found.append(f"{path}: {n_lines} lines; {MAX_FILE} are allowed")
    for line in found:
        print(line)
    lengths.sort()
    if lengths:
        print(f"sizes: {len(lengths)} functions, median {lengths[len(lengths) // 2]}, nine in ten up to "
              f"{lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}; {len(found)} complaints", file=sys.stderr)
    return 1 if found or not lengths else 0


if __name__ == "__main__":
    sys.exit(main())
