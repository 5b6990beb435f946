# SPDX-License-Identifier: Apache-2.0
"""Predictions and searches as dicts, data frames and HTML; timelines as arrays."""
import html
import json
import operator
import os
import tempfile

from . import _rehearse

POINT = ("devices", "nodes", "global_batch", "step_s", "step_low_s", "step_high_s", "samples_per_s", "flops_per_s", "compute_s",
         "exposed_comm_s", "bubble_s", "io_wait_s", "rest_s", "memory_peak_bytes", "memory_capacity_bytes", "fits", "mode", "basis",
         "measured_step_s", "speedup", "efficiency", "guessed_share")
PLAN = ("plan", "devices", "nodes", "step_s", "step_low_s", "step_high_s", "memory_peak_bytes", "estimated_step_s")
SHOWN = {  # heading: (attribute, how it is written)
    "devices": ("devices", str),
    "batch": ("global_batch", str),
    "step": ("step_s", lambda s: f"{_seconds(s)}"),
    "90 % band": (("step_low_s", "step_high_s"), lambda low, high: f"{_seconds(low)} to {_seconds(high)}"),
    "samples/s": ("samples_per_s", lambda rate: _figures(rate)),
    "efficiency": ("efficiency", lambda share: "" if share is None else f"{100 * share:.0f} %"),
    "memory": (("memory_peak_bytes", "fits"), lambda size, fits: _bytes(size) + ("" if fits else ", does not fit")),
    "basis": ("basis", str),
}


def _figures(value):
    """Four figures of a number, without an exponent."""
    return f"{float(f'{value:.4g}'):,.15g}"


def _in_units(value, units):
    """Four figures of a number in the largest of the units, (scale, name) in descending order, of which it is at least 1."""
    scale, name = next((each for each in units if float(f"{value / each[0]:.4g}") >= 1), units[-1])
    return f"{_figures(value / scale)} {name}"


def _seconds(value):
    return _in_units(value, ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))


def _bytes(value):
    return _in_units(value, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def _rows(items, names):
    return [{name: getattr(item, name) for name in names} for item in items]


def _frame(rows):
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas; to_dicts gives the same rows without it") from error
    return pandas.DataFrame(rows)


def _table(prediction):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in SHOWN)
    body = ""
    for point in prediction.points:
        cells = ""
        for names, write in SHOWN.values():
            names = names if isinstance(names, tuple) else (names,)
            cells += f'<td style="text-align:right">{html.escape(write(*(getattr(point, name) for name in names)))}</td>'
        body += f"<tr>{cells}</tr>"
    remarks = "".join(f"<p>{html.escape(line)}</p>" for line in _remarks(prediction))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"


def _remarks(prediction):
    return [f"warning: {text}" for text in prediction.warnings] + [f"note: {text}" for text in prediction.notes]


def _shown(prediction):
    return "<rehearse.Prediction\n  " + "\n  ".join([*map(repr, prediction.points), *_remarks(prediction)]) + ">"


def _shown_point(point):
    fits = "" if point.fits else ", does not fit"
    return f"<rehearse.Point {point.devices} devices, {_seconds(point.step_s)} a step, {point.basis}{fits}>"


def _item(prediction, at):
    return prediction.points[at] if isinstance(at, slice) else prediction._point(at)


def _unpicklable(advice):
    def refuse(value):
        raise TypeError(f"a {type(value).__name__} cannot be pickled: {advice}")
    return refuse


def _errors(summary):
    body = ""
    for name, errors in summary.items():
        figures = [f"{100 * errors[key]:.1f} %" if key in errors else "" for key in ("median_error", "p90_error", "in_band")]
        cells = "".join(f'<td style="text-align:right">{each}</td>' for each in (name, errors["rows"], *figures))
        body += f"<tr>{cells}</tr>"
    head = "".join(f"<th>{each}</th>" for each in ("", "rows", "median error", "90th percentile", "in band"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _arrays(timeline):
    import numpy
    return {name: numpy.asarray(column) for name, column in timeline.columns().items()}


def _toml(value):
    """A value as TOML writes it on one line; JSON's strings are TOML's, too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(float(value))  # TOML has inf and nan, as Python writes them
    if isinstance(value, (str, bool)):
        return json.dumps(value, ensure_ascii=False)
    try:
        return str(operator.index(value))
    except TypeError:
        raise _rehearse.InputError(f"a machine has no value {value!r}: it has numbers, words, lists and dicts") from None


def _machine_of(tables, origin="machine"):
    """A Machine of dicts and lists as in its TOML format; {"name": "ours", "extends": "eos", ...} changes a known one."""
    if not isinstance(tables, dict):
        raise _rehearse.InputError(f"a machine is a dict of its tables, not {tables!r}")
    lines = (f"{json.dumps(str(key))} = {_toml(value)}\n" for key, value in tables.items())
    return _rehearse.Machine.from_toml("".join(lines), origin)


def _network_of(data, name="network", **options):
    """A Network out of the bytes of an .onnx file; the options are those of Network."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, (os.path.basename(name) or "network") + ".onnx")
        with open(path, "wb") as file:
            file.write(data)
        return _rehearse.Network(path, **options)


def _network_again(name, layers, notes):
    return _rehearse.Network.from_layers(name, layers, notes)


def attach():
    """Adds what is easier said in Python to the classes of the bindings."""
    prediction, search, point, timeline = _rehearse.Prediction, _rehearse.Search, _rehearse.Point, _rehearse.Timeline
    _rehearse.Machine.from_dict = staticmethod(_machine_of)
    _rehearse.Network.from_onnx = staticmethod(_network_of)
    _rehearse.Schedule._repr_html_ = lambda self: f"<pre>{html.escape(self.draw())}</pre>"
    point.to_dict = lambda self: _rows([self], POINT)[0]
    point.__repr__ = _shown_point
    prediction.to_dicts = lambda self: _rows(self.points, POINT)
    prediction.to_dataframe = lambda self: _frame(_rows(self.points, POINT))
    prediction._repr_html_ = _table
    prediction.__repr__ = _shown
    prediction.__getitem__ = _item
    for each in (point, prediction, _rehearse.Schedule, search):
        each.__reduce__ = _unpicklable("to_dict() or to_dicts(), where it has one, gives its figures")
    timeline.__reduce__ = _unpicklable("write() keeps it in a file that Timeline.read() takes")
    _rehearse.Network.__reduce__ = lambda self: (_network_again, (self.name, self.layers, self.notes))
    search.to_dicts = lambda self: _rows(self.plans, PLAN)
    search.to_dataframe = lambda self: _frame(_rows(self.plans, PLAN))
    validation = _rehearse.Validation
    validation.to_dataframe = lambda self: _frame(self.to_dicts())
    validation._repr_html_ = lambda self: _errors(self.summary)
    validation.__repr__ = lambda self: f"<rehearse.Validation of {len(self)} rows, {self.summary['cold']['rows']} predicted cold>"
    timeline.to_arrays = _arrays
    timeline.to_dataframe = lambda self: _frame(_arrays(self))
