#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes each call that a command makes to the system fail, one at a time, and looks at how the command ends.

check_faults.py BINARY FAULTS.so [--every N] [--only predict,compare,...] [--functions open,write,...]

FAULTS.so is faults.cpp. Every command runs once to count its calls of each function, then once a call with that call
failing (of N calls one, drawn by a fixed seed). It must end by itself, with
- exit code 0 and the whole result, where it can do without that call,
- else 2 or 3, and a message on stderr that is no confession of a bug (5);
and whatever it was to write is then there as it was before, or whole; no file is left beside it.
"""
import argparse
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ERRORS = {"open": errno.EMFILE, "read": errno.EIO, "write": errno.ENOSPC, "fsync": errno.EIO, "rename": errno.EACCES,
          "mmap": errno.ENOMEM, "fork": errno.EAGAIN, "malloc": errno.ENOMEM}
SEED = 3
BEFORE = "what was there before\n"
LIMIT_S = 120
TIMES = re.compile(rb'"(simulation_wall_s|seconds_of_search)": [0-9.e-]+')  # not the same twice


class Command:
    """A command, the files that it writes, and those of them that are not the same from run to run."""

    def __init__(self, words, outputs=(), varies=()):
        self.words, self.outputs, self.varies = words.split(), list(outputs), set(varies)


def commands(root):
    onnx = root / "tests/data/onnx/attention_grouped.onnx"
    job = "--model alexnet --machine summit"
    return [
        Command(f"predict {job} --devices 1,6 --batch 32 --format json --output p.json --trace t.json",
                ["p.json", "t.json"]),
        Command(f"predict {job} --devices 2 --batch 32 --trace t.pftrace", ["t.pftrace"]),
        Command(f"schedule {job} --devices 2 --plan pipe=2:microbatches=4 --batch 8 --draw d.svg", ["d.svg"]),
        Command(f"search {job} --devices 4 --batch 8 --top 1 --store s.sqlite --format csv --output r.csv --script j.sh",
                ["r.csv", "j.sh"], ["s.sqlite"]),
        Command("compare given/a.json given/b.json --format json --output c.json", ["c.json"]),
        Command("export given/a.json --to perfetto e.pftrace", ["e.pftrace"]),
        Command(f"models {onnx} --format json --output m.json", ["m.json"]),
        Command("machines summit --format json --output m.json", ["m.json"]),
        Command("bench nccl-table --machine perlmutter --nodes 2 --format csv --output n.csv", ["n.csv"]),
        Command("validate --set nccl --format csv --output v.csv", ["v.csv"]),
        Command(f"calibrate --trace {root}/tests/data/profiles/mlp.json.gz --model mlp --batch 16 --machine cori-haswell "
                "--machine-out k.toml", ["k.toml"]),
        Command("run --model lenet5 --batch 2 --steps 2 --checkpoint C --save w.h5 --trace t.csv",
                ["w.h5"], ["t.csv", "C"]),
        Command("report given/request.toml --output R", [], ["R"]),
        Command("completion bash --output c.bash", ["c.bash"]),
    ]


def contents(folder):
    """The files of a folder, with what is in them."""
    return {str(path.relative_to(folder)): TIMES.sub(b"", path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


class Checker:
    def __init__(self, binary, faults, root):
        self.binary, self.faults, self.root = binary, faults, root
        self.runs = self.tolerated = 0
        self.findings = []

    def run(self, command, folder, environment):
        for name in command.outputs:
            (folder / name).write_text(BEFORE, encoding="utf-8")
        os.symlink(self.given, folder / "given")
        home = folder / "home"
        home.mkdir()
        env = {**os.environ, "REHEARSE_HOME": str(home), "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment}
        force = ["--force"]
        return subprocess.run([self.binary, *command.words, *force], cwd=folder, env=env, capture_output=True,
                              timeout=LIMIT_S, check=False)

    def prepare(self, folder):
        """What commands read: two timelines and a request."""
        self.given = folder
        for name in ("a.json", "b.json"):
            subprocess.run([self.binary, "predict", "--model", "alexnet", "--machine", "summit", "--devices", "2",
                            "--batch", "32", "--trace", folder / name, "-q"],
                           check=True, capture_output=True)
        request = (self.root / "docs/requests/resnet50-summit.toml").read_text(encoding="utf-8")
        (folder / "request.toml").write_text(request, encoding="utf-8")

    def count(self, command, function):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            counts = folder / "home.count"
            done = self.run(command, folder, {"LD_PRELOAD": self.faults, "REHEARSE_FAULT": function,
                                              "REHEARSE_FAULT_AT": "0", "REHEARSE_FAULT_COUNT": str(counts)})
            if done.returncode != 0:
                sys.exit(f"{' '.join(command.words)} fails in peace, exit {done.returncode}:\n{done.stderr.decode()}")
            counted = max((int(line) for line in counts.read_text().split()), default=0) if counts.exists() else 0
            counts.unlink(missing_ok=True)
            return counted, contents(folder)

    def found(self, command, function, at, what):
        self.findings.append(f"{function} {at} of: rehearse {' '.join(command.words)}\n    {what}")
        print(self.findings[-1], flush=True)

    def check(self, command, function, at, error, whole, lasts=False):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = {"LD_PRELOAD": self.faults, "REHEARSE_FAULT": function, "REHEARSE_FAULT_AT": str(at),
                           "REHEARSE_FAULT_ERRNO": str(error), "REHEARSE_FAULT_LASTS": "1" if lasts else ""}
            self.runs += 1
            try:
                done = self.run(command, folder, environment)
            except subprocess.TimeoutExpired:
                self.found(command, function, at, f"still running after {LIMIT_S} s")
                return
            said = done.stderr.decode(errors="replace").strip()
            if done.returncode not in (0, 2, 3):
                self.found(command, function, at, f"exit {done.returncode}: {said[-300:]}")
            elif done.returncode and not said:
                self.found(command, function, at, f"exit {done.returncode} without a word")
            self.tolerated += done.returncode == 0
            now = contents(folder)
            for path in command.outputs:
                allowed = [whole[path]] if done.returncode == 0 else [whole[path], BEFORE.encode()]
                if now.get(path) not in allowed:
                    self.found(command, function, at, f"exit {done.returncode}, and {path} is neither what it was nor whole: {said[-300:]}")
            for path in now.keys() - whole.keys():
                if not any(path.split("/")[0] == loose.split("/")[0] for loose in command.varies) and not path.startswith("home/"):
                    self.found(command, function, at, f"exit {done.returncode}, {path} is left behind")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("binary")
    words.add_argument("faults")
    words.add_argument("--every", type=int, default=1)
    words.add_argument("--only", default="")
    words.add_argument("--functions", default=",".join(ERRORS))
    given = words.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    checker = Checker(os.path.abspath(given.binary), os.path.abspath(given.faults), root)
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        checker.prepare(pathlib.Path(folder))
        for command in commands(root):
            if given.only and command.words[0] not in given.only.split(","):
                continue
            for function in given.functions.split(","):
                calls, whole = checker.count(command, function)
                chosen = sorted(draw.sample(range(1, calls + 1), -(-calls // given.every)))
                for at in chosen:
                    checker.check(command, function, at, ERRORS[function], whole)
                if chosen and function in ("write", "open"):
                    checker.check(command, function, chosen[0], ERRORS[function], whole, lasts=True)
                if chosen and function in ("write", "read"):
                    checker.check(command, function, chosen[-1], errno.EINTR, whole)
                print(f"{command.words[0]}: {function}: {len(chosen)} of {calls} calls", flush=True)
    print(f"{checker.runs} faults, {checker.tolerated} of them done without, {len(checker.findings)} findings")
    sys.exit(1 if checker.findings else 0)


if __name__ == "__main__":
    main()
