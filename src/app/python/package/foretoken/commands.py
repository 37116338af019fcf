"""The commands of foretoken as functions. commands.pyi, written by the build, has their flags."""

from __future__ import annotations

import json
import keyword
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

from foretoken import _foretoken
from foretoken._foretoken import InputError
from foretoken.result import Result

__all__: list[str] = []  # one for each command, added below


def run(command: str, *words: str | os.PathLike[str], **flags: Any) -> Result:
    """Answers a command, as its function does: run("kernel", "gemm", device="h100_sxm", m=1, n=1, k=1).

    Words are what a command line has without dashes: a subcommand, a name or a path. Keywords are flags with _ for -:

        request_rate=4       --request-rate 4
        energy=True          --energy, and False --no-energy
        drain_at=[10, 20]    several values
        bind={"batch": 8}    --bind batch=8, where a flag takes several
        prefill_pool={"count": 1, "tp": 2}         --prefill-pool count=1,tp=2, where it takes settings
        speculative_config={"method": "ngram"}     a dict is JSON, where it takes one
        trace=None           as if it were not there
    """
    texts = [str(_plain(word)) for word in words]
    return _result(*_foretoken.ask([_text(command), *texts], _fields(flags), _foretoken.__file__))


def ask(spec: Mapping[str, Any]) -> Result:
    """Answers a question as `foretoken COMMAND --print-spec` writes it: a command and its fields.

    ask({"command": "kernel gemm", "device": "h100_sxm", "m": 1, "n": 1, "k": 1})
    """
    return _result(*_foretoken.ask_spec(_plain(spec), _foretoken.__file__))


def help(*command: str) -> None:
    """Prints what the program says about itself, a command or a subcommand: help("kernel", "gemm")."""
    print(_foretoken.help([_text(str(word)) for word in command], _foretoken.__file__), end="")


def python_name(name: str) -> str:
    """A flag or command as Python spells it: --request-rate is request_rate, import is import_."""
    spelled = name.lstrip("-").replace("-", "_")
    return spelled + "_" if keyword.iskeyword(spelled) else spelled


def _result(text: str, document: str, exit_status: int, command: str) -> Result:
    return Result(json.loads(document), text, command, exit_status)


def _fields(flags: dict[str, Any]) -> dict[str, Any]:
    """Keywords as the program names its fields: import_ is import."""
    named = {_text(name[:-1] if keyword.iskeyword(name[:-1]) else name): _plain(value) for name, value in flags.items()}
    return {name: value for name, value in named.items() if value is not None}


def _plain(value: Any) -> Any:
    """What JSON has for a value of Python or NumPy."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return _text(os.fsdecode(value))
    if isinstance(value, Iterable):  # a set has no order of its own, bytes are no text, and a generator is read once
        raise InputError(f"{_shown(value)}\n  expected a list, a dict, a string, a number, True, False or None")
    is_number = isinstance(value, int) and abs(value) < 2**63 or isinstance(value, float) and math.isfinite(value)
    return value if is_number else _text(str(value))  # inf, and what the program will refuse


def _text(text: str) -> str:
    """Surrogates without their other half stand for no letter, and no file or model is named so."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{_shown(text)}\n  expected valid Unicode text (it has an unpaired surrogate)") from error
    return text


def _shown(value: Any) -> str:
    return ascii(value)[:60]


def _function(name: str, summary: str) -> Callable[..., Result]:
    def command(*words: str | os.PathLike[str], **flags: Any) -> Result:
        return run(name, *words, **flags)

    command.__name__ = command.__qualname__ = python_name(name)
    command.__doc__ = f'{summary}.\n\nforetoken.help("{name}") lists the flags, each of which is a keyword here.'
    return command


for _name, _summary in _foretoken.commands():
    globals()[python_name(_name)] = _function(_name, _summary)
    __all__.append(python_name(_name))
