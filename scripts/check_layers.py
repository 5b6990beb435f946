#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the house to its layers: which folder may include which, and which folder owns which library.

A file may reach a library only if its folder owns it, through whatever headers: so a vendor type never leaves home.
Prints file:line: what for every violation and exits with 1 when there is one.
"""
import argparse
import pathlib
import re
import sys

VERBS = {"models", "prices", "schedule", "kernels", "calibrate", "sim", "run", "trace"}
MAY_INCLUDE = {  # besides the folder itself
    "core": set(),
    **{verb: {"core"} for verb in VERBS},
    "models": {"core", "prices"},
    "schedule": {"core", "models", "prices"},
    "calibrate": {"core", "match", "prices"},
    "sim": {"core", "prices"},
    "run": {"core", "kernels"},
    "bench": {"core", "kernels", "calibrate"},  # it fills calibrate's Samples
    "store": {"core"},
    "match": {"core"},
    "kernels": {"core", "store"},
    "predict": {"core", "prices", "models", "schedule", "sim"},
    "search": {"core", "prices", "schedule", "sim", "predict", "store"},
    "cluster": {"core", "models", "schedule", "sim", "predict"},
    "picture": {"core"},
    "study": {"core"},
    "validate": {"core", "match", "prices", "models", "schedule", "sim", "predict", "cluster"},
    "report": {"core", "prices", "predict", "models", "picture"},
    "cli": {"core", "bench", "cluster", "match", "picture", "predict", "report", "search", "study", "validate"} | VERBS,
    "python": {"core", "picture", "predict", "search", "validate", "models", "schedule", "sim", "trace"},
    "fuzz": {"core", "calibrate", "cluster", "match", "models", "run", "schedule", "search", "trace", "validate"},
    "gui": {"core", "picture", "predict", "report"} | VERBS - {"kernels", "run"},
}
OWNERS = {  # library: (how its headers begin, who may reach them)
    "SimGrid": (r"simgrid/|xbt/|smpi/", {"sim"}),
    "MPI": (r"mpi\.h", {"run", "kernels"}),
    "Qt": (r"Q[A-Z]|Qt", {"gui"}),
    "oneDNN": (r"oneapi/|dnnl", {"kernels"}),
    "CUDA": (r"cuda|cublas|cudnn|cufft|nccl|nvml", {"kernels"}),
    "Highway": (r"hwy/", {"kernels", "bench"}),
    "SQLite": (r"sqlite3\.h", {"store"}),
    "RE2": (r"re2/", {"match"}),
    "HDF5": (r"hdf5\.h|H5", {"run", "fuzz"}),
    "cairo": (r"cairo", {"picture"}),
    "toml++": (r"toml\+\+|toml\.hpp", {"models", "validate"}),
    "ONNX": (r"onnx/", {"models"}),
    "protobuf": (r"google/protobuf/|.*\.pb\.h", {"models", "trace"}),
    "pybind11": (r"pybind11/|Python\.h", {"python"}),
    "zlib": (r"zlib\.h", {"trace"}),
    "hwloc": (r"hwloc", {"models"}),
    "pugixml": (r"pugixml", {"models"}),
    "CLI11": (r"CLI/", {"cli"}),
    "Google Benchmark": (r"benchmark/", {"bench"}),
}
NOT_BUILT_BY_US = {"tests/sim/smpi_allreduce.cpp"}  # smpicxx compiles it, with SMPI's own mpi.h
ONLY_FMT = {"core", "prices", "schedule"}  # nothing but std, POSIX and {fmt}
POSIX_OR_FMT = re.compile(r"[^/.]*$|fmt/|(unistd|fcntl)\.h$|sys/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def includes(path):
    """(line number, whether quoted, included name) of each include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def library_of(name):
    return next((lib for lib, (pattern, _) in OWNERS.items() if re.match(pattern, name)), None)


def reached(header, root):
    """Libraries that a header brings with it, directly or through other headers of the house."""
    libraries, seen, todo = set(), set(), [header]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for _, quoted, name in includes(path):
            if library := library_of(name):
                libraries.add(library)
            elif quoted:
                todo.append(root / name)
    return libraries


def violations(root):
    for path in sorted(p for f in [*MAY_INCLUDE, "tests"] for p in (root / f).rglob("*")):
        if path.suffix not in {".hpp", ".cpp", ".h", ".cu", ".cuh"}:
            continue
        if path.relative_to(root).as_posix() in NOT_BUILT_BY_US:
            continue
        parts = path.relative_to(root).parts
        is_test = parts[0] == "tests"  # a test includes what it likes of the house, and the libraries of its folder
        folder = parts[1] if is_test else parts[0]
        for number, quoted, name in includes(path):
            def found(what, at=f"{'/'.join(parts)}:{number}"):
                return f"{at}: {what}"
            target = name.split("/")[0]
            libraries = {library_of(name)} - {None}
            if quoted and not libraries:
                if name.startswith(".") or ("/" not in name and not is_test):
                    yield found(f'"{name}": name the folder, as in "core/op.hpp"')
                elif target in MAY_INCLUDE and not is_test and target != folder and target not in MAY_INCLUDE[folder]:
                    yield found(f"{folder}/ may not include {target}/ ({name})")
                libraries = reached(root / name, root)
            elif not quoted and folder in ONLY_FMT and not is_test and not POSIX_OR_FMT.match(name):
                yield found(f"{folder}/ includes only std and fmt ({name})")
                continue
            for library in sorted(libraries):
                if folder not in OWNERS[library][1]:
                    yield found(f"{library} belongs to {', '.join(sorted(OWNERS[library][1]))}/ ({name})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    if not (root / "core").is_dir():
        sys.exit(f"{root}: no core/ here; give --root the top of the source tree")
    found = list(violations(root))
    print("\n".join(found) if found else "layers: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
