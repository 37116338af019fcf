# shellcheck shell=bash disable=SC2034
# The Debian packages foretoken needs, and how to install them. Sourced by setup.sh and test.sh.

# To build and run the program.
build_packages=(g++ cmake ninja-build libeigen3-dev libfmt-dev libcli11-dev libyaml-cpp-dev zlib1g-dev libsqlite3-dev libssl-dev
  libpcre2-dev
  libxnnpack-dev libpthreadpool-dev  # for `profile cpu`; a build without them says so
  libpq-dev                          # for `--store postgresql://...`; likewise
  python3-dev pybind11-dev)          # for `import foretoken`; likewise
# To build and run the tests.
test_packages=(libgtest-dev libgmock-dev codespell)
# Tests that need these are skipped where they cannot be had: a server for shared stores, and a cluster for `foretoken.sweep`.
optional_test_packages=(postgresql python3-distributed)
# For test.sh --all: lint, fuzzing, and building the .deb.
lint_packages=(clang clang-format clang-tidy libclang-rt-dev dpkg-dev file)

# install_packages NAME...: installs those that are missing; needs neither root nor network when none is.
install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    echo "This is not a Debian system: going on with what is installed. Needed: $*"
    return
  fi
  local name missing=()
  for name in "$@"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null) != installed ]]; then
      missing+=("$name")
    fi
  done
  if ((${#missing[@]} == 0)); then
    return
  fi
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo > /dev/null; then
      echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing packages: ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" update && "${as_root[@]}" install -y --no-install-recommends "${missing[@]}"; } &> "$log"; then
    cat "$log" >&2
    rm "$log"
    echo "Installing packages failed; the output of apt-get is above." >&2
    return 1
  fi
  rm "$log"
}
