# SPDX-License-Identifier: Apache-2.0
"""Rehearse a deep-learning training run before you ask for the machine.

    import rehearse
    prediction = rehearse.predict("resnet50", "summit", devices=[6, 96, 1536], batch=64)
    prediction[0].step_s, prediction[0].step_low_s, prediction[0].step_high_s
    prediction.to_dataframe()

Times are seconds, sizes bytes, rates a second. The band from step_low_s to step_high_s should hold the measured step nine
times in ten. What is wrong raises InputError (a ValueError), what cannot be InfeasibleError, a library's refusal BackendError.
"""
import operator
import os
import warnings

from . import _rehearse, _tables
from ._rehearse import (BackendError, InfeasibleError, InputError, Machine, Network, Point, Prediction, RankedPlan, Schedule,
                        Search, Timeline, Validation, __version__, frameworks, machines, networks)

__all__ = ["BackendError", "InfeasibleError", "InputError", "Machine", "Network", "Point", "Prediction", "RankedPlan", "Schedule",
           "Search", "Timeline", "Validation", "frameworks", "machines", "networks", "predict", "schedule", "search", "validate"]

_tables.attach()


def _warn(texts):
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _name(value, what):
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise InputError(f"{what}: a name or a file is needed, not {value!r}")


def _text(value, what):
    if isinstance(value, str):
        return value
    raise InputError(f"{what}: a text is needed, not {value!r}")


def _network(model, fuse):
    return model if isinstance(model, Network) else Network(_name(model, "model"), fuse=_text(fuse, "fuse"))


def _machine(machine):
    if isinstance(machine, Machine):
        return machine
    return Machine.from_dict(machine) if isinstance(machine, dict) else Machine(_name(machine, "machine"))


def _is_truth(value):
    """True and False, of Python's or of NumPy's."""
    return type(value).__name__ in ("bool", "bool_")


def _count(value, what, most=2**63 - 1):
    """A whole number, of Python's or of NumPy's; True is none."""
    try:
        count = None if _is_truth(value) else operator.index(value)
    except TypeError:
        count = None
    if count is None:
        raise InputError(f"{what}: a whole number is needed, not {value!r}")
    if abs(count) > most:
        raise InputError(f"{what}: at most {most} is possible, not {count}")
    return count


def _counts(devices):
    try:
        several = [] if isinstance(devices, (str, bytes)) else list(devices)
    except TypeError:
        return [_count(devices, "devices")]
    if not several:
        raise InputError(f"devices: one or several whole numbers are needed, not {devices!r}")
    return [_count(each, "devices") for each in several]


def _truth(value, what):
    if _is_truth(value) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise InputError(f"{what}: True or False is needed, not {value!r}")


def _measured(value):
    """A pilot's step: text as it is, or seconds."""
    if isinstance(value, str):
        return value
    try:
        if not _is_truth(value) and not isinstance(value, (bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f'pilot: seconds, "97ms" or "1320/s" are needed, not {value!r}')


def _pilots(pilot):
    try:
        steps = {} if pilot is None else dict(pilot)
    except (TypeError, ValueError):
        raise InputError(f"pilot: {{devices: measured step}} is needed, not {pilot!r}") from None
    return {_count(devices, "pilot"): _measured(step) for devices, step in steps.items()}


def _words(plan, batch, global_batch, precision, optimizer, framework=None):
    if batch is not None and global_batch is not None:
        raise InputError("batch excludes global_batch: samples of one device, or of all together")
    words = _rehearse.JobWords()
    words.plan, words.batch = _text(plan, "plan"), 32 if batch is None else _count(batch, "batch")
    words.global_batch = None if global_batch is None else _count(global_batch, "global_batch")
    words.precision, words.optimizer = _text(precision, "precision"), _text(optimizer, "optimizer")
    if framework is not None:
        words.framework = _name(framework, "framework")
    return words


def predict(model, machine, *, devices=1, plan="data", batch=None, global_batch=None, precision="fp32", optimizer="sgd",
            framework=None, pilot=None, fuse="off", baseline=None, bands=True):
    """Predicts a training step of `model` on each number of `devices` of `machine`.

    model: a Network, a name (networks()) or an .onnx file. machine: a Machine, a name (machines()), a .toml file, or a dict.
    devices: a number, or several for a scaling study. batch: samples of a step on one device (32); or global_batch, on all.
    plan, precision, optimizer, fuse: the words of `rehearse predict --help`. framework: a profile (frameworks()) or a file.
    pilot: {devices: measured step}, a step in seconds, or as "97ms" or "1320/s" (samples): computation is scaled to meet the
    one of fewest devices. baseline: devices that efficiency is relative to. bands=False takes a third of the time.
    Returns a Prediction, with a Point for each number of devices in ascending order. Why its figures may be wrong, or that
    the job does not fit, is a warning of Python's; what else is to be known is in its `notes`.
    """
    prediction = _rehearse.predict(_network(model, fuse), _machine(machine),
                                   _words(plan, batch, global_batch, precision, optimizer, framework), _counts(devices),
                                   _pilots(pilot), None if baseline is None else _count(baseline, "baseline"),
                                   _truth(bands, "bands"))
    _warn(prediction.warnings)
    return prediction


def search(model, machine, *, devices, global_batch, precision="fp32", optimizer="sgd", framework=None, fuse="off", top=10):
    """The `top` best plans of a step of `global_batch` samples on one of the numbers of `devices`, under the framework.

    What the framework settles of ZeRO's stage, overlap and the all-reduce is not varied; predict() with the same framework
    gives the same steps. Returns a Search; InfeasibleError where no plan fits.
    """
    network = _network(model, fuse)
    _warn(network.warnings)
    return _rehearse.search(network, _machine(machine), _words("data", None, global_batch, precision, optimizer, framework),
                            _counts(devices), _count(top, "top", 2**31 - 1))


def schedule(model, machine="summit", *, devices=1, plan="data", batch=None, global_batch=None, precision="fp32", optimizer="sgd",
             fuse="off"):
    """Which rank does what, in which order, without time. Returns a Schedule; print(schedule.draw()) shows it."""
    return _rehearse.schedule(_network(model, fuse), _machine(machine),
                              _words(plan, batch, global_batch, precision, optimizer), _count(devices, "devices"))


def validate(filter="", *, rows=None):
    """Published training runs and collectives, predicted from their settings: how far off are we?

    filter: a regular expression; the rows in whose id, system, machine, device, model, precision, strategy or metric it
    matches. rows: a .csv file with the columns of calibrate/published, instead of the rows that come with the package.
    All of these take minutes. Returns a Validation: summary, to_dicts(), to_dataframe().
    """
    return _rehearse.validate(_text(filter, "filter"), "" if rows is None else _name(rows, "rows"))
