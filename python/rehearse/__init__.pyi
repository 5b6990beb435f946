# SPDX-License-Identifier: Apache-2.0
from os import PathLike
from typing import Any, Iterable, Literal, Mapping, Optional, Sequence, SupportsIndex, Union, overload

__version__: str

class InputError(ValueError): ...
class InfeasibleError(RuntimeError): ...
class BackendError(RuntimeError): ...

class Network:
    def __init__(self, name_or_file: _Path, *, fuse: str = "off", allow_unknown: bool = False, unfold: bool = False,
                 sizes: Mapping[str, int] = {}) -> None: ...
    @staticmethod
    def from_layers(name: str, layers: Iterable[dict[str, Any]], notes: Sequence[str] = ()) -> Network: ...
    @staticmethod
    def from_onnx(data: bytes, name: str = "network", *, fuse: str = "off", allow_unknown: bool = False, unfold: bool = False,
                  sizes: Mapping[str, int] = {}) -> Network: ...
    name: str
    parameters: int
    forward_flops: float
    layers: list[dict[str, Any]]
    notes: list[str]
    warnings: list[str]
    guessed_share: float
    def __len__(self) -> int: ...

class Machine:
    def __init__(self, name_or_file: _Path) -> None: ...
    @staticmethod
    def from_toml(text: str, origin: str = "machine") -> Machine: ...
    @staticmethod
    def from_dict(tables: Mapping[str, Any], origin: str = "machine") -> Machine: ...
    def to_toml(self) -> str: ...
    name: str
    summary: str
    nodes: int
    devices: int

class Point:
    devices: int
    nodes: int
    global_batch: int
    step_s: float
    step_low_s: float
    step_high_s: float
    samples_per_s: float
    flops_per_s: float
    compute_s: float
    exposed_comm_s: float
    bubble_s: float
    io_wait_s: float
    rest_s: float
    memory_peak_bytes: float
    memory_capacity_bytes: float
    fits: bool
    mode: str
    basis: Literal["measured", "anchored", "cold"]
    measured_step_s: Optional[float]
    speedup: Optional[float]
    efficiency: Optional[float]
    guessed_share: float
    def to_dict(self) -> dict[str, Any]: ...

class Timeline:
    @staticmethod
    def read(path: _Path) -> Timeline: ...
    title: str
    measured: bool
    ranks: int
    length_s: float
    def columns(self) -> dict[str, Any]: ...
    def to_arrays(self) -> dict[str, Any]: ...
    def to_dataframe(self) -> Any: ...
    def to_perfetto(self, path: _Path) -> None: ...
    def _repr_svg_(self) -> str: ...
    def write(self, path: _Path) -> None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

class Schedule:
    plan: str
    ranks: int
    memory_peak_bytes: float
    classes: dict[str, list[str]]
    def draw(self) -> str: ...

class Prediction:
    points: list[Point]
    timeline: Timeline
    schedule: Schedule
    explained: list[dict[str, Any]]
    pilots: list[dict[str, Any]]
    notes: list[str]
    warnings: list[str]
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def to_dataframe(self) -> Any: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, i: int) -> Point: ...
    @overload
    def __getitem__(self, i: slice) -> list[Point]: ...

class RankedPlan:
    plan: str
    devices: int
    nodes: int
    step_s: float
    step_low_s: float
    step_high_s: float
    memory_peak_bytes: float
    estimated_step_s: float

class Search:
    plans: list[RankedPlan]
    screened: int
    simulated: int
    too_large: int
    refusals: list[str]
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def to_dataframe(self) -> Any: ...
    def __len__(self) -> int: ...

class Validation:
    summary: dict[str, dict[str, Any]]
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def to_dataframe(self) -> Any: ...
    def __len__(self) -> int: ...

_Path = Union[str, "PathLike[str]"]
_Model = Union[Network, _Path]
_Machine = Union[Machine, _Path, dict[str, Any]]
_Counts = Union[SupportsIndex, Sequence[SupportsIndex]]

def networks() -> list[tuple[str, str]]: ...
def machines() -> list[tuple[str, str]]: ...
def frameworks() -> list[tuple[str, str]]: ...
def predict(model: _Model, machine: _Machine, *, devices: _Counts = 1, plan: str = "data", batch: Optional[SupportsIndex] = None,
            global_batch: Optional[SupportsIndex] = None, precision: str = "fp32", optimizer: str = "sgd",
            framework: Optional[_Path] = None, pilot: Optional[Mapping[int, Union[float, str]]] = None, fuse: str = "off",
            baseline: Optional[SupportsIndex] = None, bands: bool = True) -> Prediction: ...
def search(model: _Model, machine: _Machine, *, devices: _Counts, global_batch: SupportsIndex, precision: str = "fp32",
           optimizer: str = "sgd", framework: Optional[_Path] = None, fuse: str = "off", top: SupportsIndex = 10) -> Search: ...
def schedule(model: _Model, machine: _Machine = "summit", *, devices: SupportsIndex = 1, plan: str = "data",
             batch: Optional[SupportsIndex] = None, global_batch: Optional[SupportsIndex] = None, precision: str = "fp32",
             optimizer: str = "sgd", fuse: str = "off") -> Schedule: ...
def validate(filter: str = "", *, rows: Optional[_Path] = None) -> Validation: ...
