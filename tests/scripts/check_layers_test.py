#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants violations in a tiny house and expects scripts/check_layers.py to name each by file and line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

GOOD = {
    "core/op.hpp": "#pragma once\n#include <vector>\n",
    "core/op.cpp": '#include "core/op.hpp"\n#include <fmt/format.h>\n',
    "sim/platform.hpp": "#pragma once\n#include <simgrid/s4u.hpp>\n",
    "sim/platform.cpp": '#include "sim/platform.hpp"\n#include "core/op.hpp"\n',
    "run/train.hpp": '#pragma once\n#include "core/op.hpp"\n',
    "run/train.cpp": '#include "run/train.hpp"\n#include <mpi.h>\n#include "kernels/k.hpp"\n',
    "kernels/k.hpp": "#pragma once\n",
    "kernels/comm/ring.cpp": "#include <mpi.h>\n",
    "schedule/plan.cpp": '#include "core/op.hpp"\n#include "models/zoo/zoo.hpp"\n',
    "models/zoo/zoo.hpp": "#pragma once\n",
    "models/onnx.cpp": "#include <onnx/onnx_pb.h>\n#include <toml++/toml.h>\n",
    "trace/perfetto.cpp": '#include "perfetto.pb.h"\n',
    "bench/layers.cpp": '#include <benchmark/benchmark.h>\n#include "calibrate/samples.hpp"\n',
    "core/file.cpp": "#include <unistd.h>\n#include <sys/stat.h>\n",
    "tests/models/onnx_test.cpp": '#include "onnx_file.hpp"\n',
    "cli/run.cpp": '#include <CLI/CLI.hpp>\n#include "run/train.hpp"\n#include "sim/simulate.hpp"\n',
    "tests/sim/platform_test.cpp": '#include "sim/platform.hpp"\n#include "schedule/plan.hpp"\n#include <gtest/gtest.h>\n',
}


def check(files):
    with tempfile.TemporaryDirectory() as directory:
        for name, text in {**GOOD, **files}.items():
            path = pathlib.Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        result = subprocess.run([sys.executable, str(SCRIPT), "--root", directory], capture_output=True, text=True,
                                check=False)
        return result.returncode, result.stdout.strip()


class CheckLayers(unittest.TestCase):
    def test_a_good_house_passes(self):
        self.assertEqual(check({}), (0, "layers: good"))

    def test_each_planted_violation_is_named_by_file_and_line(self):
        planted = [
            ("core/bad.cpp", '\n#include "run/train.hpp"\n', "core/bad.cpp:2: core/ may not include run/"),
            ("core/bad.hpp", "#include <toml++/toml.h>\n", "core/bad.hpp:1: core/ includes only std and fmt"),
            ("core/bad.cpp", "#include <nlohmann/json.hpp>\n", "core/bad.cpp:1: core/ includes only std and fmt"),
            ("models/bad.cpp", '#include "schedule/plan.hpp"\n', "models/bad.cpp:1: models/ may not include schedule/"),
            ("calibrate/bad.cpp", '#include "models/zoo/zoo.hpp"\n', "calibrate/ may not include models/"),
            ("run/bad.cpp", '#include "schedule/plan.hpp"\n', "run/ may not include schedule/"),
            ("gui/bad.cpp", '#include "run/train.hpp"\n', "gui/ may not include run/"),
            ("sim/bad.cpp", "#include <vector>\n# include <mpi.h>\n", "sim/bad.cpp:2: MPI belongs to kernels, run/"),
            ("run/bad.cpp", "#include <simgrid/s4u.hpp>\n", "SimGrid belongs to sim/"),
            ("cli/bad.cpp", '#include "sim/platform.hpp"\n', "SimGrid belongs to sim/"),
            ("cli/bad.cpp", "#include <QString>\n", "Qt belongs to gui/"),
            ("run/bad.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n", "oneDNN belongs to kernels/"),
            ("run/bad.cpp", "#include <cuda_runtime.h>\n", "CUDA belongs to kernels/"),
            ("cli/bad.cpp", "#include <google/protobuf/message.h>\n", "protobuf belongs to models, trace/"),
            ("cli/bad.cpp", '#include "perfetto.pb.h"\n', "protobuf belongs to models, trace/"),
            ("trace/bad.cpp", "#include <onnx/onnx_pb.h>\n", "ONNX belongs to models/"),
            ("run/bad.cpp", "#include <hwloc.h>\n", "hwloc belongs to models/"),
            ("kernels/bad.cpp", "#include <benchmark/benchmark.h>\n", "Google Benchmark belongs to bench/"),
            ("bench/bad.cpp", "#include <CLI/CLI.hpp>\n", "CLI11 belongs to cli/"),
            ("tests/cli/bad_test.cpp", "#include <mpi.h>\n", "tests/cli/bad_test.cpp:1: MPI belongs to"),
            ("sim/bad.cpp", '#include "../core/op.hpp"\n', "name the folder"),
            ("sim/bad.cpp", '#include "platform.hpp"\n', "name the folder"),
        ]
        for name, text, expected in planted:
            with self.subTest(file=name, text=text):
                code, output = check({name: text})
                self.assertEqual(code, 1)
                self.assertIn(expected, output)
                self.assertEqual(len(output.splitlines()), 1, output)

    def test_a_library_hidden_behind_two_headers_is_found(self):
        code, output = check({
            "sim/inner.hpp": '#include "sim/platform.hpp"\n',
            "sim/outer.hpp": '#include "sim/inner.hpp"\n',
            "cli/bad.cpp": '#include "core/op.hpp"\n#include "sim/outer.hpp"\n',
        })
        self.assertEqual((code, output), (1, "cli/bad.cpp:2: SimGrid belongs to sim/ (sim/outer.hpp)"))

    def test_headers_that_include_each_other_do_not_hang_it(self):
        self.assertEqual(check({"sim/a.hpp": '#include "sim/b.hpp"\n', "sim/b.hpp": '#include "sim/a.hpp"\n'})[0], 0)


if __name__ == "__main__":
    unittest.main()
