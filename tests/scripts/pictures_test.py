#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/pictures.py: pictures_test.py [REHEARSE]. Files are what their options say, and `run` reads them."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("h5py") is None:
    print("skipped: no h5py")
    sys.exit(77)

import h5py
import numpy as np

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "pictures.py"


def made(folder, name, *options):
    path = pathlib.Path(folder) / name
    subprocess.run([sys.executable, SCRIPT, path, *options], check=True)
    with h5py.File(path) as file:
        return path, file["data"][:], file["labels"][:]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, data, labels = made(folder, "a.h5", "--samples", "1200")
        assert data.shape == (1200, 3, 32, 32) and set(labels) == set(range(10)), (data.shape, set(labels))
        _, again, same = made(folder, "b.h5", "--samples", "1200")
        assert np.array_equal(data, again) and np.array_equal(labels, same), "the same seed makes other pictures"
        _, other, _ = made(folder, "c.h5", "--samples", "1200", "--seed", "2")
        assert not np.array_equal(data, other), "another seed makes the same pictures"

        # Alone and without noise a picture is its class's one texture, shifted, mirrored and scaled, which leave the
        # sorted numbers but for the scale; with deviation 1 they are one row a class, and those of classes differ.
        _, plain, kinds = made(folder, "d.h5", "--samples", "300", "--prototypes", "1", "--other", "0", "--noise", "0")
        numbers = np.sort(plain.reshape(300, -1), 1)
        scales = numbers.std(1, keepdims=True)
        numbers /= scales
        first = {kind: numbers[kinds == kind][0] for kind in set(kinds)}
        for kind, row in zip(kinds, numbers):
            assert np.abs(row - first[kind]).max() < 1e-4, "a picture is not its class's texture"
        assert np.abs(first[0] - first[1]).max() > 0.05, "two classes have one texture"
        assert 0.5 - 1e-3 < scales.min() < 0.6 and 1.4 < scales.max() < 1.5 + 1e-3, (scales.min(), scales.max())

        # Deviation of noise alone: of a share of 0.65, 0.35 and noise of 2, variances add up: 0.55 (1.08) + 4.
        _, noisy, _ = made(folder, "e.h5", "--samples", "500", "--noise", "2")
        assert abs(noisy.var() - (4 + (0.65 ** 2 + 0.35 ** 2) * 13 / 12)) < 0.1, noisy.var()

        there = path.read_bytes()
        kept = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)
        assert kept.returncode == 2 and "exists" in kept.stderr and path.read_bytes() == there, kept.stderr
        refused = subprocess.run([sys.executable, SCRIPT, path, "--other", "0.5"], capture_output=True, text=True,
                                 check=False)
        assert refused.returncode == 2 and "below 0.5" in refused.stderr, refused.stderr
        if len(sys.argv) > 1:
            command = [sys.argv[1], "run", "--model", "resnet32", "--data", path, "--order", "given", "--batch", "4",
                       "--steps", "2", "--quiet"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
