#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package says what the program says, and fails as Python does."""
import contextlib
import copy
import gc
import io
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import arrow
import rehearse


NO_LAUNCH = """
name = "m"
[[device]]
name = "card"
source = "sheet"
memory = "24GB"
memory_bandwidth = "600GBps"
peak.f32 = "31TFLOPS"
[[node]]
name = "n"
devices = [{ class = "card", name = "gpu" }]
[messaging.inside]
overhead = "5us"
fraction = 1
reduce = "1GBps"
error = 0.1
source = "assumed"
"""


def program(*arguments):
    """What the program prints as JSON; skips the test where it is not built."""
    if not os.environ.get("REHEARSE"):
        raise unittest.SkipTest("the program is not built")
    out = subprocess.run([os.environ["REHEARSE"], *arguments, "--format", "json", "-q"], check=True, capture_output=True)
    return json.loads(out.stdout)


class Predict(unittest.TestCase):
    def test_is_the_programs_prediction(self):
        said = program("predict", "--model", "resnet50", "--machine", "summit", "--devices", "6,96", "--batch", "16",
                       "--plan", "data:bucket=10MB", "--precision", "mixed", "--optimizer", "adam", "--framework", "pytorch-ddp")
        prediction = rehearse.predict("resnet50", "summit", devices=[96, 6], batch=16, plan="data:bucket=10MB", precision="mixed",
                                      optimizer="adam", framework="pytorch-ddp")
        self.assertEqual([point.devices for point in prediction.points], [6, 96])
        for theirs, ours in zip(said["points"], prediction.to_dicts()):
            for name in set(theirs) & set(ours):
                if isinstance(ours[name], float):  # the simulator's clock goes on from one call to the next: rounding of a step
                    self.assertLess(abs(theirs[name] - ours[name]), 1e-9 * abs(ours[name]) + 1e-13 * ours["step_s"], name)
                else:
                    self.assertEqual(theirs[name], ours[name], name)
            self.assertGreater(len(set(theirs) & set(ours)), 12)

    def test_is_anchored_on_a_pilot(self):
        cold = rehearse.predict("alexnet", "dgx1-v100", devices=[1, 8], batch=64)
        for pilot in (2 * cold[0].step_s, f"{2000 * cold[0].step_s}ms", f"{64 / (2 * cold[0].step_s)}/s"):
            met = rehearse.predict("alexnet", "dgx1-v100", devices=[1, 8], batch=64, pilot={1: pilot})
            self.assertAlmostEqual(met[0].step_s / cold[0].step_s, 2, places=3)
            self.assertEqual([point.basis for point in met.points], ["measured", "anchored"])
            self.assertEqual(met.pilots[0]["devices"], 1)

    def test_bands_hold_the_step(self):
        point = rehearse.predict("lenet5", "summit", devices=6)[0]
        self.assertLess(point.step_low_s, point.step_s)
        self.assertLess(point.step_s, point.step_high_s)
        bare = rehearse.predict("lenet5", "summit", devices=6, bands=False)[0]
        self.assertEqual((bare.step_low_s, bare.step_high_s), (bare.step_s, bare.step_s))

    def test_takes_what_was_loaded_before(self):
        network, machine = rehearse.Network("lenet5"), rehearse.Machine("summit")
        self.assertEqual(network.parameters, sum(layer["parameters"] for layer in network.layers))
        again = rehearse.Machine.from_toml(machine.to_toml())
        self.assertEqual((again.nodes, again.devices), (machine.nodes, machine.devices))
        self.assertAlmostEqual(rehearse.predict(network, again)[0].step_s, rehearse.predict("lenet5", "summit")[0].step_s, places=12)

    def test_shows_itself(self):
        prediction = rehearse.predict("lenet5", "summit", devices=[1, 2])
        self.assertIn("2 devices", repr(prediction))
        self.assertEqual(prediction._repr_html_().count("<tr>"), 3)
        self.assertAlmostEqual(sum(row["share"] for row in prediction.explained), 1, delta=0.5)
        self.assertEqual(prediction[-1].devices, 2)
        self.assertEqual([point.devices for point in prediction[::-1]], [2, 1])
        self.assertEqual(prediction.timeline.columns()["rank"][-1], list(prediction.timeline.columns()["rank"])[-1])
        for wrong in (2, -3):
            with self.assertRaises(IndexError):
                prediction[wrong]

    def test_is_copied(self):
        prediction = rehearse.predict("lenet5", "summit", devices=[1, 2], bands=False)
        for each in (copy.copy(prediction), copy.deepcopy(prediction)):
            self.assertEqual(each.to_dicts(), prediction.to_dicts())
        self.assertEqual(copy.deepcopy(prediction[0]).to_dict(), prediction[0].to_dict())
        self.assertEqual(len(copy.copy(prediction.timeline)), len(prediction.timeline))
        self.assertEqual(copy.copy(prediction.schedule).draw(), prediction.schedule.draw())
        machine = pickle.loads(pickle.dumps(rehearse.Machine("summit")))
        self.assertEqual(machine.to_toml(), rehearse.Machine("summit").to_toml())
        network = rehearse.Network("resnet50")
        for each in (copy.copy(network), pickle.loads(pickle.dumps(network))):
            self.assertEqual(each.layers, network.layers)

    def test_becomes_a_data_frame(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = rehearse.predict("lenet5", "summit", devices=[1, 2]).to_dataframe()
        self.assertEqual(list(frame["devices"]), [1, 2])


class Errors(unittest.TestCase):
    def test_are_pythons(self):
        with self.assertRaisesRegex(ValueError, "did you mean 'resnet32'"):
            rehearse.predict("resnet05", "summit")
        with self.assertRaisesRegex(rehearse.InputError, "optimizer 'sgdd'"):
            rehearse.predict("lenet5", "summit", optimizer="sgdd")
        with self.assertRaisesRegex(rehearse.InputError, "batch excludes global_batch"):
            rehearse.predict("lenet5", "dgx1-v100", batch=8, global_batch=64)
        with self.assertRaisesRegex(rehearse.InputError, "mine.toml:1"):
            rehearse.Machine.from_toml("name = ", "mine.toml")
        with self.assertRaises(TypeError):
            rehearse.predict("lenet5", "summit", 5)

    def test_numbers_are_whole_numbers(self):
        class Six:  # as NumPy's integers
            def __index__(self):
                return 6
        self.assertEqual(rehearse.predict("lenet5", "summit", devices=Six(), batch=Six(), bands=False)[0].devices, 6)
        self.assertEqual([p.devices for p in rehearse.predict("lenet5", "summit", devices=(1, Six()), bands=False).points], [1, 6])
        for wrong in ("48", [6.7], 48.0, True, [], [True], None, ["6"]):
            with self.subTest(wrong), self.assertRaisesRegex(rehearse.InputError, "^devices: "):
                rehearse.predict("lenet5", "summit", devices=wrong)
        with self.assertRaisesRegex(rehearse.InputError, "^batch: .*True"):
            rehearse.predict("lenet5", "summit", batch=True)
        with self.assertRaisesRegex(rehearse.InputError, "^machine: .*None"):
            rehearse.predict("lenet5", None)

    def test_of_a_search(self):
        for top in (0, -1):
            with self.assertRaisesRegex(rehearse.InputError, f"--top {top}: at least 1"):
                rehearse.search("lenet5", "summit", devices=2, global_batch=64, top=top)
        with self.assertRaisesRegex(rehearse.InfeasibleError, "no plan was found: of [0-9]+ estimated .*takes"):
            rehearse.search("gpt3-175b", "dgx1-v100", devices=8, global_batch=8, precision="mixed", optimizer="adam")

    def test_of_values_that_no_machine_has(self):
        with self.assertRaisesRegex(rehearse.InputError, "no value None"):
            rehearse.Machine.from_dict({"name": "ours", "extends": "eos", "summary": None})
        with self.assertRaisesRegex(rehearse.InputError, "machine:3"):
            rehearse.Machine.from_dict({"name": "ours", "extends": "eos", "fabric": {"latency": float("inf")}})

    def test_of_what_cannot_be_pickled(self):
        prediction = rehearse.predict("lenet5", "summit", bands=False)
        for each in (prediction, prediction[0], prediction.timeline, prediction.schedule):
            with self.assertRaisesRegex(TypeError, "cannot be pickled: "):
                pickle.dumps(each)

    def test_ctrl_c_ends_a_long_call(self):
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            rehearse.predict("resnet50", "summit", devices=range(6, 4800, 6))
        self.assertLess(time.monotonic() - begun, 30)

    def test_other_threads_run_meanwhile(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)
        thread = threading.Thread(target=tick)
        thread.start()
        rehearse.predict("resnet50", "summit", devices=[6, 96, 1536])
        done.set()
        thread.join()
        self.assertGreater(len(ticks), 5)


class Threads(unittest.TestCase):
    """The simulator is of the process: simulations of several threads queue."""

    def test_predict_at_once(self):
        alone = {name: rehearse.predict(name, "summit", devices=48, bands=False)[0].step_s for name in ("lenet5", "resnet50")}
        steps = []

        def work(name):
            for _ in range(5):
                steps.append((name, rehearse.predict(name, "summit", devices=48, bands=False)[0].step_s))
            rehearse.search(name, "summit", devices=2, global_batch=64, top=1)
        threads = [threading.Thread(target=work, args=(name,)) for name in alone]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(steps), 10)
        for name, step in steps:
            self.assertAlmostEqual(step / alone[name], 1, places=9)

    def test_ctrl_c_ends_the_waiting_for_another(self):
        stop = threading.Event()

        def work():
            while not stop.is_set():
                rehearse.predict("resnet50", "summit", devices=range(6, 300, 6), bands=False)
        thread = threading.Thread(target=work)
        thread.start()
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    rehearse.predict("lenet5", "summit", bands=False)
        finally:
            stop.set()
            thread.join()

    def test_a_signal_cannot_predict_inside_a_prediction(self):
        found = []

        def handler(*_):
            try:
                rehearse.predict("lenet5", "summit")
            except rehearse.BackendError as error:
                found.append(str(error))
        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            rehearse.predict("resnet50", "summit", devices=range(6, 1200, 6), bands=False)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        for text in found:  # none where the machine was faster than the alarm
            self.assertIn("cannot begin inside another", text)


