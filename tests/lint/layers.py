"""layers.py - checks every #include of the product against tests/lint/layers.txt, and that libuv stays inside proto/wire."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = {"base": "proto/base", "wire": "proto/wire", "daemon": "daemon", "ctl": "client/ctl"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
# Third-party headers that only one layer may know.
PRIVATE = {"uv.h": "wire", "protobuf-c/protobuf-c.h": "wire", "cblas.h": "tensor"}


def rules():
    table = {}
    for line in (ROOT / "tests/lint/layers.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            layer, allowed = line.split(":")
            table[layer.strip()] = set(allowed.split())
    return table


def complaints(layer, path, allowed, layers):
    for style, name in INCLUDE.findall(path.read_text()):
        owner = PRIVATE.get(name)
        if owner and owner != layer:
            yield f"{path}: <{name}> belongs inside {owner}"
        if style != '"':
            continue
        used = name.split("/")[0]
        if used == "mesh":  # generated from proto/mesh
            used = "wire"
        if "/" not in name:
            yield f'{path}: "{name}" does not name its layer'
        elif used in layers and used != layer and used not in allowed:
            yield f"{path}: {layer} may not include {name}"
        elif used not in layers:
            yield f"{path}: {name} is of no known layer"


def main():
    table, found, n_files = rules(), [], 0
    for layer, allowed in table.items():
        folder = ROOT / FOLDERS.get(layer, f"client/{layer}")
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".c", ".h", ".def"):
                n_files += 1
                found += complaints(layer, path, allowed, table)
    for path in sorted((ROOT / "include/mesh").glob("*.h")):
        found += [f"{path}: {n} is not a public header" for s, n in INCLUDE.findall(path.read_text()) if s == '"' and "/" in n]
    for line in found:
        print(str(line).replace(f"{ROOT}/", ""))
    print(f"layers: {n_files} files, {len(found)} complaints", file=sys.stderr)
    return 1 if found or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
