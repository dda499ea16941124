#!/bin/sh
# Installs the Debian or Ubuntu packages that a group of make's targets needs and that are missing:
#
#   tools/setup.sh [--check] build|test|lint
#
# Says what it installs; when everything is there it does nothing and is quick. With --check it only
# names what is missing and fails. On another system it names the tools it looked for, so that they
# can be installed by hand.
set -eu

check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
group=${1:-build}

packages="gcc libc6-dev meson ninja-build pkg-config libzstd-dev libxxhash-dev zlib1g-dev libncurses-dev libsqlite3-dev python3"
commands="gcc meson ninja pkg-config python3"
case $group in
build) ;;
test)
    packages="$packages clang libcmocka-dev python3-dev python3-venv python3-pip ca-certificates util-linux graphviz valgrind golang-go perl libdevel-nytprof-perl chromium chromium-driver git zsh fish tmux groff-base g++ libjemalloc2 libtcmalloc-minimal4"
    commands="$commands clang taskset setpriv"
    ;;
lint)
    packages="$packages clang clang-format clang-tidy libcmocka-dev shellcheck python3-venv python3-pip ca-certificates"
    commands="$commands clang clang-format clang-tidy shellcheck"
    ;;
*)
    echo "tools/setup.sh: no group '$group': build, test or lint" >&2
    exit 2
    ;;
esac

# Where packages are not Debian's, tools are all that can be looked for.
if ! command -v dpkg-query >/dev/null 2>&1; then
    missing=
    for c in $commands; do
        command -v "$c" >/dev/null 2>&1 || missing="$missing $c"
    done
    [ -z "$missing" ] && exit 0
    echo "setup: not a Debian or Ubuntu system; please install:$missing (and the headers of zstd, xxhash, zlib, ncurses and SQLite)" >&2
    exit 1
fi

installed() {
    case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in
    *" ok installed") return 0 ;;
    *) return 1 ;;
    esac
}

missing_of() {
    for p in "$@"; do
        installed "$p" || printf ' %s' "$p"
    done
}

# The sanitizers' and libFuzzer's libraries carry clang's version in their name.
runtime_package() {
    major=
    if command -v clang >/dev/null 2>&1; then
        major=$(clang -dumpversion | cut -d . -f 1)
    else
        major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' | head -n 1)
    fi
    # From 14 on it is a package of its own; before, clang brought it.
    if [ -n "$major" ] && [ "$major" -ge 14 ]; then
        echo "libclang-rt-$major-dev"
    fi
}

# shellcheck disable=SC2086 # a list of words
missing=$(missing_of $packages)
if [ "$group" = test ]; then
    case $missing in
    *" clang"*) want_runtime=later ;;
    *)
        want_runtime=no
        runtime=$(runtime_package)
        if [ -n "$runtime" ]; then
            missing="$missing$(missing_of "$runtime")"
        fi
        ;;
    esac
else
    want_runtime=no
fi

[ -z "$missing" ] && exit 0

if [ "$check" = yes ]; then
    echo "setup: missing:$missing" >&2
    echo "setup: 'tools/setup.sh $group' installs it" >&2
    exit 1
fi

if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
else
    echo "setup: missing:$missing; neither root nor sudo, so please install it yourself" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
echo "setup: reading the package lists"
$root apt-get -qq update </dev/null
if [ "$want_runtime" = later ]; then
    runtime=$(runtime_package)
    if [ -n "$runtime" ]; then
        missing="$missing$(missing_of "$runtime")"
    fi
fi
echo "setup: installing:$missing"
# shellcheck disable=SC2086 # a list of words
$root apt-get -qq -y --no-install-recommends install $missing </dev/null >/dev/null
echo "setup: done"
