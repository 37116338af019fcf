#!/usr/bin/env bash
# shell_files_test.sh PROGRAM FOLDER: the manual page has no warnings, and the scripts of the folder offer what they
# should.
set -euo pipefail
program=$1
folder=$2

fail() {
  echo "failed: $*" >&2
  exit 1
}

# offered WORD...: what bash offers for these words after the program's name, the last being typed.
offered() {
  COMP_WORDS=("$program" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _foretoken "$program"
  printf '%s\n' "${COMPREPLY[@]-}"
}

# expect_offer OFFER WORD... (grep -q would end first now and then, and its writer of the closed pipe)
expect_offer() {
  local wanted=$1
  shift
  offered "$@" | grep -x -e "$wanted" > /dev/null || fail "bash offers no $wanted after: $*"
}

bash -n "$folder/foretoken" || fail "bash cannot read its script"
# shellcheck source=/dev/null
source "$folder/foretoken"
complete -p foretoken > /dev/null || fail "bash was told of no completion"
expect_offer serve ""
expect_offer serve ser
expect_offer --device serve --dev
expect_offer h100_sxm serve --device h100_s
expect_offer h100_sxm serve --device = h100_s
[[ -z $(offered serve --trace "") ]] || fail "bash offers words where files are wanted"

if command -v zsh > /dev/null; then
  zsh -n "$folder/_foretoken" || fail "zsh cannot read its script"
fi
if command -v fish > /dev/null; then
  fish --no-execute "$folder/foretoken.fish" || fail "fish cannot read its script"
  fish -c "source $folder/foretoken.fish; complete -C '$program ser'" | grep '^serve' > /dev/null || fail "fish offers no serve"
fi

if command -v groff > /dev/null; then
  warnings=$(groff -man -ww -z -Tutf8 "$folder/foretoken.1" 2>&1)
  [[ -z $warnings ]] || fail "groff warns: $warnings"
  groff -man -Tutf8 "$folder/foretoken.1" | grep 'foretoken kernel gemm' > /dev/null || fail "the page lacks a command"
else
  echo "groff is not installed: the manual page was not set"
fi
