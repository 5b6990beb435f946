#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Walks the operators of ONNX's standard domain: of each, one of its own node tests (onnx.backend.test) must be imported,
its first input fed in and the others constant, unless it is among REFUSED, of which none may be.

  every_operator.py REHEARSE

Exits with 77, which ctest calls skipped, where python3-onnx is absent.
"""
import builtins
import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

# What it makes depends on data, or is a sequence, an optional or a text.
REFUSED = {"Compress", "ConcatFromSequence", "If", "Loop", "NonMaxSuppression", "NonZero", "Optional",
           "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
           "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence", "StringNormalizer",
           "TfIdfVectorizer", "Unique"}
# Made of sizes alone: constants, of which no layer is left. Range, Shape and Size are found inside other networks.
CONSTANT = {"BlackmanWindow", "Constant", "ConstantOfShape", "HammingWindow", "HannWindow", "MelWeightMatrix",
            "RandomNormal", "RandomUniform", "Range", "Shape", "Size"}
# Of truth values or bytes alone in their tests: nothing that a network could be fed with.
NO_NUMBERS = {"And", "BitShift", "EyeLike", "Not", "Or", "Trilu", "Xor", "ConvInteger", "MatMulInteger", "QLinearConv",
              "QLinearMatMul"}
NO_TESTS = {"GlobalLpPool", "LpNormalization", "LpPool", "MaxRoiPool", "Multinomial", "RandomNormalLike"}


def cases():
    import numpy
    for name in ("float", "bool", "int", "object"):  # of which onnx 1.12 still speaks
        if not hasattr(numpy, name):
            setattr(numpy, name, getattr(builtins, name))
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        model, values = case.model, list(case.data_sets[0][0])
        inputs = list(model.graph.input)
        for info, value in list(zip(inputs, values))[1:]:
            if not isinstance(value, numpy.ndarray):
                continue
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)
        yield case.name, model


def main():
    warnings.filterwarnings("ignore")
    try:
        from onnx import defs
    except ImportError as error:
        print(f"skipped: {error} (Debian: python3-onnx)")
        return 77
    imported, why = set(), collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="rehearse-onnx-") as folder:
        for name, model in cases():
            file = pathlib.Path(folder) / f"{name}.onnx"
            file.write_bytes(model.SerializeToString())
            run = subprocess.run([sys.argv[1], "models", str(file)], capture_output=True, text=True, timeout=300)
            kinds = {node.op_type for node in model.graph.node}
            if run.returncode == 0:
                imported |= kinds
            for kind in kinds if run.returncode != 0 else ():
                why[kind].append(f"{name}: {(run.stderr.strip().splitlines() or ['no reason'])[-1][-200:]}")
            if run.returncode not in (0, 2):
                print(f"{name}: exit code {run.returncode}: {run.stderr[-300:]}")
                return 1
    wrong = 0
    kinds = {schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    for kind in sorted(kinds - REFUSED - CONSTANT - NO_NUMBERS - NO_TESTS - imported):
        wrong += 1
        print(f"{kind} is not imported: {why[kind][:2]}")
    print(f"{len(kinds & imported)} of {len(kinds)} operators are imported, {len(kinds & REFUSED)} refused by intent")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
