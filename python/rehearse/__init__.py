# SPDX-License-Identifier: Apache-2.0
"""Rehearse a deep-learning training run before you ask for the machine.

    import rehearse
    prediction = rehearse.predict("resnet50", "summit", devices=[6, 96, 1536], batch=64)
    prediction[0].step_s, prediction[0].step_low_s, prediction[0].step_high_s
    prediction.to_dataframe()

Times are seconds, sizes bytes, rates a second. The band from step_low_s to step_high_s should hold the measured step nine
times in ten. What is wrong raises InputError (a ValueError), what cannot be InfeasibleError, a library's refusal BackendError.
"""
from . import _rehearse, _tables
from ._rehearse import (BackendError, InfeasibleError, InputError, Machine, Network, Point, Prediction, RankedPlan, Schedule,
                        Search, Timeline, Validation, __version__, frameworks, machines, networks)

__all__ = ["BackendError", "InfeasibleError", "InputError", "Machine", "Network", "Point", "Prediction", "RankedPlan", "Schedule",
           "Search", "Timeline", "Validation", "frameworks", "machines", "networks", "predict", "schedule", "search", "validate"]

_tables.attach()


def _network(model, fuse):
    return model if isinstance(model, Network) else Network(str(model), fuse=fuse)


def _machine(machine):
    return machine if isinstance(machine, Machine) else Machine(str(machine))


def _numbers(devices):
    return [int(devices)] if isinstance(devices, int) else [int(each) for each in devices]


def _words(plan, batch, global_batch, precision, optimizer, framework=None):
    if batch is not None and global_batch is not None:
        raise InputError("batch excludes global_batch: samples of one device, or of all together")
    words = _rehearse.JobWords()
    words.plan, words.batch, words.global_batch = plan, 32 if batch is None else batch, global_batch
    words.precision, words.optimizer = precision, optimizer
    if framework is not None:
        words.framework = str(framework)
    return words


def predict(model, machine, *, devices=1, plan="data", batch=None, global_batch=None, precision="fp32", optimizer="sgd",
            framework=None, pilot=None, fuse="off", baseline=None, bands=True):
    """Predicts a training step of `model` on each number of `devices` of `machine`.

    model: a Network, a name (networks()) or an .onnx file. machine: a Machine, a name (machines()) or a .toml file.
    devices: a number, or several for a scaling study. batch: samples of a step on one device (32); or global_batch, on all.
    plan, precision, optimizer, fuse: the words of `rehearse predict --help`. framework: a profile (frameworks()) or a file.
    pilot: {devices: measured step}, a step in seconds, or as "97ms" or "1320/s" (samples): computation is scaled to meet the
    one of fewest devices. baseline: devices that efficiency is relative to. bands=False takes a third of the time.
    Returns a Prediction, with a Point for each number of devices in ascending order.
    """
    return _rehearse.predict(_network(model, fuse), _machine(machine),
                             _words(plan, batch, global_batch, precision, optimizer, framework), _numbers(devices),
                             dict(pilot or {}), baseline, bands)


def search(model, machine, *, devices, global_batch, precision="fp32", optimizer="sgd", framework=None, fuse="off", top=10):
    """The `top` best plans of a step of `global_batch` samples on one of the numbers of `devices`, under the framework.

    What the framework settles of ZeRO's stage, overlap and the all-reduce is not varied; predict() with the same framework
    gives the same steps. Returns a Search.
    """
    return _rehearse.search(_network(model, fuse), _machine(machine),
                            _words("data", None, global_batch, precision, optimizer, framework), _numbers(devices), top)


def schedule(model, machine="summit", *, devices=1, plan="data", batch=None, global_batch=None, precision="fp32", optimizer="sgd",
             fuse="off"):
    """Which rank does what, in which order, without time. Returns a Schedule; print(schedule.draw()) shows it."""
    return _rehearse.schedule(_network(model, fuse), _machine(machine),
                              _words(plan, batch, global_batch, precision, optimizer), devices)


def validate(filter="", *, rows=None):
    """Published training runs and collectives, predicted from their settings: how far off are we?

    filter: a regular expression; the rows in whose id, system, machine, device, model, precision, strategy or metric it
    matches. rows: a .csv file with the columns of calibrate/published, instead of the rows that come with the package.
    All of these take minutes. Returns a Validation: summary, to_dicts(), to_dataframe().
    """
    return _rehearse.validate(filter, "" if rows is None else str(rows))
