#!/bin/sh
# Brings the CPythons that the host does not carry (3.13 newest, 3.14, 3.15) from Debian sid into a
# folder, for tests: tools/pythons.sh [DIR]   (default build/pythons; what `make pythons` runs)
#
# The idea: a private apt with its own sources, lists and cache under DIR, so that the system's apt
# state is neither read for packages nor changed; `apt-get download` and `dpkg -x` instead of an
# installation, so that no root is needed. The packages want a newer libc than the host's, so each
# python is started through the unpacked ld.so, by a wrapper in DIR/bin which execs it: the process
# is the interpreter itself, but /proc/PID/exe names ld.so.
#
# Exits 0 also when a python cannot be had, with a line "skipped: pythonX.Y: reason" for each.
set -eu

suite=sid
versions="3.13 3.14 3.15"

dir=${1:-build/pythons}
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
root=$dir/$suite
apt=$dir/apt

wrapper_name() {
    # 3.13 is likely to be on the machine already, in another micro version: keep the names apart.
    case $1 in
    3.13) echo python3.13-sid ;;
    *) echo "python$1" ;;
    esac
}

skip_all() {
    for v in $wanted; do
        echo "skipped: python$v: $1"
    done
    exit 0
}

# What is there already? The stamp is written last, so a broken run is repeated.
wanted=
for v in $versions; do
    if [ -e "$dir/.have-$v" ] && [ -x "$dir/bin/$(wrapper_name "$v")" ]; then
        echo "present: $(cat "$dir/.have-$v")"
    else
        wanted="$wanted $v"
    fi
done
[ -n "$wanted" ] || exit 0

for tool in apt-get apt-cache apt-config dpkg; do
    command -v $tool >/dev/null 2>&1 || skip_all "no $tool on this machine"
done

# The mirror is the one that the machine uses for Debian itself ("…/debian/"). Signatures are checked
# with Debian's own keyring where it is installed, else with what apt trusts.
# shellcheck disable=SC2016 # apt expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep '/debian/$' | sort -u | head -n 1) || true
[ -n "$mirror" ] || skip_all "no Debian mirror in this machine's apt sources"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
options=
[ -r $keyring ] && options="[signed-by=$keyring] "

# The private apt. Of the system's settings only Acquire:: is kept (proxies); in particular no hooks.
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
: >"$apt/status"
apt-config dump | grep '^Acquire::' >"$apt/apt.conf" || true
cat >>"$apt/apt.conf" <<CONF
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Log "$apt";
Acquire::Languages "none";
APT::Sandbox::User "";
CONF
export APT_CONFIG="$apt/apt.conf"
echo "deb $options$mirror $suite main" >"$apt/sources.list"

echo "reading: the package list of $suite from $mirror"
# apt-get says 0 also when nothing could be fetched.
if ! apt-get -qq update >"$apt/update.log" 2>&1 || grep -q 'Failed to fetch' "$apt/update.log"; then
    skip_all "apt-get update: $(grep -m 1 '^[EW]:' "$apt/update.log" || echo 'failed')"
fi

# Packages that a running interpreter needs: the dependencies, through libraries only. debconf, perl
# and the like come in through maintainer scripts, which are never run here.
closure() {
    seen=" "
    next="python$1 python$1-minimal libpython$1 libpython$1-minimal libpython$1-stdlib"
    while [ -n "$next" ]; do
        round=
        for p in $next; do
            case $seen in *" $p "*) continue ;; esac
            apt-cache show "$p" >/dev/null 2>&1 || continue
            seen="$seen$p "
            round="$round $p"
        done
        [ -n "$round" ] || break
        # shellcheck disable=SC2086 # a list of names
        next=$(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks \
            --no-replaces --no-enhances $round |
            sed -n 's/^ *|*\(Pre\)*Depends: \([a-z0-9][a-z0-9.+-]*\)$/\2/p' |
            grep -E "^(lib|python$1|tzdata|zlib1g|readline-common|netbase|media-types)" |
            grep -v -e '-dev$' -e '^libdebconf' -e '-perl$' | sort -u) || true
    done
    echo "$seen libpython$1-dev" # the internal headers, for tools/gen_pylayout and its tables
    if apt-cache show "libpython$1-testsuite" >/dev/null 2>&1; then
        echo "libpython$1-testsuite" # CPython's own tests, for tests/e2e/test_cpythons_own.py
    fi
}

bring() { # version; says why on stdout when it returns 1
    apt-cache show "python$1" >/dev/null 2>&1 || { echo "not in $suite"; return 1; }
    # shellcheck disable=SC2046 # a list of names
    (cd "$apt/debs" && apt-get -qq download $(closure "$1")) >"$apt/download.log" 2>&1 ||
        { echo "download failed: $(grep -m 1 '^E:' "$apt/download.log")"; return 1; }
    mkdir -p "$root"
    for deb in "$apt"/debs/*.deb; do
        done_mark=$apt/unpacked.$(basename "$deb")
        [ -e "$done_mark" ] && continue
        dpkg -x "$deb" "$root" 2>"$apt/unpack.log" ||
            { echo "cannot unpack $(basename "$deb")"; return 1; }
        : >"$done_mark"
    done
}

first_of() {
    for f in "$@"; do
        if [ -e "$f" ]; then
            echo "$f"
            return 0
        fi
    done
    return 1
}

# --argv0 makes sys.executable the wrapper, so that children start the same way; the standard library
# is then found as DIR/lib, beside DIR/bin, without a PYTHONHOME that other pythons would inherit.
write_wrapper() { # version
    loader=$(first_of "$root"/usr/lib64/ld-linux-*.so.* "$root"/lib64/ld-linux-*.so.* \
        "$root"/usr/lib/ld-linux-*.so.* "$root"/usr/lib/*-linux-gnu/ld-linux-*.so.*) ||
        { echo "no ld.so in libc6"; return 1; }
    libs=$(dirname "$(first_of "$root"/usr/lib/*-linux-gnu/libc.so.6)") ||
        { echo "no libc.so.6 in libc6"; return 1; }
    ln -sfn "$suite/usr/lib" "$dir/lib"
    wrapper=$dir/bin/$(wrapper_name "$1")
    cat >"$wrapper.new" <<WRAP
#!/bin/sh
# Written by tools/pythons.sh: CPython $1 of Debian $suite on its own libc.
here=\$(dirname "\$(readlink -f "\$0")")/..
here=\$(cd "\$here" && pwd)
exec "\$here/${loader#"$dir"/}" --argv0 "\$here/bin/$(wrapper_name "$1")" \\
    --library-path "\$here/${libs#"$dir"/}" "\$here/$suite/usr/bin/python$1" "\$@"
WRAP
    chmod 755 "$wrapper.new"
    mv "$wrapper.new" "$wrapper"
    found=$("$wrapper" -c 'import ctypes, ssl, sqlite3, threading, platform
print(platform.python_version())' 2>"$apt/try.log") ||
        { echo "does not start: $(tail -n 1 "$apt/try.log")"; return 1; }
}

for v in $wanted; do
    echo "downloading: python$v and the libraries it needs"
    if bring "$v" >"$apt/reason" && write_wrapper "$v" >"$apt/reason"; then
        echo "python$v: $found: $dir/bin/$(wrapper_name "$v")" | tee "$dir/.have-$v"
    else
        rm -f "$dir/bin/$(wrapper_name "$v")"
        echo "skipped: python$v: $(cat "$apt/reason")"
    fi
done
rm -rf "$apt/debs" # unpacked, or to be had again
