#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends SIGINT, SIGTERM or SIGPIPE to each command at random moments, from its start to its end.

signals.py BINARY [SIGNALS] [SEED]      SIGNALS: in all (56)

It must end within 30 s (one part of long work, on a busy host) by the signal, with exit code 130 or 143, or with what it
had done by then; a file that it was to write is there as before, or whole, and none is left beside it. Quick commands
leave a reader that has seen enough alone: `| head` ends them by SIGPIPE.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 30
BEFORE = "what was there before\n"
COMMANDS = [
    ("predict --model resnet50 --machine summit --devices 1,6,12 --batch 32 --format json --output o.json", "o.json"),
    ("schedule --model alexnet --machine summit --devices 2 --plan pipe=2:microbatches=4 --batch 8 --draw d.svg", None),
    ("search --model gpt3-175b --machine selene --devices 1024 --global-batch 1536 --precision mixed --top 2 "
     "--store s.sqlite --format json --output o.json", "o.json"),
    ("models resnet152 --format json --output o.json", "o.json"),
    ("machines --format json --output o.json", "o.json"),
    ("validate --set nccl --format json --output o.json", "o.json"),
    ("validate --set published --filter Azure --format json --output o.json", "o.json"),
    ("run --model lenet5 --batch 2 --steps 30 --checkpoint C --format json --output o.json", "o.json"),
    ("bench gemm matmul:n32m1n64k64:f32:forward --budget 2 --format json --output o.json", "o.json"),
    ("calibrate --quick --tune off --model lenet5 --batch 1 --budget 5 --machine-out k.toml --format json "
     "--output o.json", "o.json"),
    ("completion bash", None),
]


def check(binary, words, output, after, sent, folder):
    """What is wrong with how the command ended; nothing where nothing is."""
    if output:
        (folder / output).write_text(BEFORE, encoding="utf-8")
    env = {**os.environ, "REHEARSE_HOME": str(folder), "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    process = subprocess.Popen([binary, *words.split(), "--force"], cwd=folder, env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        process.wait(timeout=after)
    except subprocess.TimeoutExpired:
        pass
    process.send_signal(sent)
    begin = time.monotonic()
    try:
        _, said = process.communicate(timeout=4 * LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "still running"
    if time.monotonic() - begin > LIMIT_S:
        return f"ended {time.monotonic() - begin:.0f} s later"
    if process.returncode not in (0, 128 + sent, -sent):
        return f"exit {process.returncode}: {said.decode(errors='replace')[-300:]}"
    if output and (text := (folder / output).read_text(encoding="utf-8")) != BEFORE:
        try:
            json.loads(text)
        except ValueError:
            return "half a file"
    left = [path.name for path in folder.iterdir() if path.name.endswith((".part", ".tmp"))]
    return f"left: {left}" if left else None


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 56
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 17)
    failures = 0
    for i in range(count):
        words, output = COMMANDS[i % len(COMMANDS)]
        after = draw.uniform(0, draw.choice([0.05, 0.5, 4]))
        sent = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGPIPE])
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(os.path.abspath(sys.argv[1]), words, output, after, sent, pathlib.Path(folder))
        if wrong:
            failures += 1
            print(f"{sent.name} after {after:.3f} s: {words}: {wrong}", flush=True)
    print(f"{count} signals, {failures} findings")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
