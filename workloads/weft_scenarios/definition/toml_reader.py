# SPDX-License-Identifier: Apache-2.0
"""Reads tables of scenario files; errors name the line and what would be right."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from weft_scenarios.definition.toml_positions import Path, Source
from weft_scenarios.errors import ScenarioError

T = TypeVar("T")
Value = str | int | float
"""A point of an axis: a number or a name."""

_REQUIRED: Any = object()


class Table:
    """A table whose keys are taken one by one; `end` refuses unknown keys."""

    def __init__(
        self, content: Mapping[str, Any], source: Source, path: Path = (), place: str = ""
    ) -> None:
        """`path` is the table's path in the file; `place` names it in errors."""
        self._content = dict(content)
        self._known: list[str] = []
        self._source = source
        self._path = path
        self._place = place

    def fail(self, what: str, key: str | None = None) -> ScenarioError:
        """Make an error about this table, or about one `key` of it."""
        at = self._source.at(self._path if key is None else (*self._path, key))
        return ScenarioError(f"{at}: {self._place}{what}")

    def take(self, key: str, kind: Callable[[Any], T | None], right: str, default: Any) -> T:
        """Take the value of `key`, converted by `kind`; `right` describes a valid value."""
        self._known.append(key)
        if key not in self._content:
            if default is _REQUIRED:
                raise self.fail(f"{key} is missing; give {right}")
            return default  # type: ignore[no-any-return]
        value = self._content.pop(key)
        made = kind(value)
        if made is None:
            raise self.fail(f"{key} = {value!r}: give {right}", key)
        return made

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """Take a string."""
        return self.take(key, _text, 'a string, such as "..."', default)

    def count(self, key: str, default: Any = _REQUIRED) -> int:
        """Take a whole number from 1."""
        return self.take(key, _count, "a whole number from 1", default)

    def count_or_table(self, key: str, default: int | None = None) -> "int | Table":
        """Take a whole number from 1, or a table with details."""
        right = "a whole number from 1, or a table"
        kind = lambda v: v if isinstance(v, dict) else _count(v)  # noqa: E731
        found: Any = self.take(key, kind, right, _REQUIRED if default is None else default)
        return self._inner(found, (key,), key) if isinstance(found, dict) else found

    def percent(self, key: str) -> float:
        """Take a percentage such as "5%": above 0, at most 100."""
        return self.take(key, _percent, 'a share above 0, such as "5%"', _REQUIRED)

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """Take a number."""
        return self.take(key, _number, "a number", default)

    def switch(self, key: str, default: bool) -> bool:
        """Take true or false."""
        kind = lambda v: v if isinstance(v, bool) else None  # noqa: E731
        return self.take(key, kind, "true or false", default)

    def choice(self, key: str, choices: Iterable[str], default: Any = _REQUIRED) -> str:
        """Take one of `choices`."""
        names = list(choices)
        kind = lambda v: v if isinstance(v, str) and v in names else None  # noqa: E731
        return self.take(key, kind, f"one of {', '.join(names)}", default)

    def names(self, key: str, default: Any = _REQUIRED) -> list[str]:
        """Take a list of different strings."""
        return self.take(
            key, _names, 'a list of different names, such as ["rb", "minrtt"]', default
        )

    def value(self, key: str, right: str, default: Any = _REQUIRED) -> Any:
        """Take a number or a name."""
        return self.take(key, _value, right, default)

    def values(self, key: str, default: Any = _REQUIRED) -> list[Value]:
        """Take a list of numbers or names."""
        return self.take(key, _values, "a list of different numbers or names", default)

    def flags(self, key: str) -> dict[str, str]:
        """Take a table of flags of `weft run`, named without their dashes."""
        return self.take(key, _flags, 'flags of `weft run`, such as { send-buffer = "64KiB" }', {})

    def mapping(self, key: str, default: Any = _REQUIRED) -> dict[str, Any]:
        """Take a table as a dictionary."""
        return self.take(key, _mapping, f"a table [{key}]", default)

    def tables(self, key: str) -> list["Table"]:
        """Take an array of tables; errors name each by its `name`, or by its number from 1."""
        rows = self.take(key, _rows, f"tables [[{key}]]", [])
        return [
            self._inner(row, (key, index), f"{key} {row.get('name', index + 1)}")
            for index, row in enumerate(rows)
        ]

    def table(self, key: str) -> "Table | None":
        """Take a table, if it is there."""
        content = self.mapping(key, None)
        return None if content is None else self._inner(content, (key,), key)

    def _inner(self, content: Mapping[str, Any], path: Path, place: str) -> "Table":
        return Table(content, self._source, self._path + path, f"{self._place}{place}: ")

    def content(self) -> dict[str, Any]:
        """Give all keys that were not taken yet."""
        return dict(self._content)

    def end(self) -> None:
        """Refuse unknown keys."""
        for key in self._content:
            near = difflib.get_close_matches(key, self._known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._known)}"
            raise self.fail(f"{key} is not a key here; {hint}", key)


def _text(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _percent(value: Any) -> float | None:
    if not isinstance(value, str) or not re.fullmatch(r"\d+(\.\d+)?%", value):
        return None
    return share if 0 < (share := float(value[:-1])) <= 100 else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _values(value: Any) -> list[Value] | None:
    sound = isinstance(value, list) and len(value) > 0 and len(set(map(repr, value))) == len(value)
    if not sound or any(_value(item) is None for item in value):
        return None
    return list(value)


def _value(item: Any) -> Any:
    return item if isinstance(item, str | int | float) and not isinstance(item, bool) else None


def _names(value: Any) -> list[str] | None:
    values = _values(value)
    return None if values is None or not all(isinstance(v, str) for v in values) else list(value)


def _flags(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    # One that takes no value, such as --tell-sizes, is true, and empty from here on.
    made = {key: "" if item is True else _value(item) for key, item in value.items()}
    if any(item is None for item in made.values()):
        return None
    return {key: str(item) for key, item in made.items()}


def _mapping(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _rows(value: Any) -> list[dict[str, Any]] | None:
    sound = isinstance(value, list) and all(isinstance(row, dict) for row in value)
    return value if sound else None
