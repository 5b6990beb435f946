#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/embedding_reference.py at small sizes: embedding_ways.py REHEARSE.

Its own check holds the two updates of PyTorch to each other, `bench embedding` its six ways. Here: all eight are in the
table, and ratios are those of the times. Which is faster is a matter of the script on a quiet host, not of a test.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("torch") is None:
    print("skipped: no PyTorch")
    sys.exit(77)

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "embedding_reference.py"
WAYS = ["PyTorch 2019", "PyTorch", "reference", "atomic", "lock", "race-free", "fused", "split-bf16"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "ways.json"
        command = [sys.executable, SCRIPT, "--rows", "5000", "--batch", "32", "--tables", "2", "--steps", "5",
                   "--threads", "1", "--skew", "1", "--rehearse", sys.argv[1], "--json", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = json.loads(out.read_text(encoding="utf-8"))
    assert [row["way"] for row in rows] == WAYS, rows
    times = [row["forward_s"] + row["update_s"] for row in rows]
    for row, time in zip(rows, times):
        assert abs(row["over_2019"] * time / times[0] - 1) < 1e-9, row
        assert row["way"] in done.stdout, done.stdout
    refused = subprocess.run([sys.executable, SCRIPT, "--batch", "0"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "at least 1" in refused.stderr, refused.stderr


if __name__ == "__main__":
    main()
