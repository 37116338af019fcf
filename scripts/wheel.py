#!/usr/bin/env python3
"""Packs an installed foretoken into a Python wheel: the module, the program, the data.

  cmake --install build --prefix PREFIX && scripts/wheel.py --prefix PREFIX --out DIR

The wheel is for the Python version and the machine of the build, and needs the shared libraries that the program was
linked with (fmt, yaml-cpp, SQLite, zlib). Equal prefixes give equal bytes.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import platform
import re
import sys
import zipfile

MODULE = re.compile(r"_foretoken\.cpython-(\d+)-.*\.so$")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def contents(prefix, version):
    """Pairs of a file and its name in the wheel."""
    package = prefix / "lib/python3/dist-packages/foretoken"
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file, f"foretoken/{file.relative_to(package)}"
    shared = prefix / "share/foretoken"
    for file in sorted(shared.rglob("*")):
        if file.is_file():
            yield file, f"foretoken-{version}.data/data/share/foretoken/{file.relative_to(shared)}"
    yield prefix / "bin/foretoken", f"foretoken-{version}.data/scripts/foretoken"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    options = parser.parse_args()
    module = next((found for file in (options.prefix / "lib/python3/dist-packages/foretoken").glob("*.so")
                   if (found := MODULE.match(file.name))), None)
    bills = sorted((options.prefix / "share/doc").rglob("foretoken.spdx.json"))
    if not module or not bills:
        sys.exit(f"{options.prefix}: expected an installed foretoken with its Python module")
    version = json.loads(bills[0].read_text())["packages"][0]["versionInfo"]
    tag = f"cp{module[1]}-cp{module[1]}-linux_{platform.machine()}"
    info = f"foretoken-{version}.dist-info"
    made = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: foretoken\nVersion: {version}\n"
                            "Summary: Predicts time, memory, energy and cost of ML workloads\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: foretoken\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/sboms/foretoken.spdx.json": bills[0].read_text(),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    wheel = options.out / f"foretoken-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
            record.append(f"{name},{digest(data)},{len(data)}")

        for file, name in contents(options.prefix, version):
            add(name, file.read_bytes(), 0o755 if "/scripts/" in name else 0o644)
        for name, text in made.items():
            add(name, text.encode())
        record.append(f"{info}/RECORD,,")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
    print(wheel)


if __name__ == "__main__":
    main()
