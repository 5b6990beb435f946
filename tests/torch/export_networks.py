#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the networks of networks.py as .onnx files without their weights, with what PyTorch counts beside them.

  export_networks.py FOLDER [--only NAME,...] [--opsets 11,13,16] [--quick] [--large]

FOLDER/counts.json maps each file to {"parameters", "multiply_adds" of one sample, "training"}: parameters are those of
the module, multiply-adds are counted at the operators that PyTorch dispatches.
"""
import argparse
import io
import itertools
import json
import pathlib
import sys
import warnings

import onnx
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
import export_extras  # noqa: E402
import export_onnx  # noqa: E402
import networks  # noqa: E402

warnings.filterwarnings("ignore")
LARGEST_KEPT = 65536  # bytes of a tensor that stays in the file
LARGEST = 2**31 - 2**20  # bytes of weights in one message of protobuf


def strip(data):
    model = onnx.load_model_from_string(data)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > LARGEST_KEPT and tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.ClearField("raw_data")
    return model.SerializeToString()


def zeros_like(graph, x, *_):
    """Of `aten::zero`, which PyTorch 1.13 does not export (Swin v2 sets the bias of its keys to 0)."""
    return graph.op("Mul", x, graph.op("Constant", value_t=torch.zeros(1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--opsets", default="11,13,16")
    parser.add_argument("--quick", action="store_true", help="one file of each network and mode")
    parser.add_argument("--large", action="store_true", help="the large networks instead")
    options = parser.parse_args()
    for opset in map(int, options.opsets.split(",")):
        torch.onnx.register_custom_op_symbolic("aten::zero", zeros_like, opset)
    options.folder.mkdir(parents=True, exist_ok=True)
    counts_file = options.folder / "counts.json"
    counts = json.loads(counts_file.read_text()) if counts_file.exists() else {}
    refused = []
    for name, make in (networks.LARGE if options.large else networks.NETWORKS).items():
        if options.only and name not in options.only.split(","):
            continue
        torch.manual_seed(0)
        module, inputs, axes = make()
        axis = next(iter(next(iter(axes.values()))))
        batch = inputs[0].shape[axis]
        module.train()
        export_onnx.leave_out(module)  # what is random and PyTorch does not export in training
        made = {"parameters": sum(p.numel() for p in module.parameters())} | export_extras.counts(module, inputs, batch)
        first, large = True, sum(each.numel() * each.element_size() for each in module.state_dict().values()) > LARGEST
        for training in (False, True):
            if name in networks.HEADS_IN_TRAINING:
                module.train(training)
                made |= export_extras.counts(module, inputs, batch)
            for opset in map(int, options.opsets.split(",")):
                for dynamic in (False, True):
                    if options.quick and (opset != 13 or dynamic == training):
                        continue
                    file = f"{name}.{'train' if training else 'eval'}.{opset}.{'open' if dynamic else 'fixed'}.onnx"
                    module.train(training)
                    if training:
                        export_onnx.leave_out(module)
                    stream = io.BytesIO()
                    mode = torch.onnx.TrainingMode.PRESERVE if training else torch.onnx.TrainingMode.EVAL
                    try:
                        torch.onnx.export(module, inputs, stream, opset_version=opset, training=mode,
                                          do_constant_folding=not training, export_params=not large, input_names=list("xyz")[:len(inputs)],
                                          dynamic_axes=axes if dynamic else None)
                    except Exception as error:  # what PyTorch itself cannot export is none of ours
                        refused.append(f"{file}: {str(error).splitlines()[0][:150]}")
                        continue
                    data = stream.getvalue()
                    tensors = itertools.starmap(export_onnx.initializer, module.state_dict().items())
                    (options.folder / file).write_bytes(data + b"".join(tensors) if large else strip(data))
                    counts[file] = made | {"training": training}
                    first = False
        print(name, made, "" if not first else "NOT EXPORTED", flush=True)
    counts_file.write_text(json.dumps(counts, indent=1))
    for line in refused:
        print("PyTorch does not export", line)


if __name__ == "__main__":
    main()
