#!/bin/sh
# Taste made mechanical: tools/lint.sh [--deep] [BUILD]   (what `make lint` runs; BUILD holds compile_commands.json)
#
# Over the C files clang-format, over what is compiled clang-tidy, over the Python files pyflakes, over
# the scripts shellcheck. The last line is "N passed, N failed, N skipped", counting tools.
#
# Nearly all of the time goes into clang's analyzer, which walks the paths through each function up to a number
# of states: 75,000, as in its own shallow mode, but through calls as in its deep one. With --deep it is clang's
# default of 225,000, for twice the time.
set -eu

states=75000
if [ "${1:-}" = --deep ]; then
    states=225000
    shift
fi
build=${1:-build}
cd "$(dirname "$0")/.."
passed=0
failed=0

try() { # name, command…
    name=$1
    shift
    if "$@"; then
        echo "lint: $name: clean"
        passed=$((passed + 1))
    else
        echo "lint: $name: see above"
        failed=$((failed + 1))
    fi
}

files() { # find's arguments: names of files that exist, generated ones left out
    find "$@" ! -path '*/__pycache__/*' -type f | sort
}

c_files=$(files src tests tools bench examples -name '*.[ch]')
python_files=$(files python tests tools bench examples -name '*.py')
# shellcheck disable=SC2046 # a list of files
shell_files=$(grep -lE '^#! ?/(usr/)?bin/(env )?(ba)?sh' $(files tools tests bench .ci ! -name '*.[ch]' ! -path '*/corpus/*' ! -path '*/golden/*' ! -path '*/data/*') || true)

format() {
    # shellcheck disable=SC2086 # a list of files
    clang-format --dry-run -Werror $c_files
}

# One process per CPU and file (with several files in one process clang-tidy 14 takes a va_list of the second
# for uninitialised). What is compiled is what the build folder says; tests are held to the same rules.
tidy() {
    # In compile_commands.json a file may be listed more than once (the program and its tests).
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u |
        while read -r f; do
            case $f in
            /*) echo "$f" ;;
            *) echo "$build/$f" ;;
            esac
        done |
        xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" --extra-arg=-Xclang --extra-arg=-analyzer-config \
            --extra-arg=-Xclang --extra-arg="max-nodes=$states" 2>"$build/clang-tidy.log"
}

flakes() {
    # shellcheck disable=SC2086 # a list of files
    "$build/venv/bin/python" -m pyflakes $python_files
}

scripts() {
    # shellcheck disable=SC2086 # a list of files
    shellcheck $shell_files
}

try "clang-format" format
try "clang-tidy" tidy
try "pyflakes" flakes
try "shellcheck" scripts

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
