#!/usr/bin/env bash
set -euo pipefail

usage() {
  cat << 'END'
Usage: ./setup.sh [--help]

Installs the Debian packages foretoken needs (only those missing; as root or through sudo) and builds the program:
build/foretoken, and the Python module in build/python. Safe to run again: it then builds only what has changed.
END
}

case "${1-}" in
  "") ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/packages.sh

echo "[1/2] Packages"
install_packages "${build_packages[@]}"

echo "[2/2] Building build/foretoken and build/python"
# A build folder in which test.sh has switched the tests on keeps them.
if [[ ! -f build/build.ninja ]]; then
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DFORETOKEN_TESTS=OFF -DFORETOKEN_QUICK_BUILD=ON -DFORETOKEN_WARNINGS=OFF
fi
cmake --build build --target front_ends

echo "Done. Try: ./build/foretoken demo"
if [[ -d build/python ]]; then
  echo "From Python: PYTHONPATH=build/python python3 -c 'import foretoken; print(foretoken.demo())'"
fi
