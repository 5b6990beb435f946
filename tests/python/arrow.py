# SPDX-License-Identifier: Apache-2.0
"""Reads Arrow's C data interface field by field, as its specification lays it down, with nothing but ctypes."""
import ctypes


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private_data", ctypes.c_void_p)]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _of(capsule, name, kind):
    return ctypes.cast(_pointer(capsule, name), ctypes.POINTER(kind))


def names(capsule):
    """The names of the columns; the schema is left to its capsule."""
    schema = _of(capsule, b"arrow_schema", Schema)[0]
    assert schema.format == b"+s"
    return [schema.children[i][0].name.decode() for i in range(schema.n_children)]


def _values(kind, array):
    assert (array.offset, array.null_count) == (0, 0) and not array.buffers[0]
    length = array.length
    if kind in (b"l", b"g"):
        number = ctypes.c_int64 if kind == b"l" else ctypes.c_double
        assert array.n_buffers == 2
        return list((number * length).from_address(array.buffers[1]))
    assert kind == b"U" and array.n_buffers == 3
    offsets = list((ctypes.c_int64 * (length + 1)).from_address(array.buffers[1]))
    text = ctypes.string_at(array.buffers[2], offsets[-1])
    return [text[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]


def table(schema_capsule, array_capsule):
    """The columns by their names. Takes both structs over and releases them, as a consumer does."""
    schemas, arrays = _of(schema_capsule, b"arrow_schema", Schema), _of(array_capsule, b"arrow_array", Array)
    schema, array = schemas[0], arrays[0]
    assert schema.n_children == array.n_children and array.n_buffers == 1
    columns = {}
    for i in range(schema.n_children):
        child = array.children[i][0]
        assert child.length == array.length
        columns[schema.children[i][0].name.decode()] = _values(schema.children[i][0].format, child)
    moved = Array.from_buffer_copy(array.children[0][0])  # a child may be moved out, and released later than its parent
    array.children[0][0].release = type(array.release)()
    array.release(arrays)
    schema.release(schemas)
    assert not array.release and not schema.release
    moved.release(ctypes.byref(moved))
    return columns
