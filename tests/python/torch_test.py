#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks out of PyTorch have PyTorch's parameters and names, and leave modules as they were. Ends with 77 (skipped)
where PyTorch is not installed."""
import sys
import unittest

try:
    import torch
except ImportError:
    print("PyTorch is not installed (python3-torch)")
    sys.exit(77)

import rehearse.torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.head = torch.nn.Sequential(torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(8 * 16 * 16, 10))

    def forward(self, x):
        return self.head(self.stem(x))


class Export(unittest.TestCase):
    def test_has_the_modules_parameters_and_names(self):
        model = Net()
        network = rehearse.torch.network(model, torch.zeros(2, 3, 32, 32))
        self.assertEqual(network.parameters, sum(each.numel() for each in model.parameters()))
        names = [layer["name"] for layer in network.layers if layer["parameters"]]
        for name, module in (("stem", "0"), ("stem", "1"), ("head", "3")):
            self.assertTrue(any(name in each and module in each for each in names), (name, module, names))
        self.assertGreater(rehearse.predict(network, "summit", devices=6)[0].step_s, 0)

    def test_leaves_the_module_as_it_was(self):
        model = Net()
        model.stem[1].eval()  # frozen statistics, in a network that is trained
        before = {name: value.clone() for name, value in model.state_dict().items()}
        modes = [module.training for module in model.modules()]
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        rehearse.torch.network(model, torch.rand(2, 3, 32, 32))
        torch.manual_seed(3)
        rehearse.torch.network(model, torch.ones(2, 3, 32, 32))
        self.assertEqual(torch.rand(1), expected)
        self.assertEqual([module.training for module in model.modules()], modes)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_may_end_in_a_loss(self):
        coder = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Linear(8, 64))
        network = rehearse.torch.network(coder, torch.zeros(2, 64), loss="mse")
        self.assertEqual(network.parameters, sum(each.numel() for each in coder.parameters()))
        self.assertGreater(len(network), len(rehearse.torch.network(coder, torch.zeros(2, 64))))

    def test_writes_no_weights(self):
        from rehearse import _export_onnx
        import tempfile
        wide = torch.nn.Linear(2000, 2000)
        with tempfile.TemporaryDirectory() as folder:
            sizes = []
            for weights in (False, True):
                path = f"{folder}/{weights}.onnx"
                _export_onnx.export(wide, (torch.zeros(2, 2000),), path, weights=weights)
                sizes.append(len(open(path, "rb").read()))
                self.assertEqual(rehearse.Network(path).parameters, 2000 * 2001)
        self.assertLess(sizes[0], 20_000)
        self.assertGreater(sizes[1], 4 * 2000 * 2000)


if __name__ == "__main__":
    unittest.main()
