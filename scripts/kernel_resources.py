#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what nvcc makes of the GPU's kernels to a recorded table, without a GPU.

kernel_resources.py [--architectures 90a] [--files FILE,...] [--record] [--nvcc NVCC]

Compiles each kernels/cuda/launch_*.cu for each architecture and reads, of each kernel, registers, shared memory, stack and
spills (`ptxas -v`), threads (`.maxntid`) and 16-byte accesses of memory. The latter are counted in PTX, which ptxas takes
over one to one: a vector access of PTX needs the alignment of the whole and becomes one instruction. Where cuobjdump is
there, the same is counted in the machine code. Warps that a multiprocessor holds follow from the limits that the CUDA C++
Programming Guide tables by compute capability.

Exit code 1 where a kernel spills, or has local memory, beyond what is recorded (--record names what it records of that),
where fewer warps fit than recorded, where 16-byte accesses went missing, or where kernels and table are not the same ones;
77 where there is no nvcc.
"""
import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
table_path = root / "tests/data/kernel_resources.csv"
columns = ["architecture", "file", "kernel", "threads", "registers", "shared", "stack", "spills", "warps", "loads16",
           "stores16", "copies16"]
# CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability": warps, blocks, registers and bytes of
# shared memory of a multiprocessor. Of those bytes the system keeps 1024 a block from 8.0 on ("Shared Memory" of each).
limits = {"75": (32, 16, 65536, 64 << 10, 0), "80": (64, 32, 65536, 164 << 10, 1024),
          "90": (64, 32, 65536, 228 << 10, 1024), "100": (64, 32, 65536, 228 << 10, 1024)}


def up(value, unit):
    return -(-value // unit) * unit


def resident_warps(architecture, threads, registers, shared):
    """Warps of such blocks that fit a multiprocessor; registers come in units of 256 a warp, warps by four."""
    most_warps, most_blocks, all_registers, all_shared, kept = limits[architecture.rstrip("a")]
    warps = up(threads, 32) // 32
    by_registers = all_registers // (up(registers * 32, 256) * up(warps, 4))
    taken = up(shared, 256 if architecture == "75" else 128) + kept
    by_shared = all_shared // taken if taken else most_blocks
    return min(most_blocks, most_warps // warps, by_registers, by_shared) * warps


def demangled(names):
    made = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, made.splitlines()))


def short(name):
    """run_task<...>'s task; of run_large_task also the bytes of shared memory that it is started with."""
    name = re.sub(r"rehearse::(kernels::cuda::)?", "", name)
    task = re.match(r"void run_(?:large_)?task<(.*)>\(", name)
    if not task:
        return name, 0
    name, dynamic = task[1], 0
    if sized := re.match(r"(.*), (\d+)$", name):
        if "run_large_task" in sized[0] or name.startswith(("Packed", "Flash")):
            name, dynamic = sized[1], int(sized[2])
    return name.replace(" ", ""), dynamic


def bodies(ptx):
    """PTX of each entry by its name."""
    parts = re.split(r"\.entry (\w+)\(", ptx)
    return dict(zip(parts[1::2], parts[2::2]))


wide = {"loads16": r"\bld(?:\.global)?(?:\.nc)?\.(?:v4\.[bfus]32|v2\.[bfus]64)",
        "stores16": r"\bst(?:\.global)?\.(?:v4\.[bfus]32|v2\.[bfus]64)",
        "copies16": r"\bcp\.async\.c[ag]\.shared\.global[^;]*, 16\b|\bcp\.async\.bulk"}
machine = {"loads16": r"\bLDG?\.E\S*\.128", "stores16": r"\bSTG?\.E\S*\.128", "copies16": r"\bLDGSTS\S*\.128|\bUBLKCP|\bUTMALDG"}


def machine_code(cubin):
    """SASS of each kernel by its name; nothing without cuobjdump."""
    if not shutil.which("cuobjdump"):
        return {}
    text = subprocess.run(["cuobjdump", "-sass", cubin], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"Function : (\w+)", text)
    return dict(zip(parts[1::2], parts[2::2]))


