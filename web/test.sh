#!/usr/bin/env bash
# Checks the page and runs it in Chromium against build/foretoken (or $FORETOKEN).
# Exit status 77 (skipped) where node or npm is missing, or the packages cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for tool in node npm; do
  command -v "$tool" > /dev/null || { echo "skipped: no $tool here"; exit 77; }
done
[[ -d node_modules ]] || npm ci --no-audit --no-fund || { echo "skipped: the page's packages could not be installed"; exit 77; }

npx tsc --noEmit
node build.mjs --check
node --test --test-concurrency=1 test/
