"""Carry the state of a dataclass through JSON: numbers, strings, lists, dicts, arrays and dataclasses of these.

The types come from the dataclass's own annotations, so the data names no code.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def dump(value: Any) -> Any:
    """Return `value` as strict-JSON-able data. NaN and Inf become strings, arrays lists with their type.

    Raises:
        TypeError: a field holds something that is no state (a function, an open file).
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: dump(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": [dump(v) for v in value.ravel().tolist()]}
    if isinstance(value, dict):
        return [[dump(k), dump(v)] for k, v in value.items()]
    if isinstance(value, list | tuple):
        return [dump(v) for v in value]
    if isinstance(value, np.generic):
        return dump(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"a {type(value).__name__} cannot be kept as state; use numbers, strings, lists, dicts, arrays or dataclasses"
    )


def load(kind: type[T], data: Any) -> T:
    """Return the object of type `kind` that `dump` described."""
    return _load(kind, data)  # type: ignore[no-any-return]


def _load(kind: Any, data: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        made = object.__new__(kind)
        for name, part in data.items():
            object.__setattr__(made, name, _load(hints[name], part))
        return made
    if isinstance(data, dict) and "dtype" in data:
        return np.array([float(v) if isinstance(v, str) else v for v in data["data"]], data["dtype"]).reshape(
            data["shape"]
        )
    if origin in (Union, UnionType):
        return None if data is None else _load(next(a for a in args if a is not type(None)), data)
    if origin is Literal or kind is Any:
        return data
    if origin is dict:
        return {_load(args[0], k): _load(args[1], v) for k, v in data}
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return tuple(_load(a, v) for a, v in zip(args, data, strict=True))
    if origin in (list, tuple):
        return (list if origin is list else tuple)(_load(args[0], v) for v in data)
    return float(data) if kind is float else data
