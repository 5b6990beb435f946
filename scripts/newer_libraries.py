#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""newer_libraries.py BUILD ROOT [LIBRARY...]: compiles what includes a library with the headers below ROOT/usr/include first, without
making code; newer_libraries.sh calls it. Exits with 1 where a file does not compile."""
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Which files see a library, by their paths; where its headers lie below usr/include, and which folder they replace.
LIBRARIES = {
    "SimGrid": (["sim/network/", "sim/modes/", "cli/absent.cpp"], ["."], None),
    "oneDNN": (["kernels/onednn/", "kernels/backends.cpp"], ["."], None),
    "Qt": (["gui/"], ["x86_64-linux-gnu/qt6"], "qt6"),
    "Open MPI": (["kernels/comm/", "run/", "bench/", "cli/"], ["../lib/x86_64-linux-gnu/openmpi/include", "."], "openmpi"),
    "MPICH": (["kernels/comm/", "run/", "bench/", "cli/"], ["x86_64-linux-gnu/mpich"], "openmpi"),
}


def command_of(entry, folders, replaced):
    """The command without output and precompiled headers, `folders` searched first, `replaced` no longer."""
    words, result, i = shlex.split(entry["command"]), [], 0
    while i < len(words):
        word = words[i]
        if word in ("-o", "-MF", "-MT", "-include"):
            i += 1
        elif replaced and word == "-isystem" and replaced in words[i + 1]:
            if replaced == "qt6":  # modules have folders of their own below the same root
                result += ["-isystem", words[i + 1].replace("/usr/include/x86_64-linux-gnu/qt6", str(folders[0]))]
            i += 1
        elif not (word in ("-c", "-MD", "-Werror") or word.endswith("ccache") or replaced and word.startswith("-I") and replaced in word):
            result.append(word)
        i += 1
    before = [part for folder in folders for part in ("-isystem", str(folder))] if replaced != "qt6" else []
    return [result[0], *before, *result[1:], "-fsyntax-only"]


def main():
    build, usr = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "usr" / "include"
    entries = json.loads((build / "compile_commands.json").read_text())
    bad = 0
    asked = set(sys.argv[3:]) or LIBRARIES.keys()
    for library, (prefixes, folders, replaced) in LIBRARIES.items():
        if library not in asked:
            continue
        chosen = [e for e in entries if any(str(pathlib.Path(e["file"])).startswith(f"{ROOT}/{p}") for p in prefixes)]
        if replaced == "openmpi":  # four headers of ours include MPI's
            chosen = [e for e in chosen if re.search(r'comm/(mpi|communicator_impl|segments|rings)\.hpp"', pathlib.Path(e["file"]).read_text())]
        failed = 0
        for entry in chosen:
            command = command_of(entry, [usr / folder for folder in folders], replaced)
            done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                failed += 1
                print(f"{library}: {entry['file']}\n{done.stderr[:2000]}", flush=True)
        print(f"{library}: {len(chosen)} files, {failed} do not compile", flush=True)
        bad += failed + (not chosen)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
