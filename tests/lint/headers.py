"""headers.py - file heads and public documentation: every source says in its first line what it is, every public function
that can fail has a comment with a sentence, and the sections of a comment keep the house's order."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["Shapes", "Placements", "Units", "Collective", "Cost", "Rounding", "Ownership", "Errors", "Gradient", "Since", "Source"]
SECTION = re.compile(r"^ \* (%s)\b" % "|".join(SECTIONS), re.M)
COMMENT = re.compile(r"/\*(?:.|\n)*?\*/")
WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [p for p in out.stdout.split() if (ROOT / p).exists()]


def head_complaints(path, text):
    # Public headers are named as users include them.
    shown = path.removeprefix("include/")
    if not text.startswith(f"/* {shown} - "):
        yield f'{path}: does not begin with "/* {shown} - ..."'
    head = COMMENT.match(text)
    if head and "SPDX-License-Identifier: Apache-2.0" not in head.group(0):
        yield f"{path}: no SPDX line in the first comment"
    for word in WORDS.findall(text):
        yield f"{path}: the word {word}"


def api_complaints(path, text):
    """Each MESH_API declaration stands under a comment, or in a block of declarations that does, or has one at its end."""
    previous_documented = False
    for block in re.split(r"\n\s*\n", text):
        for line in block.splitlines():
            if line.startswith(("/*", " *")) or "*/" in line:
                previous_documented = True
            elif line.startswith("MESH_API") and not previous_documented and "/*" not in line:
                yield f"{path}: undocumented: {line.strip()}"
        previous_documented = False


def order_complaints(path, text):
    for comment in COMMENT.findall(text):
        found = [SECTIONS.index(name) for name in SECTION.findall(comment)]
        if found != sorted(found):
            yield f"{path}: sections out of order: {', '.join(SECTIONS[i] for i in found)}"


def main():
    found, n_files = [], 0
    for path in tracked("*.c", "*.h", "*.def"):
        text = (ROOT / path).read_text()
        n_files += 1
        found += head_complaints(path, text)
        if path.startswith("include/mesh/"):
            found += api_complaints(path, text)
            found += order_complaints(path, text)
    for line in found:
        print(line)
    print(f"headers: {n_files} files, {len(found)} complaints", file=sys.stderr)
    return 1 if found or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
