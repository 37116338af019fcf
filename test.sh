#!/usr/bin/env bash
set -euo pipefail

usage() {
  cat << 'END'
Usage: ./test.sh [--long] [--format] [--sanitize] [--all] [--fuzz-seconds N] [--help]

Installs what the tests need (as root or through sudo), builds into build/ and runs the fast tests.
Tests against measured data run when FORETOKEN_DATA names the folder that holds it; ctest lists them as Skipped otherwise.

  --long            also the tests that take long: searches, fits, every command in the documentation
  --format          also check the formatting, before the build, and take each compiler warning for an error
  --sanitize        also run the unit tests under the address and undefined-behaviour sanitizers (a second build, 20 minutes
                    on 2 cores)
  --all             also: formatting and clang-tidy, the fast and long tests under the address, undefined-behaviour and thread
                    sanitizers, every fuzz target, and the slow tests
  --fuzz-seconds N  how long each fuzz target runs in --all (default 20)
END
}

all=false
long=false
format=false
sanitize=false
fuzz_seconds=20
while (($#)); do
  case "$1" in
    --all) all=true ;;
    --long) long=true ;;
    --format) format=true ;;
    --sanitize) sanitize=true ;;
    --fuzz-seconds)
      if [[ ! ${2-} =~ ^[1-9][0-9]*$ ]]; then
        echo "--fuzz-seconds: expected a whole number of seconds, got '${2-}'" >&2
        exit 2
      fi
      fuzz_seconds=$2
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/packages.sh
jobs=$(nproc)

step() { echo; echo "== $*"; }

# Sanitizers of this age cannot map their shadow memory under the address randomisation of newer kernels.
without_randomisation() {
  if setarch "$(uname -m)" -R true 2> /dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    "$@"
  fi
}

check_format() {
  step "Formatting"
  find src tests bench -name '*.h' -o -name '*.cpp' | sort | xargs -P "$jobs" -n 200 clang-format --dry-run -Werror
}

check_with_clang_tidy() {
  step "clang-tidy"
  # Left out: its count of the warnings in other people's headers.
  find src -name '*.cpp' ! -name '*_test.cpp' | sort | xargs -P "$jobs" -n 2 clang-tidy -p build --quiet 2>&1 |
    { grep -Ev '^[0-9]+ warnings generated\.$' || true; }
}

test_with_sanitizer() {
  step "Fast and long tests, $1"
  cmake --preset "$1"
  cmake --build --preset "$1"
  without_randomisation ctest --preset "$1" -j "$jobs"
}

# Test programs beside the code, one for each folder of src/.
test_units_with_sanitizer() {
  step "Unit tests, $1"
  local folder programs=()
  for folder in src/*/; do
    folder=$(basename "$folder")
    if [[ -n $(find "src/$folder" -name '*_test.cpp' ! -name '*_slow_test.cpp' -print -quit) ]]; then
      programs+=("${folder}_test")
    fi
  done
  cmake --preset "$1" -DFORETOKEN_QUICK_BUILD=ON
  cmake --build --preset "$1" --target "${programs[@]}"
  without_randomisation ctest --preset "$1" -j "$jobs" -R "^($(IFS='|' && echo "${programs[*]}"))$|_long$"
}

fuzz() {
  step "Fuzz targets, $fuzz_seconds s each"
  cmake --preset fuzz
  cmake --build --preset fuzz
  local target name
  for target in build-fuzz/fuzz/*; do
    name=$(basename "$target")
    mkdir -p "build-fuzz/corpus/$name"
    local folders=("build-fuzz/corpus/$name")
    if [[ -d tests/fuzz/corpus/$name ]]; then
      folders+=("tests/fuzz/corpus/$name")
    fi
    # libFuzzer tells much more than anyone wants to read; it is shown where a target fails.
    if ! without_randomisation "$target" -max_total_time="$fuzz_seconds" -rss_limit_mb=2048 -timeout=10 -verbosity=0 \
      -print_final_stats=1 -artifact_prefix="build-fuzz/$name-" "${folders[@]}" &> "build-fuzz/$name.log"; then
      tail -n 60 "build-fuzz/$name.log" >&2
      echo "$name failed; the whole output is in build-fuzz/$name.log" >&2
      return 1
    fi
    echo "$name: $(awk '/number_of_executed_units/ { print $2 }' "build-fuzz/$name.log") inputs, no crash"
  done
}

step "Packages"
packages=("${build_packages[@]}" "${test_packages[@]}")
if $all; then
  packages+=("${lint_packages[@]}")
elif $format; then
  packages+=(clang-format)
fi
install_packages "${packages[@]}"
install_packages "${optional_test_packages[@]}" || echo "Going on without: ${optional_test_packages[*]}"

if $all || $format; then
  check_format
fi

step "Building build/"
# clang-tidy reads files one by one, and warnings of a careful build are part of --all; else a quick one will do.
if $all; then quick=OFF; else quick=ON; fi
options=(-DFORETOKEN_QUICK_BUILD=$quick)
# setup.sh compiles without warnings; whoever changes the code wants them.
if $all || $format; then options+=(-DFORETOKEN_WARNINGS=ON); fi
cmake --preset release "${options[@]}"
cmake --build --preset release

if $all; then
  check_with_clang_tidy
  test_with_sanitizer asan-ubsan
  test_with_sanitizer tsan
  fuzz
  step "All tests"
  ctest --preset release-all -j "$jobs"
else
  if $long; then
    step "Fast and long tests"
    ctest --preset release-long -j "$jobs"
  else
    step "Fast tests"
    ctest --preset release -j "$jobs"
  fi
  if $sanitize; then
    test_units_with_sanitizer asan-ubsan
  fi
fi
