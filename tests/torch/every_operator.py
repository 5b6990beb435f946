#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Walks the operators of ONNX's standard domain: each, in one of its own node tests (onnx.backend.test), must be imported,
its first input fed in and the others constant, unless it is among REFUSED.

  every_operator.py REHEARSE [FOLDER]
  every_operator.py --write FOLDER

Where a test reads truth values, bytes or nothing, numbers are fed in around it (`fed`). FOLDER: tests that --write wrote,
with a python3-onnx of its own, which may know later operator sets than the one beside REHEARSE.
Exits with 77, which ctest calls skipped, where python3-onnx is absent.
"""
import builtins
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

# What it makes depends on data, or is a sequence, an optional or a text.
REFUSED = {"Compress", "ConcatFromSequence", "If", "ImageDecoder", "Loop", "NonMaxSuppression", "NonZero", "Optional",
           "OptionalGetElement", "OptionalHasElement", "RegexFullMatch", "Scan", "SequenceAt", "SequenceConstruct",
           "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
           "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "Unique"}
# Made of sizes alone, which are constant in a network.
OF_SIZES = {"BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "MelWeightMatrix", "Range"}


def untested():
    """Models of one operator each that ONNX has no test of: inputs, sizes of the output, attributes."""
    from onnx import TensorProto, helper
    image, row, regions = ("x", [2, 3, 8, 6]), ("x", [2, 5]), ("regions", [4, 5])
    for kind, inputs, made, attributes in [
            ("GlobalLpPool", [image], [2, 3, 1, 1], {"p": 2}), ("LpNormalization", [image], image[1], {"axis": 1, "p": 1}),
            ("LpPool", [image], [2, 3, 7, 5], {"kernel_shape": [2, 2], "p": 3}),
            ("MaxRoiPool", [image, regions], [4, 3, 2, 2], {"pooled_shape": [2, 2]}),
            ("Multinomial", [row], [2, 7], {"sample_size": 7}), ("RandomNormalLike", [row], row[1], {}),
            ("RandomNormal", [], row[1], {"shape": row[1]}), ("RandomUniform", [], row[1], {"shape": row[1]})]:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs]
        kept = [helper.make_tensor(name, TensorProto.FLOAT, sizes, [0.0] * (sizes[0] * sizes[1])) for name, sizes in inputs[1:]]
        out = helper.make_tensor_value_info("y", TensorProto.INT32 if kind == "Multinomial" else TensorProto.FLOAT, made)
        node = helper.make_node(kind, [name for name, _ in inputs], ["y"], **attributes)
        yield kind.lower(), helper.make_model(helper.make_graph([node], kind, infos[:1], [out], kept),
                                              opset_imports=[helper.make_opsetid("", 13)])


def cases():
    import numpy
    for name in ("float", "bool", "int", "object"):  # of which onnx 1.12 still speaks
        if not hasattr(numpy, name):
            setattr(numpy, name, getattr(builtins, name))
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        model, values = case.model, list(case.data_sets[0][0])
        inputs = list(model.graph.input)
        of_sizes = model.graph.node[0].op_type in OF_SIZES
        for info, value in list(zip(inputs, values))[0 if of_sizes else 1:]:
            if isinstance(value, TensorProto):  # of a type that NumPy has not
                kept = TensorProto()
                kept.CopyFrom(value)
                kept.name = info.name
            elif isinstance(value, (numpy.ndarray, numpy.generic)):
                kept = numpy_helper.from_array(numpy.asarray(value), info.name)
            else:
                continue
            model.graph.initializer.append(kept)
            model.graph.input.remove(info)
        yield case.name, model
    yield from untested()


def fed(model):
    """The model with numbers fed into it, which become what its first input holds or, where it has none, are added to
    what it makes; its outputs are numbers. None where it reads or makes texts, sequences or optionals, or reads numbers."""
    from onnx import ModelProto, TensorProto, helper
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
    made = ModelProto()
    made.CopyFrom(model)
    graph, nodes = made.graph, list(made.graph.node)
    infos = [*graph.input, *graph.output]
    if any(not info.type.HasField("tensor_type") or info.type.tensor_type.elem_type == TensorProto.STRING for info in infos):
        return None
    kind = infos[0].type.tensor_type.elem_type
    sizes = [each.dim_value for each in infos[0].type.tensor_type.shape.dim]
    if graph.input and kind in floats:
        return None
    for i, info in enumerate(graph.output):
        nodes.append(helper.make_node("Cast", [info.name], [f"number{i}"], to=TensorProto.FLOAT))
        info.name, info.type.tensor_type.elem_type = f"number{i}", TensorProto.FLOAT
    if graph.input:
        nodes.insert(0, helper.make_node("Cast", ["fed"], [graph.input[0].name], to=kind))
        graph.input.remove(graph.input[0])
    else:
        nodes.append(helper.make_node("Add", ["fed", "number0"], ["sum"]))
        graph.output[0].name, sizes = "sum", [2, *sizes]
    graph.input.insert(0, helper.make_tensor_value_info("fed", TensorProto.FLOAT, sizes))
    del graph.node[:]
    graph.node.extend(nodes)
    return made


def write(folder):
    """Writes each case, and what `fed` makes of it, as a file, and a list: file names with the operators in them, and all
    operators of the standard domain that this python3-onnx knows."""
    from onnx import defs
    files = {}
    for name, model in cases():
        for suffix, made in (("", model), (".fed", fed(model))):
            if made is not None:
                (folder / f"{name}{suffix}.onnx").write_bytes(made.SerializeToString())
                files[f"{name}{suffix}.onnx"] = sorted({node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")})
    kinds = sorted(schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated)
    (folder / "cases.json").write_text(json.dumps({"files": files, "operators": kinds}))


def walk(rehearse, folder):
    """Imports the cases of a folder that `write` filled; returns how many operators are not as they should be."""
    listed = json.loads((folder / "cases.json").read_text())
    imported, why = set(), collections.defaultdict(list)
    for file, kinds in listed["files"].items():
        if imported.issuperset(kinds):
            continue
        run = subprocess.run([rehearse, "models", str(folder / file)], capture_output=True, text=True, timeout=300)
        if run.returncode not in (0, 2):
            print(f"{file}: exit code {run.returncode}: {run.stderr[-300:]}")
            return 1
        if run.returncode == 0:
            imported.update(kinds)
        for kind in kinds if run.returncode != 0 else ():
            why[kind].append(f"{file}: {(run.stderr.strip().splitlines() or ['no reason'])[-1][-200:]}")
    kinds = set(listed["operators"])
    wrong = kinds - REFUSED - imported
    for kind in sorted(wrong):
        print(f"{kind} is not imported: {why[kind][:2]}")
    print(f"{len(kinds & imported - REFUSED)} of {len(kinds)} operators are imported, {len(kinds & REFUSED)} refused by intent")
    return len(wrong)


def main():
    warnings.filterwarnings("ignore")
    if len(sys.argv) == 3 and sys.argv[1] != "--write":
        return 1 if walk(sys.argv[1], pathlib.Path(sys.argv[2])) else 0
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-onnx)")
        return 77
    if sys.argv[1] == "--write":
        write(pathlib.Path(sys.argv[2]))
        return 0
    with tempfile.TemporaryDirectory(prefix="rehearse-onnx-") as folder:
        write(pathlib.Path(folder))
        return 1 if walk(sys.argv[1], pathlib.Path(folder)) else 0


if __name__ == "__main__":
    sys.exit(main())
