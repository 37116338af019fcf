#!/usr/bin/env bash
# spelling_test.sh FOLDER: no common misspelling in the documents of the repository, and none in the sentences of the
# program (string literals with a space), which are American English. Skipped where codespell is missing.
set -euo pipefail
command -v codespell > /dev/null || exit 77
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

failed=0
codespell --ignore-words "$here/known_words.txt" README.md CHANGELOG.md docs || failed=1

# FILE:LINE:"LITERAL". A line break written as \n is not a letter of the next word.
sentences() {
  find src -name '*.cpp' ! -name '*_test.cpp' -print0 | sort -z | xargs -0 grep -noE '"([^"\\]|\\.)*"' |
    grep -E '[A-Za-z] [A-Za-z]' | sed 's/\\n/  /g'
}
sentences | codespell --builtin clear,rare,en-GB_to_en-US --ignore-words "$here/known_words.txt" - || failed=1
exit "$failed"
