"""What `pip install .` and `python -m build` call: meson-python, and three steps after it.

1. The tag. meson-python calls the wheel py3-none-linux_x86_64, which says nothing about the glibc it needs. Here
   the binaries in it are asked, and the wheel gets the manylinux tag that says just that:
   manylinux_2_34 if the youngest symbol they need is GLIBC_2.34 (PEP 600). If they need anything but glibc, or
   there is no readelf to ask, the tag stays as it is.
2. `pip install -e .`. meson-python's own way rebuilds at each import, with tools that pip has taken away by
   then, and brings no command. Here the binary is installed as it is now, and the package is used from the
   source tree.
3. Licences. The binary has other libraries in it (LINKED_IN), most of whose licences ask for their notices wherever a copy
   goes: they are taken from where Debian's packages have put them. Where they are not, the build says so and goes on.

Needs Python 3.8 and meson-python. `wheel_backend.py WHEEL` prints the tag that a wheel ought to have.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

try:
    import mesonpy
except ImportError:  # only asked for a tag
    mesonpy = None

PACKAGE = re.compile(r"([^/]+\.data/purelib/)?pyrometer/")
# What is linked in, and the Debian package that has its notice.
LINKED_IN = {"zstd": "libzstd-dev", "xxhash": "libxxhash-dev", "zlib": "zlib1g-dev", "ncurses": "libncurses-dev", "sqlite": "libsqlite3-dev"}
# The libraries of glibc that PEP 600 lets a wheel rely on.
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"}


# --- what a binary needs ---


def needs(path):
    """(names of the libraries, highest glibc version as (2, 34)) of an ELF file; None if they cannot be had."""
    readelf = shutil.which("readelf")
    if not readelf:
        return None
    done = subprocess.run([readelf, "--wide", "--dynamic", "--version-info", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, encoding="utf-8", env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        return None
    libraries = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", done.stdout))
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)\b", done.stdout)]
    # GLIBC_PRIVATE, GLIBC_ABI_…: not for the likes of us
    if re.search(r"Name: GLIBC_[A-Z]", done.stdout):
        return None
    return libraries, max(versions, default=(2, 5))


def platform_tag(wheel, was):
    """The honest platform tag of a wheel called `was`, by the ELF files in it."""
    machine = was.partition("_")[2]
    youngest, found = (2, 5), False
    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as folder:
        for info in z.infolist():
            with z.open(info) as f:
                if f.read(4) != b"\x7fELF":
                    continue
            need = needs(z.extract(info, folder))
            if need is None or not need[0] <= GLIBC:
                return was
            youngest, found = max(youngest, need[1]), True
    return "manylinux_%d_%d_%s" % (youngest[0], youngest[1], machine) if found else was


# --- licences ---


def licences(stem):
    """{name in the wheel: text} of our licence and the notices of what is linked in; `stem` is "pyrometer-0.1.0"."""
    files = {"LICENSE": os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "LICENSE")}
    for library, package in LINKED_IN.items():
        files["third-party/%s.txt" % library] = os.path.join("/usr/share/doc", package, "copyright")
    found = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as f:
                found["%s.dist-info/licenses/%s" % (stem, name)] = f.read()
        except OSError as e:
            print("wheel: no licence for it: %s" % e, file=sys.stderr)
    return found


# --- writing it again ---


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def rewrite(source, target, change, add):
    """Copies a wheel. `change(name, data)` returns the new data, or None to leave the file out; `add` is a
    {name: data} of new files."""
    record = []
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        entries = [(info, old.read(info)) for info in old.infolist() if not info.is_dir()]
        listing = next(info for info, _ in entries if info.filename.endswith(".dist-info/RECORD"))
        entries += [(zipfile.ZipInfo(name, listing.date_time), data) for name, data in add.items()]
        for info, data in entries:
            data = change(info.filename, data) if info is not listing else None
            if data is None:
                continue
            info.external_attr = info.external_attr or 0o644 << 16
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
            record.append("%s,%s,%d" % (info.filename, digest(data), len(data)))
        new.writestr(listing, "\n".join(record + [listing.filename + ",,", ""]), zipfile.ZIP_DEFLATED)


def finish(wheel, editable=None):
    """Gives the wheel its tag and the licences; with `editable`, a folder, the package is taken from there. Returns its name."""
    folder, name = os.path.split(wheel)
    stem, was = name[: -len(".whl")].rsplit("-", 1)
    tag = platform_tag(wheel, was)
    add = licences("-".join(stem.split("-")[:2]))
    if editable:
        add["pyrometer-editable.pth"] = (editable + "\n").encode()

    def change(path, data):
        if editable and PACKAGE.match(path):
            return None
        if path.endswith(".dist-info/WHEEL"):
            data = re.sub(rb"(?m)^(Tag: .*-)%s$" % was.encode(), rb"\g<1>" + tag.encode(), data)
        return data

    done = os.path.join(folder, "%s-%s.whl" % (stem, tag))
    rewrite(wheel, wheel + ".new", change, add)
    os.unlink(wheel)
    os.rename(wheel + ".new", done)
    return os.path.basename(done)


# --- PEP 517 and 660 ---


def get_requires_for_build_wheel(config_settings=None):
    return mesonpy.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings=None):
    return mesonpy.get_requires_for_build_sdist(config_settings)


def get_requires_for_build_editable(config_settings=None):
    return mesonpy.get_requires_for_build_wheel(config_settings)


def build_sdist(sdist_directory, config_settings=None):
    return mesonpy.build_sdist(sdist_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return finish(os.path.join(wheel_directory, mesonpy.build_wheel(wheel_directory, config_settings)))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = mesonpy.build_wheel(wheel_directory, config_settings)
    return finish(os.path.join(wheel_directory, name), editable=os.path.join(os.getcwd(), "python"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().splitlines()[-1])
    print(platform_tag(sys.argv[1], "linux_x86_64"))
