# SPDX-License-Identifier: Apache-2.0
"""Networks out of PyTorch, which is imported when a function is called."""
import os
import tempfile

from ._rehearse import Network


def network(model, example_inputs, *, fuse="off", allow_unknown=False, opset=13):
    """The Network of a torch.nn.Module: exported in training mode to a temporary file and read back.

    example_inputs: a tensor or a tuple of them, with the batch in front. Layers have the names that the export gives them.
    """
    import torch
    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    training = model.training
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, type(model).__name__ + ".onnx")
        try:
            torch.onnx.export(model, inputs, path, training=torch.onnx.TrainingMode.TRAINING,
                              do_constant_folding=False, opset_version=opset)
        finally:
            model.train(training)
        return Network(path, fuse=fuse, allow_unknown=allow_unknown)
