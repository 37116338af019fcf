"""The commands of foretoken as functions. commands.pyi, written by the build, has their flags."""

from __future__ import annotations

import functools
import json
import keyword
import shlex
from typing import Any, Callable

from foretoken import _foretoken
from foretoken.result import Result

__all__: list[str] = []  # one for each command, added below


def run(command: str, *words: str, **flags: Any) -> Result:
    """Answers a command, as its function does: run("kernel", "gemm", device="h100_sxm", m=1, n=1, k=1).

    Words are what a command line has without dashes: a subcommand or a name. Keywords are flags with _ for -:

        request_rate=4       --request-rate 4
        energy=True          --energy, and False --no-energy
        drain_at=[10, 20]    several values
        bind={"batch": 8}    --bind batch=8, where a flag takes several
        speculative_config={"method": "ngram"}     a dict is JSON, where it takes one
        trace=None           as if it were not there
    """
    arguments = [command, *words, *_flag_words(_declared_flags(command, words), flags)]
    text, document, exit_status = _foretoken.answer(arguments, _foretoken.__file__)
    return Result(json.loads(document), text, shlex.join(["foretoken", *arguments]), exit_status)


def help(*command: str) -> None:
    """Prints what the program says about itself, a command or a subcommand: help("kernel", "gemm")."""
    if command:
        _check_command(command[0])
    print(_foretoken.answer([*command, "--help"], _foretoken.__file__)[0], end="")


def python_name(name: str) -> str:
    """A flag or command as Python spells it: --request-rate is request_rate, import is import_."""
    spelled = name.lstrip("-").replace("-", "_")
    return spelled + "_" if keyword.iskeyword(spelled) else spelled


@functools.cache
def declaration(command: str) -> dict[str, Any]:
    """What `foretoken man COMMAND --json` says of a command: its flags and subcommands."""
    return json.loads(_foretoken.answer(["man", command], _foretoken.__file__)[1])["commands"][0]


def _check_command(command: str) -> None:
    """Raises the program's own error for a command that is not there: `man` and --help would speak of themselves."""
    if command not in dict(_foretoken.commands()):
        _foretoken.answer([command], _foretoken.__file__)


def _declared_flags(command: str, words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """By their names in Python, those of subcommands among the words included."""
    _check_command(command)
    level = declaration(command)
    flags = list(level["flags"])
    for word in words:
        chosen = [subcommand for subcommand in level["subcommands"] if subcommand["name"] == word]
        if chosen:
            level = chosen[0]
            flags += level["flags"]
    return {python_name(name): flag for flag in flags for name in flag["names"]}


def _flag_words(declared: dict[str, dict[str, Any]], flags: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in flags.items():
        if hasattr(value, "tolist"):  # NumPy's arrays and numbers
            value = value.tolist()
        if value is None:
            continue
        # A name that is not known is left to the program, which names the nearest one.
        flag = declared.get(name, {"names": ["--" + name.replace("_", "-")], "kind": "text"})
        words += _one_flag(flag["names"][0], flag["kind"], value)
    return words


def _one_flag(name: str, kind: str, value: Any) -> list[str]:
    if isinstance(value, bool) != (kind == "flag"):
        expected = "True or False" if kind == "flag" else "a value, not True or False"
        raise _foretoken.InputError(f"{name} = {value}\n  expected {expected}")
    if kind == "flag":
        return [name if value else "--no-" + name[2:]]
    if isinstance(value, dict) and kind in ("list", "texts"):  # sizes by name: batch=8
        texts = [f"{key}={_value_text(item)}" for key, item in value.items()]
    elif isinstance(value, (list, tuple, range)):
        texts = [_value_text(item) for item in value]
        if kind not in ("list", "texts"):  # one text, in which the command looks for commas
            texts = [",".join(texts)]
    else:
        texts = [_value_text(value)]
    words: list[str] = []
    for text in texts:
        if not name.startswith("-"):
            words.append(text)
        elif text.startswith("-") or not text:
            words.append(f"{name}={text}")
        else:
            words += [name, text]
    return words


def _value_text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _function(name: str, summary: str) -> Callable[..., Result]:
    def command(*words: str, **flags: Any) -> Result:
        return run(name, *words, **flags)

    command.__name__ = command.__qualname__ = python_name(name)
    command.__doc__ = f'{summary}.\n\nforetoken.help("{name}") lists the flags, each of which is a keyword here.'
    return command


for _name, _summary in _foretoken.commands():
    globals()[python_name(_name)] = _function(_name, _summary)
    __all__.append(python_name(_name))
