"""Writes commands.pyi: every command with all its flags, for editors and type checkers.

write_stubs.py OUTPUT (with the package on the path)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HEAD = """\
# Written by the build from what the commands declare.
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from foretoken.result import Result

Text = str | PathLike[str] | int | float | Mapping[str, Any]

def run(command: str, *words: str | PathLike[str], **flags: Any) -> Result: ...
def ask(spec: Mapping[str, Any]) -> Result: ...
def help(*command: str) -> None: ...
def python_name(name: str) -> str: ...
"""

TYPES = {
    "flag": "bool",
    "text": "Text | Sequence[Text]",
    "list": "Text | Sequence[Text]",
    "texts": "Text | Sequence[Text]",
    "integer": "int | str",
    "number": "float | str",
}


def flag_type(flag: dict[str, Any]) -> str:
    if flag["kind"] != "choice":
        return TYPES[flag["kind"]]
    return f"Literal[{', '.join(repr(choice) for choice in flag['choices'])}]"


def all_flags(command: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of the command and its subcommands, by their first names."""
    flags = {flag["names"][0]: flag for flag in command["flags"]}
    for subcommand in command["subcommands"]:
        for name, flag in all_flags(subcommand).items():
            if name in flags and flag_type(flags[name]) != flag_type(flag):
                flag = {**flag, "kind": "text"}
            flags[name] = flag
    return flags


def parameters(command: dict[str, Any], python_name: Any) -> list[str]:
    lines = []
    for flag in all_flags(command).values():
        for name in flag["names"]:
            lines.append(f"    {python_name(name)}: {flag_type(flag)} | None = ...,\n")
    return lines


def stub(command: dict[str, Any], python_name: Any) -> str:
    words = [flag for flag in command["flags"] if not flag["names"][0].startswith("-")]
    if command["subcommands"]:
        names = ", ".join(repr(subcommand["name"]) for subcommand in command["subcommands"])
        first = f"    subcommand: Literal[{names}],\n    /,\n    *words: str | PathLike[str],\n"
    elif words:
        first = "    *words: str | PathLike[str],\n"
    else:
        first = "    *,\n"
    flags = parameters(command, python_name)
    if not flags and first.startswith("    *,"):
        first = ""
    doc = f'    """{command["summary"]}."""\n'
    return f"def {python_name(command['name'])}(\n{first}{''.join(flags)}) -> Result:\n{doc}    ...\n"


def main(output: str) -> None:
    from foretoken import commands, man

    stubs = [stub(command, commands.python_name) for command in man()["commands"]]
    Path(output).write_text(HEAD + "".join("\n" + text for text in stubs))


if __name__ == "__main__":
    main(*sys.argv[1:])
