"""check_list.py - holds list.txt: every case with a closed form is a test that carries its id, and every test named there exists.

    section C: 21 cases
    55   v143     CF  case_v143_a_reshape_moves_what_a_view_may_not
    30   hstr     CF  - a global shape has no strides here
"""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
BEGINS = re.compile(r"^(?:CASE|EVERYWHERE|START_TEST)\((case_\w+)", re.MULTILINE)


def tests_that_run():
    """Names of tests of cases, which their file also hands to a suite."""
    found = set()
    for path in TESTS.rglob("*.c"):
        text = path.read_text()
        found |= {name for name in BEGINS.findall(text) if len(re.findall(rf"\b{name}\b", text)) > 1}
    return found


def read(path):
    """(sections as (letter, announced, rows), where a row is (number, id, has a closed form, the rest))."""
    sections = []
    for line in path.read_text().splitlines():
        head = re.fullmatch(r"section (\w): (\d+) cases", line)
        if head:
            sections.append((head[1], int(head[2]), []))
        elif line and line[0] != "#":
            number, name, mark, rest = line.split(None, 3) if len(line.split(None, 3)) == 4 else (*line.split(), "")
            sections[-1][2].append((int(number), name, mark == "CF", rest))
    return sections


def complaints_about(row, tests):
    number, name, has_closed_form, rest = row
    if rest.startswith("-"):
        return [] if len(rest.split()) > 3 else [f"case {number} {name}: no test, and no reason why"]
    named = rest.split()
    found = [f"case {number} {name}: no test {t} is run" for t in named if t not in tests]
    found += [f"case {number} {name}: {t} does not carry its id" for t in named if f"_{name}_" not in t]
    if has_closed_form and not named:
        found.append(f"case {number} {name} has a closed form and no test")
    return found


def main():
    tests, sections = tests_that_run(), read(TESTS / "cases/list.txt")
    rows = [row for _, _, part in sections for row in part]
    found = [f"section {letter}: {len(part)} cases, not {n}" for letter, n, part in sections if len(part) != n]
    found += [c for row in rows for c in complaints_about(row, tests)]
    found += [f"{t} stands in no row of the list" for t in sorted(tests - {t for row in rows for t in row[3].split()})]
    numbers = [row[0] for row in rows]
    if numbers != sorted(set(numbers)) or [s[0] for s in sections] != list("ABCDEFGHI"):
        found.append("numbers or sections are not in order")
    for line in found:
        print(line)
    print(f"{len(rows)} passed, {len(found)} failed")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
