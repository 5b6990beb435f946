#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the caller said wrong is an InputError that names the argument, and no word of the bindings."""
import pathlib
import tempfile
import unittest

import rehearse

MATMUL = "matmul:m1n784k784:bias"


class Arguments(unittest.TestCase):
    def refused(self, begin, call, *arguments, **words):
        with self.subTest(begin, arguments=arguments, words=words):
            with self.assertRaisesRegex(rehearse.InputError, "^" + begin) as found:
                call(*arguments, **words)
            self.assertNotIn("_rehearse", str(found.exception))

    def test_of_predict(self):
        for name, wrong in (("batch", 10**30), ("global_batch", -10**30), ("devices", 10**30), ("devices", [6, 2**63]),
                            ("baseline", 2**63), ("plan", None), ("plan", 5), ("precision", 16), ("optimizer", None), ("fuse", True),
                            ("bands", "no"), ("bands", None), ("pilot", 0.3), ("pilot", "6=97ms"), ("pilot", {6: True}),
                            ("pilot", {6: None}), ("pilot", {6: b"97"}), ("pilot", {6: 10**400}), ("pilot", {"6": 0.3}),
                            ("pilot", {6.0: 0.3}), ("pilot", {True: 0.3})):
            self.refused(name + ": ", rehearse.predict, "lenet5", "summit", **{name: wrong})
        self.refused("batch: at most 9223372036854775807 ", rehearse.predict, "lenet5", "summit", batch=2**63)

    def test_of_a_pilot_are_any_mapping_and_any_number(self):
        class Seconds:  # as NumPy's numbers
            def __float__(self):
                return 0.01
        for pilot in ({1: Seconds()}, {1: 0.01}, [(1, "10ms")]):
            self.assertEqual(rehearse.predict("alexnet", "dgx1-v100", pilot=pilot, bands=False)[0].basis, "measured")
        for pilot in ({}, None):
            self.assertEqual(rehearse.predict("lenet5", "summit", pilot=pilot, bands=0)[0].basis, "cold")

    def test_of_the_others(self):
        self.refused("top: at most 2147483647 ", rehearse.search, "lenet5", "summit", devices=2, global_batch=64, top=2**31)
        self.refused("devices: ", rehearse.schedule, "lenet5", devices=10**30)
        self.refused("plan: ", rehearse.schedule, "lenet5", plan=pathlib.Path("data"))
        self.refused("filter: ", rehearse.validate, None)
        self.refused("rows: ", rehearse.validate, "x", rows=True)
        self.refused("a machine is a dict ", rehearse.Machine.from_dict, None)

    def test_files_may_be_paths(self):
        self.refused("/none.onnx: ", rehearse.Network, pathlib.Path("/none.onnx"))
        self.refused("/none.toml: ", rehearse.Machine, pathlib.Path("/none.toml"))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.json"
            rehearse.predict("lenet5", "summit", bands=False).timeline.write(path)
            self.assertGreater(len(rehearse.Timeline.read(path)), 5)


class Layers(unittest.TestCase):
    def of(self, *more):
        return rehearse.Network.from_layers("ours", [{"name": "input", "operator": "input:784"}, {"name": "a", "operator": MATMUL},
                                                     *more, {"name": "loss", "operator": "softmaxloss:784"}])

    def test_keys_that_are_not_known_are_refused(self):
        for key, value, said in (("input", ["input"], "did you mean 'inputs'"), ("weight_of", "a", "did you mean 'weights_of'"),
                                 ("Inputs", ["input"], "it has name, operator, inputs"), (5, 3, "unknown key '5'")):
            with self.subTest(key), self.assertRaisesRegex(rehearse.InputError, f"^layer 'b': unknown key '{key}'.*{said}|^layer 'b': {said}"):
                self.of({"name": "b", "operator": MATMUL, key: value})

    def test_values_of_another_type_are_named(self):
        for key, value in (("inputs", "a"), ("inputs", [3]), ("inputs", None), ("weights_of", None), ("operator", 5)):
            with self.subTest(key, value=value), self.assertRaisesRegex(rehearse.InputError, f"^layer 'b': {key}: .* is needed, not "):
                self.of({"name": "b", "operator": MATMUL, key: value})
        with self.assertRaisesRegex(rehearse.InputError, "^layer 2: name: a text is needed, not None"):
            self.of({"name": None, "operator": MATMUL})
        with self.assertRaisesRegex(rehearse.InputError, "^layer 2: a dict is needed, not 5"):
            self.of(5)
        with self.assertRaisesRegex(rehearse.InputError, "^layers: a list of dicts is needed, not None"):
            rehearse.Network.from_layers("ours", None)
        with self.assertRaisesRegex(rehearse.InputError, "^layer 'b': input 0 of matmul is 784, it was made for 7"):
            self.of({"name": "b", "operator": "matmul:m1n784k7"})

    def test_what_layers_gives_is_taken(self):
        network = self.of({"name": "b", "operator": MATMUL, "inputs": ["input"]})
        self.assertEqual(network.layers[2]["inputs"], ["input"])
        again = rehearse.Network.from_layers("ours", (layer for layer in network.layers))
        self.assertEqual(again.layers, network.layers)


class Shown(unittest.TestCase):
    """Four figures, in the unit that they are of after they were rounded."""

    def test_times_sizes_and_rates(self):
        from rehearse import _tables
        for value, text in ((0.9997, "999.7 ms"), (0.99997, "1 s"), (0.0009996, "999.6 us"), (0.00099997, "1 ms"), (1234.5, "1,234 s"),
                            (5.7264, "5.726 s"), (3e-10, "0.3 ns")):
            self.assertEqual(_tables._seconds(value), text)
        for value, text in ((174.6e9, "174.6 GB"), (1.2345e12, "1.234 TB"), (999.97e6, "1 GB"), (12.0, "12 B")):
            self.assertEqual(_tables._bytes(value), text)
        for value, text in ((16931.7, "16,930"), (0.33333, "0.3333"), (1.23456e6, "1,235,000")):
            self.assertEqual(_tables._figures(value), text)

    def test_what_does_not_fit_says_so(self):
        with self.assertWarnsRegex(UserWarning, "does not fit on 6, 48 devices: a device has 16 GB and would take 174.6 GB"):
            prediction = rehearse.predict("resnet50", "summit", devices=[6, 48], batch=2048, bands=False)
        self.assertEqual(len(prediction.warnings), 1)
        self.assertIn("does not fit", repr(prediction[0]))
        self.assertIn("174.6 GB, does not fit", prediction._repr_html_())
        fits = rehearse.predict("resnet50", "summit", devices=6, bands=False)
        self.assertEqual(fits.warnings, [])
        self.assertNotIn("does not fit", repr(fits) + fits._repr_html_())

    def test_pilots_that_contradict_are_warned_of(self):
        with self.assertWarnsRegex(UserWarning, "the pilot of 6 devices, 20 s a step, lies outside the 99 % band"):
            rehearse.predict("lenet5", "summit", devices=6, pilot={6: 20})


if __name__ == "__main__":
    unittest.main()
