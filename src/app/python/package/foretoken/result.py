"""What a command answers."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


class Result(dict[str, Any]):
    """The JSON document of an answer, as a dict that also knows what the command line prints."""

    def __init__(self, document: dict[str, Any], text: str, command: str, exit_status: int = 0) -> None:
        super().__init__(document)
        self.text = text
        self.command = command  # the same question for a shell
        self.exit_status = exit_status  # 3: nothing fits or serves (see "failure"); 2: a check found mistakes

    def at(self, path: str) -> Any:
        """The value at a path of keys and positions: "seconds.value", "stages.0.operators".

        A key behind a list looks into each of its items: "devices.name" is a list of names.
        """
        return _at(self, path.split("."), path)

    def array(self, path: str) -> numpy.ndarray:
        """The list at a path as a NumPy array; lists of unequal length become an array of arrays."""
        import numpy

        values = self.at(path)
        if not isinstance(values, list):
            raise TypeError(f"{path} is no list but {type(values).__name__}")
        lengths = {len(value) if isinstance(value, list) else None for value in values}
        if len(lengths) > 1:
            ragged = numpy.empty(len(values), dtype=object)
            ragged[:] = [numpy.asarray(value) for value in values]
            return ragged
        return numpy.asarray(values)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<foretoken.Result of `{self.command}`: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th><td>{html.escape(shown)}</td></tr>"
            for key, shown in _summary(self)
        )
        return (
            f"<p><code>{html.escape(self.command)}</code></p>"
            f"<table>{rows}</table>"
            f"<details><summary>As the command line prints it</summary><pre>{html.escape(self.text)}</pre></details>"
        )


def _at(value: Any, keys: list[str], path: str) -> Any:
    for i, key in enumerate(keys):
        if isinstance(value, list) and not key.isdigit():
            return [_at(item, keys[i:], path) for item in value]
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError) as error:
            there = f"; there are {', '.join(value)}" if isinstance(value, dict) else ""
            raise KeyError(f"{path}: nothing at {key!r}{there}") from error
    return value


def _summary(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Single values and estimates; what is nested deeper is left to the text."""
    rows = []
    for key, value in document.items():
        if isinstance(value, dict) and {"value", "low", "high"} <= value.keys():
            rows.append((key, f"{_shown(value['value'])} [{_shown(value['low'])} to {_shown(value['high'])}]"))
        elif not isinstance(value, (dict, list)) and value not in (None, ""):
            rows.append((key, _shown(value)))
    return rows


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
