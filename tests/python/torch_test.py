#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks out of PyTorch have PyTorch's parameters. Ends with 77 (skipped) where PyTorch is not installed."""
import sys
import unittest

try:
    import torch
except ImportError:
    print("PyTorch is not installed (python3-torch)")
    sys.exit(77)

import rehearse.torch


class Export(unittest.TestCase):
    def test_has_the_modules_parameters(self):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                    torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 16 * 16, 10))
        model.eval()
        network = rehearse.torch.network(model, torch.zeros(2, 3, 32, 32))
        self.assertFalse(model.training)
        self.assertEqual(network.parameters, sum(each.numel() for each in model.parameters()))
        self.assertGreater(rehearse.predict(network, "summit", devices=6)[0].step_s, 0)


if __name__ == "__main__":
    unittest.main()
