# SPDX-License-Identifier: Apache-2.0
"""Networks out of PyTorch, which is imported when a function is called."""
import os
import tempfile

from ._rehearse import Network


def network(model, example_inputs, *, loss=None, fuse="off", allow_unknown=False, opset=16):
    """The Network of a torch.nn.Module, as it is trained; the module is left as it was.

    example_inputs: a tensor or a tuple of them, with the batch in front. loss: "mse", "l1", "bce" or "cross-entropy" of the
    output and of a target, which becomes the last input; None where the module makes its loss itself or none is wanted.
    Layers have the names of the modules. No weights are written: shapes alone go through a temporary .onnx file.
    """
    import torch

    from . import _export_extras, _export_onnx
    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        path = os.path.join(folder, type(model).__name__ + ".onnx")
        try:
            with _export_extras.weightless(model), _export_extras.ending_in(loss, model, inputs) as fed:
                _export_onnx.export(model, fed, path, opset=opset)
        finally:
            with torch.no_grad():
                for buffer, kept in buffers:
                    buffer.copy_(kept)
        return Network(path, fuse=fuse, allow_unknown=allow_unknown)
