#!/usr/bin/env python3
"""Packs an installed foretoken into a Python wheel: the module, the program, the data, and the shared libraries they need.

  cmake --install build --prefix PREFIX && scripts/wheel.py --prefix PREFIX --out DIR

The wheel is for the Python version, the machine and the C and C++ libraries of the build. Equal prefixes give equal bytes.
If the build is for another architecture, --sysroot DIR is the folder with the shared libraries of that architecture.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import zipfile

MODULE = re.compile(r"_foretoken\.cpython-(\d+)-(\w+)-.*\.so$")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


# Every system has these; a second copy of them in one process does harm.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so")


def needed(binary):
    """Names of the libraries that `binary` itself asks for."""
    listed = subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", listed)


def libraries_in(sysroot, machine, binary):
    """As shared_libraries, in the folder of another machine."""
    waiting, seen = needed(binary), set()
    while waiting:
        name = waiting.pop()
        if name in seen or OF_THE_SYSTEM.match(name):
            continue
        seen.add(name)
        places = [sysroot / top / f"{machine}-linux-gnu" / name for top in ("lib", "usr/lib")]
        file = next((place for place in places if place.exists()), None)
        if not file:
            sys.exit(f"{binary}: needs {name}, which {sysroot} lacks")
        yield name, file
        waiting += needed(file)


def shared_libraries(binary):
    """Names and files of the libraries that `binary` loads, libraries of libraries too."""
    listed = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name, _, rest = line.strip().partition(" => ")
        if not rest or OF_THE_SYSTEM.match(name):
            continue
        if rest.startswith("not found"):
            sys.exit(f"{binary}: needs {name}, which this machine lacks")
        yield name, pathlib.Path(rest.split(" (")[0])


def contents(prefix, version, libraries_of):
    """Pairs of a file and its name in the wheel."""
    package = prefix / "lib/python3/dist-packages/foretoken"
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file, f"foretoken/{file.relative_to(package)}"
    shared = prefix / "share/foretoken"
    for file in sorted(shared.rglob("*")):
        if file.is_file():
            yield file, f"foretoken-{version}.data/data/share/foretoken/{file.relative_to(shared)}"
    program = prefix / "bin/foretoken"
    yield program, f"foretoken-{version}.data/scripts/foretoken"
    libraries = {}
    for binary in [program, *sorted(package.glob("*.so"))]:
        libraries.update(libraries_of(binary))
    for name, file in sorted(libraries.items()):
        yield file, f"foretoken-{version}.data/data/lib/foretoken/{name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--sysroot", type=pathlib.Path)
    options = parser.parse_args()
    module = next((found for file in (options.prefix / "lib/python3/dist-packages/foretoken").glob("*.so")
                   if (found := MODULE.match(file.name))), None)
    bills = sorted((options.prefix / "share/doc").rglob("foretoken.spdx.json"))
    if not module or not bills:
        sys.exit(f"{options.prefix}: expected an installed foretoken with its Python module")
    version = json.loads(bills[0].read_text())["packages"][0]["versionInfo"]
    tag = f"cp{module[1]}-cp{module[1]}-linux_{module[2]}"
    libraries_of = shared_libraries
    if options.sysroot:
        def libraries_of(binary):
            return libraries_in(options.sysroot, module[2], binary)
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

        for file, name in contents(options.prefix, version, libraries_of):
            add(name, file.read_bytes(), 0o755 if "/scripts/" in name else 0o644)
        for name, text in made.items():
            add(name, text.encode())
        record.append(f"{info}/RECORD,,")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
    print(wheel)


if __name__ == "__main__":
    main()
