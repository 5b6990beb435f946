#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes pictures of ten classes, 3 x 32 x 32 like CIFAR-10's, that take a network thousands of updates: `run --data`.

  pictures.py FILE.h5 [--samples 30000] [--prototypes 5] [--other 0.35] [--noise 0.6] [--seed 1]

A class is several smooth textures (waves of low frequency with random colours). A picture is one of them, shifted by up
to 6 pixels each way, mirrored or not, of any contrast, with a share of a texture of another class and white noise on it.
Read once (`--order given`), each picture is new when it comes, so that its loss is that of a test.
"""
import argparse
import os

import h5py
import numpy as np

SIZE, CLASSES = 32, 10


def textures(generator, count):
    """{CLASSES, count, 3, SIZE, SIZE}, each with mean 0 and deviation 1."""
    made = np.zeros((CLASSES, count, 3, SIZE, SIZE), np.float32)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE] * (2 * np.pi / SIZE)
    for _ in range(6):
        shape = (CLASSES, count, 3, 1, 1)
        along, across = generator.integers(-4, 5, shape[:2] + (1, 1, 1)), generator.integers(-4, 5, shape[:2] + (1, 1, 1))
        phase, height = generator.uniform(0, 2 * np.pi, shape), generator.normal(size=shape)
        made += (height * np.cos(along * rows + across * columns + phase)).astype(np.float32)
    made -= made.mean((2, 3, 4), keepdims=True)
    return made / made.std((2, 3, 4), keepdims=True)


def pictures(generator, labels, known, asked):
    def shifted(classes):
        which = generator.integers(asked.prototypes, size=classes.size)
        picked = known[classes, which]
        for i, (down, right) in enumerate(generator.integers(-6, 7, (classes.size, 2))):
            picked[i] = np.roll(picked[i], (down, right), (1, 2))
        mirrored = generator.random(classes.size) < 0.5
        picked[mirrored] = picked[mirrored, :, :, ::-1]
        return picked
    others = (labels + generator.integers(1, CLASSES, labels.size)) % CLASSES
    contrast = generator.uniform(0.5, 1.5, (labels.size, 1, 1, 1)).astype(np.float32)
    both = (1 - asked.other) * shifted(labels) + asked.other * shifted(others)
    noise = generator.normal(scale=asked.noise, size=both.shape).astype(np.float32)
    return contrast * both + noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--samples", type=int, default=30000)
    parser.add_argument("--prototypes", type=int, default=5, help="textures of a class")
    parser.add_argument("--other", type=float, default=0.35, help="share of the other class's texture, below 0.5")
    parser.add_argument("--noise", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.samples < 1 or asked.prototypes < 1 or not 0 <= asked.other < 0.5 or asked.noise < 0:
        parser.error("--samples and --prototypes are at least 1, --other is from 0 to below 0.5, --noise at least 0")
    if os.path.lexists(asked.file):
        parser.error(f"{asked.file} exists: remove it, or choose another name")
    generator = np.random.default_rng(asked.seed)
    known = textures(generator, asked.prototypes)
    labels = generator.integers(CLASSES, size=asked.samples)
    with h5py.File(asked.file, "w") as file:
        data = file.create_dataset("data", (asked.samples, 3, SIZE, SIZE), np.float32)
        file.create_dataset("labels", data=labels.astype(np.int32))
        for begin in range(0, asked.samples, 1000):
            data[begin:begin + 1000] = pictures(generator, labels[begin:begin + 1000], known, asked)


if __name__ == "__main__":
    main()
