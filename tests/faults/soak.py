#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds memory to be flat: ten thousand predictions in one process, and a training of many steps with checkpoints.

soak.py BINARY [PREDICTIONS] [STEPS]      PYTHONPATH: the folder of `import rehearse`, else build/dev/python
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "build/dev/python"))
GROWTH = 1.05  # of the resident set, from a tenth of the way to its end


def resident(process="self"):
    """Bytes of memory that a process holds; None where it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")), None)


def held(name, begin, end):
    print(f"{name}: {begin / 1e6:.1f} MB after a tenth, {end / 1e6:.1f} MB at the end")
    return end <= GROWTH * begin


def predictions(count):
    import rehearse

    models, plans = ["alexnet", "resnet50", "bert-base"], ["data", "data:zero=1", "data=2,pipe=2:microbatches=4"]
    begin = 0
    for i in range(count):
        rehearse.predict(models[i % 3], "summit", devices=[4], plan=plans[i // 3 % 3], batch=8 + i % 5)
        if i == count // 10:
            begin = resident()
    return held(f"{count} predictions", begin, resident())


def training(binary, steps):
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([binary, "run", "--model", "lenet5", "--batch", "2", "--steps", str(steps),
                                "--checkpoint", folder, "--checkpoint-every", str(max(1, steps // 100)), "-q"],
                               stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        sizes = []
        while job.poll() is None:
            size = resident(job.pid)
            if size:
                sizes.append(size)
            try:
                job.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
        if job.returncode != 0 or len(sizes) < 20:
            print(f"a training of {steps} steps: exit {job.returncode}, looked at {len(sizes)} times")
            return False
        return held(f"a training of {steps} steps", sizes[len(sizes) // 10], max(sizes[-5:]))


def main():
    binary = sys.argv[1]
    count, steps = (int(words) for words in (sys.argv[2:] + ["10000", "100000"][len(sys.argv) - 2:]))
    sys.exit(0 if predictions(count) & training(binary, steps) else 1)


if __name__ == "__main__":
    main()
