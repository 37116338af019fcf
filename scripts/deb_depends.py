#!/usr/bin/env python3
"""Prints the Depends field of a .deb for another architecture: the packages of the libraries that the given files load.

  scripts/deb_depends.py --sysroot DIR FILE...

dpkg-shlibdeps knows only what is installed on this machine. DIR/shlibs holds the shlibs files of the packages in DIR
(scripts/cross_x86_64 writes it).
"""

import argparse
import pathlib
import re
import sys

from wheel import needed

SONAME = re.compile(r"(.+)\.so\.(.+)|(.+)-(\d.*)\.so")


def providers(shlibs):
    """The dependency for each library and version."""
    found = {}
    for line in shlibs.read_text().splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and not words[0].endswith(":"):  # "udeb:" lines are for the installer
            found[words[0], words[1]] = words[2]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sysroot", required=True, type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    known = providers(options.sysroot / "shlibs")
    depends = set()
    for name in sorted({name for file in options.files for name in needed(file)}):
        parts = [part for part in SONAME.fullmatch(name).groups() if part]
        if tuple(parts) not in known:
            sys.exit(f"{name}: no package in {options.sysroot} has it")
        depends.add(known[tuple(parts)])
    print(", ".join(sorted(depends)))


if __name__ == "__main__":
    main()