def rows_of(nvcc, source, architecture, folder):
    cubin = folder / f"{source.stem}.{architecture}.cubin"
    command = [nvcc, "-std=c++20", "-O3", "-DNDEBUG", f"-I{root}", "--expt-relaxed-constexpr", "-cubin", f"-arch=sm_{architecture}",
               "-Xptxas", "-v", "--keep", "--keep-dir", str(folder), "-o", str(cubin), str(source)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"{source.relative_to(root)} for sm_{architecture}: {made.stderr[-2000:]}")
    ptx = bodies((folder / f"{source.stem}.ptx").read_text())
    sass = machine_code(cubin)
    found = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                       r".*?Used (\d+) registers([^\n]*)", made.stderr, re.S)
    names = demangled([entry[0] for entry in found])
    for mangled, stack, stores, loads, registers, rest in found:
        kernel, dynamic = short(names[mangled])
        static = re.search(r"(\d+) bytes smem", rest)
        shared = (int(static[1]) if static else 0) + dynamic
        threads = int(re.search(r"\.maxntid (\d+)", ptx[mangled])[1])
        row = {"architecture": architecture, "file": source.name, "kernel": kernel, "threads": threads, "registers": int(registers),
               "shared": shared, "stack": int(stack), "spills": int(stores) + int(loads),
               "warps": resident_warps(architecture, threads, int(registers), shared)}
        for column, pattern in wide.items():
            row[column] = len(re.findall(pattern, ptx[mangled]))
            if sass and len(re.findall(machine[column], sass[mangled])) < row[column]:
                sys.exit(f"sm_{architecture} {kernel}: {column} of its PTX are not in its machine code")
        yield row


def key(row):
    return row["architecture"], row["file"], row["kernel"]


def complaints(row, held):
    where = f"sm_{row['architecture']} {row['file']} {row['kernel']}"
    for column, what in (("stack", "bytes of local memory"), ("spills", "bytes spilled")):
        if row[column] > int(held[column] if held else 0):
            yield f"{where}: {row[column]} {what}, held to {held[column] if held else 0}"
    if held is None:
        yield f"{where}: not in the table: --record adds it"
        return
    if row["warps"] < int(held["warps"]):
        yield (f"{where}: {row['warps']} warps fit a multiprocessor, recorded {held['warps']} (registers {held['registers']} to "
               f"{row['registers']}, shared memory {held['shared']} to {row['shared']} B)")
    for column in wide:
        if row[column] < int(held[column]):
            yield f"{where}: {row[column]} {column}, recorded {held[column]}"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--architectures", default="90a", help="75, 80, 90a, 100; the table has those that were recorded")
    options.add_argument("--files", default="", help="names of sources, launch_points.cu; all without")
    options.add_argument("--record", action="store_true", help="writes the rows found into the table")
    options.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    asked = options.parse_args()
    if not shutil.which(asked.nvcc):
        print("skipped: no nvcc")
        return 77
    architectures = asked.architectures.split(",")
    for architecture in architectures:
        if architecture.rstrip("a") not in limits:
            options.error(f"--architectures {architecture}: known are 75, 80, 90a and 100")
    sources = sorted((root / "kernels/cuda").glob("launch_*.cu"))
    if asked.files:
        wanted = asked.files.split(",")
        if unknown := set(wanted) - {source.name for source in sources}:
            options.error(f"--files {','.join(sorted(unknown))}: not in kernels/cuda")
        sources = [source for source in sources if source.name in wanted]
    rows = []
    for source in sources:
        for architecture in architectures:
            with tempfile.TemporaryDirectory() as folder:
                rows += rows_of(asked.nvcc, source, architecture, pathlib.Path(folder))
    held = {}
    if table_path.exists():
        with table_path.open() as table:
            held = {key(row): row for row in csv.DictReader(table)}
    looked_at = {source.name for source in sources}
    gone = [k for k in held if k[0] in architectures and k[1] in looked_at and k not in {key(row) for row in rows}]
    if asked.record:
        for row in rows:
            if row["stack"] + row["spills"] > 0:
                print(f"recorded: sm_{row['architecture']} {row['kernel']}: {row['stack']} bytes of local memory, {row['spills']} spilled")
        for k in gone:
            del held[k]
        held.update({key(row): row for row in rows})
        with table_path.open("w", newline="") as table:
            writer = csv.DictWriter(table, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(held[k] for k in sorted(held, key=lambda k: (k[1], k[2], int(k[0].rstrip("a")))))
    wrong = [text for row in rows for text in complaints(row, held.get(key(row)))]
    if not asked.record:
        wrong += [f"sm_{k[0]} {k[1]} {k[2]}: in the table, not compiled: --record removes it" for k in gone]
    print("\n".join(wrong) if wrong else f"{len(rows)} kernels are as recorded or better")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