class Remarks(unittest.TestCase):
    """What the program says on stderr, or below its tables."""

    def test_of_a_plan(self):
        prediction = rehearse.predict("lenet5", "summit", devices=4, plan="tensor=4", bands=False)
        said = subprocess.run([os.environ["REHEARSE"], "predict", "--model", "lenet5", "--machine", "summit", "--devices", "4", "--plan",
                               "tensor=4", "-q"], capture_output=True, text=True) if os.environ.get("REHEARSE") else None
        self.assertTrue(prediction.notes)
        for note in prediction.notes:
            self.assertIn("note: " + note, repr(prediction))
            self.assertIn("note: ", prediction._repr_html_())
            if said:
                self.assertIn(note, said.stderr)

    def test_of_a_machine(self):
        ours = rehearse.Machine.from_toml(NO_LAUNCH)
        with self.assertWarnsRegex(UserWarning, "has no launch"):
            prediction = rehearse.predict("lenet5", ours, bands=False)
        self.assertEqual(len(prediction.warnings), 1)

    def test_of_unknown_operators_are_none_where_all_are_known(self):
        network = rehearse.Network("lenet5")
        self.assertEqual((network.notes, network.warnings, network.guessed_share), ([], [], 0))


class Others(unittest.TestCase):
    def test_search_is_the_programs(self):
        said = program("search", "--model", "bert-base", "--machine", "summit", "--devices", "12", "--global-batch", "96", "--top", "3",
                       "--framework", "pytorch-ddp")
        found = rehearse.search("bert-base", "summit", devices=12, global_batch=96, top=3, framework="pytorch-ddp")
        self.assertEqual([plan["plan"] for plan in said["plans"]], [plan.plan for plan in found.plans])
        self.assertAlmostEqual(said["plans"][0]["step_s"], found.plans[0].step_s, places=9)
        self.assertEqual(len(found.to_dicts()), 3)

    def test_validation_is_the_programs(self):
        said = program("validate", "--set", "published", "--filter", "azure-batchai-horovod-00")
        validation = rehearse.validate("azure-batchai-horovod-00")
        self.assertEqual([row["id"] for row in validation.to_dicts()], [row["id"] for row in said["rows"]])
        for theirs, ours in zip(said["rows"], validation.to_dicts()):
            self.assertEqual(theirs["published"], ours["published"])
            self.assertAlmostEqual(theirs["cold_predicted"] / ours["cold"], 1, places=9)
            self.assertLess(ours["cold_low"], ours["cold_high"])
        for kind, errors in validation.summary.items():
            self.assertEqual(errors["rows"], said["summary"][kind]["rows"])
            self.assertAlmostEqual(errors["median_error"], said["summary"][kind]["median_error"], places=9)
        self.assertEqual(validation._repr_html_().count("<tr>"), 3)
        with self.assertRaisesRegex(rehearse.InputError, "filter '\\('"):
            rehearse.validate("(")

    def test_schedules_are_drawn(self):
        drawn = rehearse.schedule("lenet5", devices=2, plan="pipe=2:microbatches=2").draw()
        self.assertIn("stage0", drawn)
        self.assertIn("send", drawn)

    def test_timelines_are_columns_and_files(self):
        timeline = rehearse.predict("lenet5", "summit", devices=6).timeline
        columns = timeline.columns()
        self.assertEqual({len(column) for column in columns.values()}, {len(timeline)})
        starts = memoryview(columns["start_s"])
        self.assertEqual((starts.format, len(starts)), ("d", len(timeline)))
        self.assertAlmostEqual(max(columns["end_s"]) - min(starts), timeline.length_s, places=12)
        with self.assertRaises(TypeError):
            starts[0] = 1.0
        with tempfile.TemporaryDirectory() as folder:
            timeline.to_perfetto(folder + "/t.pftrace")
            self.assertEqual(len(rehearse.Timeline.read(folder + "/t.pftrace")), len(timeline))
            with self.assertRaises(rehearse.InputError):
                timeline.write(folder + "/t.nothing")

    def test_timelines_are_arrow_arrays(self):
        timeline = rehearse.predict("lenet5", "summit", devices=6).timeline
        columns = timeline.columns()
        self.assertEqual(arrow.table(*timeline.__arrow_c_array__()), {name: list(column) for name, column in columns.items()})
        self.assertEqual(arrow.names(timeline.__arrow_c_schema__()), list(columns))
        timeline.__arrow_c_array__()  # nobody takes it over: it is released with its capsule

    def test_arrow_arrays_outlive_the_timeline(self):
        capsules = rehearse.predict("lenet5", "summit", devices=6).timeline.__arrow_c_array__()
        gc.collect()
        self.assertGreater(len(arrow.table(*capsules)["step"]), 20)

    def test_networks_are_built_of_layers(self):
        for name in ("lenet5", "resnet32", "bert-base", "gpt2-xl"):
            network = rehearse.Network(name)
            again = rehearse.Network.from_layers(name, network.layers)
            self.assertEqual((again.parameters, again.forward_flops, again.layers), (network.parameters, network.forward_flops, network.layers))
        # ResNet-50 keeps running statistics, too.
        memory = [rehearse.predict(each, "summit", bands=False)[0].memory_peak_bytes
                  for each in (rehearse.Network("resnet50"),
                               rehearse.Network.from_layers("resnet50", rehearse.Network("resnet50").layers))]
        self.assertEqual(memory[0], memory[1])
        ours = rehearse.Network.from_layers("ours", [
            {"name": "input", "operator": "input:784"}, {"name": "fc", "operator": "matmul:m1n10k784:bias"},
            {"name": "loss", "operator": "softmaxloss:10"}])
        self.assertEqual(ours.parameters, 7850)
        with self.assertRaisesRegex(rehearse.InputError, "layer 'fc'.*no layer 'inptu'"):
            rehearse.Network.from_layers("x", [{"name": "input", "operator": "input:784"},
                                               {"name": "fc", "operator": "matmul:m1n10k784", "inputs": ["inptu"]}])
        with self.assertRaisesRegex(rehearse.InputError, "layer 'fc': operator 'matmu:1'"):
            rehearse.Network.from_layers("x", [{"name": "fc", "operator": "matmu:1"}])

    def test_networks_are_read_from_bytes(self):
        file = pathlib.Path(__file__).resolve().parents[1] / "data" / "onnx" / "light_resnet50.onnx"
        try:
            read = rehearse.Network(str(file))
        except rehearse.BackendError:
            self.skipTest("built without libonnx")
        self.assertEqual(rehearse.Network.from_onnx(file.read_bytes(), "light_resnet50").layers, read.layers)
        with tempfile.TemporaryDirectory() as folder:  # a name is no way out of the folder that it is read from
            outside = os.path.join(folder, "outside")
            for name in (outside, os.path.relpath(outside, tempfile.gettempdir())):
                self.assertEqual(rehearse.Network.from_onnx(file.read_bytes(), name).name, "outside")
            self.assertEqual(os.listdir(folder), [])

    def test_machines_are_changed_in_code(self):
        eos = rehearse.Machine("eos")
        ours = rehearse.Machine.from_dict({"name": "ours", "extends": "eos", "node": [{"name": "dgx-h100", "count": 16}]})
        self.assertEqual((ours.name, ours.nodes, ours.devices), ("ours", 16, 16 * eos.devices // eos.nodes))
        with self.assertRaisesRegex(rehearse.InputError, "mine:1"):
            rehearse.Machine.from_dict({"nam": "ours"}, "mine")
        self.assertGreater(rehearse.predict("lenet5", {"name": "ours", "extends": "eos"}, bands=False)[0].step_s, 0)

    def test_notebooks_show_pictures(self):
        self.assertTrue(rehearse.predict("lenet5", "summit", devices=2).timeline._repr_svg_().startswith("<svg"))
        self.assertIn("<pre>", rehearse.schedule("lenet5", devices=2, plan="data")._repr_html_())

    def test_lists_say_what_there_is(self):
        self.assertIn("resnet50", dict(rehearse.networks()))
        self.assertIn("summit", dict(rehearse.machines()))
        self.assertIn("pytorch-ddp", dict(rehearse.frameworks()))

    def test_stubs_name_what_there_is(self):
        with open(os.path.join(os.path.dirname(rehearse.__file__), "__init__.pyi"), encoding="utf-8") as file:
            stubs = file.read()
        for name in rehearse.__all__:
            self.assertRegex(stubs, rf"(class|def) {name}\b")
        for name in rehearse.predict("lenet5", "summit")[0].to_dict():
            self.assertIn(f"    {name}: ", stubs)


class Page(unittest.TestCase):
    def test_runs_as_it_is_written(self):
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 3)
        names, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec("\n".join(blocks), names)
                self.assertTrue(os.path.exists("step.pftrace"))
            finally:
                os.chdir(before)
        self.assertEqual([point.basis for point in names["anchored"].points], ["measured", "anchored"])


if __name__ == "__main__":
    unittest.main()
