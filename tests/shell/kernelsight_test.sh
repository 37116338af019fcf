#!/usr/bin/env bash
# kernelsight_test.sh PROGRAM SCRIPT: without measurements the script does what needs none and says what it left out.
set -euo pipefail
program=$1
script=$2

fail() {
  echo "failed: $*" >&2
  exit 1
}

if ! command -v python3 > /dev/null; then
  echo "python3 is not installed: the script was not run"
  exit 0
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
env -u FORETOKEN_DATA "$script" --program "$program" --out "$out" > "$out/printed" || fail "status $?"
for file in kernel_tiers.txt breakdown.txt one_kernel.txt what_if_hardware.txt what_if_device.txt comparison.md; do
  [[ -s $out/$file ]] || fail "no $file"
done
[[ $(grep -c 'skipped: no measurements' "$out/contents.md") == 3 ]] || fail "three steps need measurements"
grep '^| target-measured | 3.8 | [0-9]' "$out/comparison.md" > /dev/null || fail "no kernel errors in the comparison"
mkdir "$out/empty"
"$script" --program "$program" --out "$out" --data "$out/empty" > /dev/null || fail "an empty folder of measurements"
grep 'skipped: no serving/cases.csv.gz' "$out/contents.md" > /dev/null || fail "what is missing is not said"
# A library named from the caller's folder is found from the sources' folder too.
ln -s "$(realpath "$(dirname "$script")/../data")" "$out/library"
(cd "$out" && env -u FORETOKEN_DATA FORETOKEN_LIBRARY=library "$script" --program "$program" --out again) > /dev/null ||
  fail "FORETOKEN_LIBRARY beside the caller is not found"
cmp "$out/kernel_tiers.txt" "$out/again/kernel_tiers.txt" || fail "another library was read"
status=0
"$script" --every 0 2> /dev/null || status=$?
[[ $status == 2 ]] || fail "--every 0 is taken"
status=0
"$script" --data "$out/none" 2> /dev/null || status=$?
[[ $status == 2 ]] || fail "a folder that is not there is taken"
