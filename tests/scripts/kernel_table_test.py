#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios, means and minima of a measurement made by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import kernel_table  # noqa: E402

A, B = "conv2d:n8c1:f32:forward", "conv2d:n8c2:f32:forward"


def run(name, seconds):
    return {"name": name, "median_s": seconds}


# Two rounds; the first of the direct convolution was disturbed. Powers of two, so that every ratio is exact.
SAMPLES = {"benchmarks": [
    run(f"{A}/cpu/direct", 4.0), run(f"{A}/cpu/winograd4", 1.0), run(f"{A}/onednn/direct", 8.0),
    run(f"{A}/onednn/gemm", 4.0), run(f"{A}/onednn/winograd", 1.0), run(f"{B}/cpu/direct", 2.0),
    run(f"{B}/onednn/direct", 4.0),
    run(f"{A}/cpu/direct", 4.0), run(f"{A}/cpu/winograd4", 0.5), run(f"{A}/onednn/direct", 2.0),
    run(f"{A}/onednn/gemm", 4.0), run(f"{A}/onednn/winograd", 1.0), run(f"{B}/cpu/direct", 2.0),
    run(f"{B}/onednn/direct", 1.0),
    run("softmax:n8:5:f32:forward/onednn", 1.0)]}
DOCUMENT = {"peak_flops_per_s": 1e9, "configuration": {"threads": 1},
            "rows": [{"problem": A, "median_s": 2.0, "flops_per_s": 125e6},
                     {"problem": B, "median_s": 1.0, "flops_per_s": 5e8}]}


class KernelTable(unittest.TestCase):
    def setUp(self):
        self.rows = kernel_table.compare(DOCUMENT, SAMPLES)

    def test_the_fastest_of_each_side_are_compared(self):
        self.assertEqual([row["problem"] for row in self.rows], [A, B])
        first, second = self.rows
        self.assertEqual((first["ours"], first["ours_s"]), ("winograd4", 0.5))
        self.assertEqual((first["direct_s"], first["best_s"], first["best"]), (2.0, 1.0, "winograd"))
        self.assertEqual((first["of_direct"], first["of_best"], first["of_peak"]), (4.0, 2.0, 0.5))
        self.assertEqual((second["of_direct"], second["of_best"], second["of_peak"]), (0.5, 0.5, 0.25))

    def test_means_are_geometric(self):
        name, count, direct, least_direct, of_best, worst = next(iter(kernel_table.summary(self.rows)))
        self.assertEqual((name, count, least_direct, worst["problem"]), ("forward", 2, 0.5, B))
        self.assertAlmostEqual(direct, 2 ** 0.5)  # of 4 and 1/2
        self.assertAlmostEqual(of_best, 1.0)      # of 2 and 1/2

    def test_the_table_names_every_problem(self):
        text = kernel_table.markdown("two", DOCUMENT, self.rows)
        self.assertIn(f"| {A} | 500 (winograd4) | 2e+03 | 1e+03 (winograd) | 4.00 | 2.00 | 50 % |", text)
        self.assertIn(B, text)


if __name__ == "__main__":
    unittest.main()
