"""The Python package over every CPython, from the source tree, with the binary under test.

The wheel that carries both is the business of test_wheel.py.
"""
import json
import os
import subprocess
import zipapp

import pytest

import harness
from harness import pyrometer

PACKAGE = os.path.join(harness.ROOT, "python")
SPIN = "import time\ndef hot():\n    end = time.perf_counter() + 0.3\n    while time.perf_counter() < end: pass\nhot()\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    monkeypatch.setenv("PYROMETER_BINARY", harness.PYROMETER)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYROMETER_ACTIVE", raising=False)


def python_runs(python, text, *args, check=0, **kwargs):
    """Runs a program under that interpreter; its standard output is returned, or the whole with check=None."""
    done = subprocess.run([python.path, "-c", text, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=harness.HANG, **kwargs)
    if check is None:
        return done
    assert done.returncode == check, done.stderr
    return done.stdout


@pytest.fixture
def recording(default_python, tmp_path):
    return harness.record([default_python.path, "-c", SPIN], tmp_path / "app.pyro")


def test_version_is_the_binarys(python):
    said = python_runs(python, "import pyrometer; print(pyrometer.__version__)")
    assert pyrometer("--version", check=0).stdout == "pyrometer " + said


def test_import_is_light(python):
    """`python -m pyrometer` pays for every module, and so does who only marks a timeline: none that is not ours."""
    text = "import sys\nbefore = set(sys.modules)\nimport pyrometer, pyrometer._binary\nprint(*sorted(set(sys.modules) - before))"
    found = set(python_runs(python, text).split()) - {"itertools"}  # which is no file, and wanted below 3.11
    assert found == {"pyrometer"} | {"pyrometer." + name for name in ("_api", "_binary", "_marks", "_memory", "_metric", "data", "history")}


def test_package_is_a_module(python):
    """Also below 3.11, where it has a class of its own; and it has no __getattr__, which would make its names slow."""
    text = """if 1:
        import importlib, inspect, pyrometer, types
        assert isinstance(pyrometer, types.ModuleType) and inspect.ismodule(pyrometer) and not hasattr(pyrometer, "__getattr__")
        assert importlib.reload(pyrometer) is pyrometer and importlib.import_module("pyrometer.history") is pyrometer.history
        pyrometer.run, kept = None, pyrometer.run
        assert pyrometer.run is None
        pyrometer.run = kept
    """
    python_runs(python, text)


def test_rows_stay_as_they_are(python):
    text = """if 1:
        import copy, pickle, pyrometer
        raw = {"name": "f", "file": None, "line": 1, "self": 1.5, "self_percent": 1.0, "total": 2.0, "total_percent": 2.0, "later": 3}
        row = pyrometer.Row.from_json(dict(raw, callers=[raw]))
        assert (row.self, row.file, row.calls, row.callees, row.raw["later"], row.callers[0].name) == (1.5, None, None, [], 3, "f")
        for change in (lambda: setattr(row, "self", 2.0), lambda: delattr(row, "self"), lambda: setattr(row, "new", 1)):
            try:
                change()
            except AttributeError:
                continue
            raise AssertionError("changed")
        assert row == pyrometer.Row.from_json(dict(raw, callers=[raw], later=4)) and row != pyrometer.Row.from_json(raw) and row != 1
        assert copy.deepcopy(row) == pickle.loads(pickle.dumps(row)) == row
        assert repr(row).startswith("Row(name='f', file=None, line=1, self=1.5, ") and "raw" not in repr(row)
    """
    python_runs(python, text)


def test_names(python):
    text = """if 1:
        import pyrometer
        assert set(pyrometer.__all__) <= set(dir(pyrometer))
        for name in pyrometer.__all__:
            assert getattr(pyrometer, name) is getattr(pyrometer, name), name
        assert issubclass(pyrometer.Run, pyrometer.Recording)
        try:
            pyrometer.nothing
        except AttributeError as error:
            print(error)
    """
    assert "no attribute 'nothing'" in python_runs(python, text)


def test_run_and_rows(python):
    text = """if 1:
        import pyrometer, sys
        run = pyrometer.run([sys.executable, "-c", sys.argv[1]], capture_output=True)
        assert run.returncode == 0 and run.stdout == b"" and run.stderr == b"", run.stderr
        rows = run.rows()
        assert abs(sum(row.self for row in rows) - run.total) < 1e-6 * run.total
        hot = [row for row in rows if row.name == "hot"][0]
        assert hot.self > 0.1 and hot.line == 2 and hot.raw["samples"] == hot.samples
        assert [row.line for row in run.rows(by="line", match="hot", limit=1)] == [4]
        assert run.report(metric="cpu").unit == "seconds" and run.report(metric="cpu").metric == "cpu"
        assert run.rows(match="^hot$", callers=True)[0].callers[0].name == "<module>"
        assert run.rows(match="no such function") == []
        assert run.info()["run"]["exit_status"] == 0 and run.command.startswith(sys.executable)
        print(run.path, run.id, pyrometer.load().path, pyrometer.load(run.path).path)
    """
    path, run_id, last, again = python_runs(python, text, SPIN).split()
    assert path == last == again and os.path.dirname(path) == os.path.abspath(".pyrometer/runs")
    assert json.loads(pyrometer("info", "--json", path, check=0).stdout)["run"]["id"] == run_id


def test_rows_are_the_binarys(python, recording):
    text = "import pyrometer, sys, json\nprint(json.dumps([dict(row.raw) for row in pyrometer.load(sys.argv[1]).rows(by='line', metric='cpu')]))"
    asked = json.loads(pyrometer("report", "--json", "--by", "line", "--metric", "cpu", recording.path, check=0).stdout)
    assert json.loads(python_runs(python, text, recording.path)) == asked["rows"]


def test_every_key_of_a_row_has_its_field(default_python, recording):
    """Columns that docs/json.md promises for every row are attributes, not only in `raw`."""
    text = "import pyrometer, sys\nrow = pyrometer.load(sys.argv[1]).rows(callers=True, callees=True)[0]\nprint(*[key for key in row.raw if not hasattr(row, key)])"
    assert python_runs(default_python, text, recording.path).split() == []


def test_run_options(default_python):
    text = """if 1:
        import os, pathlib, pyrometer, sys
        os.mkdir("there")
        run = pyrometer.run([sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit(7)"], output="x.pyro", sample=200,
                            cwd="there", env=dict(os.environ, A="b"), stdin=open("in.txt"), capture_output=True)
        assert (run.returncode, run.stdout) == (7, b"text\\n"), (run.returncode, run.stdout, run.stderr)
        assert run.path == os.path.abspath("there/x.pyro"), run.path
        for i in range(2):
            pyrometer.run(["true"], output=pathlib.Path("y.pyro"), force=True, for_=5)
        assert pyrometer.run(["sh", "-c", "kill -TERM $$"], output="z.pyro").returncode == 128 + 15
        os.chdir("/")
        assert run.info()["run"]["exit_status"] == 7
    """
    with open("in.txt", "w") as f:
        f.write("text")
    done = python_runs(default_python, text, check=None)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and done.stdout == ""  # quiet, unless asked


def test_run_says_more_if_asked(default_python):
    done = python_runs(default_python, "import pyrometer\npyrometer.run(['true'], output='x.pyro', quiet=False)", check=None)
    assert done.returncode == 0 and "x.pyro" in done.stderr


def test_odd_paths(default_python):
    """Bytes that are not UTF-8, blanks and line ends in the name of a recording."""
    text = """if 1:
        import os, pyrometer
        for name in (b"a b\\n.pyro", b"\\xff.pyro", b"@.pyro", b"-x.pyro"):
            run = pyrometer.run(["true"], output=os.fsdecode(name))
            assert os.fsencode(os.path.basename(run.path)) == name, run.path
            assert run.info()["samples"] == 0 and pyrometer.load(run.path).id == run.id
            if name[:1] != b"@":
                assert pyrometer.load(name).id == run.id
    """
    python_runs(default_python, text)


ERRORS = [
    ("pyrometer.load('./none.pyro')", "none.pyro", 1),
    ("pyrometer.load('in.txt')", "not a Pyrometer recording", 1),
    ("pyrometer.load(sys.argv[1]).rows(by='nothing')", "--by", 2),
    ("pyrometer.load(sys.argv[1]).rows(nothing=True)", "unknown option --nothing", 2),
    ("pyrometer.load(sys.argv[1]).rows(match='(')", "", 2),
    ("pyrometer.run(['./none'], capture_output=True)", "none", 127),
    ("pyrometer.run(['./none'])", "was not started", 127),
    ("pyrometer.run(['true'], output='in.txt', capture_output=True)", "in.txt", 1),
    ("pyrometer.run(['true'], sample=-1, capture_output=True)", "--sample", 2),
    ("pyrometer.run(['true'], cwd='./none')", "none", None),
    ("os.environ.update(PYROMETER_BINARY='./none') or pyrometer.load()", "./none", None),
    ("os.environ.update(PYROMETER_BINARY='/bin/true') or pyrometer.load()", "JSON", None),
]


@pytest.mark.parametrize("call, part, status", ERRORS, ids=[e[0][:60] for e in ERRORS])
def test_errors(default_python, recording, call, part, status):
    with open("in.txt", "w") as f:
        f.write("text " * 100)
    text = """if 1:
        import os, pyrometer, sys
        try:
            %s
        except pyrometer.PyrometerError as error:
            assert "\\n" not in str(error)
            print(error.status, error)
    """ % call
    said = python_runs(default_python, text, recording.path)
    assert said.startswith("%s " % status) and part in said


def test_args_is_a_list(default_python):
    done = python_runs(default_python, "import pyrometer\npyrometer.run('true')", check=None)
    assert done.returncode == 1 and "TypeError" in done.stderr and not os.path.exists(".pyrometer/runs")


# --- active() ---


ACTIVE = "import pyrometer; print(pyrometer.active())"


def test_active(python, tmp_path):
    assert python_runs(python, ACTIVE) == "False\n"
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", python.path, "-c", ACTIVE, check=0)
    assert done.stdout == "True\n"


def test_active_in_children(default_python, tmp_path):
    """Also in a child that lost its parent: the recorder adopts it."""
    text = """if 1:
        import os, subprocess, sys, time, pyrometer
        subprocess.run([sys.executable, "-c", "import pyrometer; print(pyrometer.active())"])
        read, write = os.pipe()
        if os.fork() == 0:
            parent = os.getpid()
            if os.fork() == 0:
                os.close(read)
                while os.getppid() == parent:
                    time.sleep(0.01)
                os.write(write, b"%d" % pyrometer.active())
                os._exit(0)
            os._exit(0)
        os.wait()
        os.close(write)
        print(os.read(read, 10).decode())
    """
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", default_python.path, "-c", text, check=0)
    assert done.stdout.split() == ["True", "1"]


@pytest.mark.parametrize("value", ["", "0", "-1", "x", "99999999999999999999", "4194304", "²"])
def test_not_active_by_accident(default_python, value):
    assert python_runs(default_python, ACTIVE, env=dict(os.environ, PYROMETER_ACTIVE=value)) == "False\n"


def test_not_active_by_a_stranger(default_python):
    """The process is there, but it is none of ours: its number was used again."""
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        assert python_runs(default_python, ACTIVE, env=dict(os.environ, PYROMETER_ACTIVE=str(stranger.pid))) == "False\n"
    finally:
        stranger.kill()
        stranger.wait()


def test_not_active_after_the_recorder(default_python, tmp_path):
    """The recorder is killed; the program runs on and is not recorded any more."""
    text = """if 1:
        import os, pyrometer, signal, sys, time
        recorder = int(os.environ["PYROMETER_ACTIVE"])
        assert pyrometer.active()
        os.kill(recorder, signal.SIGKILL)
        while os.getppid() == recorder:
            time.sleep(0.01)
        print(pyrometer.active(), flush=True)
    """
    with open("out.txt", "w") as out:
        subprocess.run([harness.PYROMETER, "run", "-o", str(tmp_path / "x.pyro"), default_python.path, "-c", text], stdout=out,
                       stderr=subprocess.DEVNULL, timeout=harness.HANG)
    harness.wait_until(lambda: open("out.txt").read(), "the answer of the program that lost its recorder")
    assert open("out.txt").read() == "False\n"


# --- python -m pyrometer ---


def module(python, *args, **kwargs):
    return subprocess.run([python.path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=harness.HANG, **kwargs)


def test_module_is_the_binary(python):
    for args in (["--version"], ["--help"], ["report", "--help"], [], ["reprot"], ["run", "--", "sh", "-c", "exit 9"], ["info", "./é\n"]):
        ours, its = module(python, "-m", "pyrometer", *args), pyrometer(*args)
        if args[:1] == ["run"]:
            assert ours.returncode == its.returncode == 9
        else:
            assert (ours.returncode, ours.stdout, ours.stderr) == (its.returncode, its.stdout, its.stderr)


def test_module_leaves_signals_alone(default_python):
    """Python ignores SIGPIPE and SIGXFSZ; the recorded program must not."""
    show = "grep SigIgn /proc/self/status"
    bare = subprocess.run(["sh", "-c", show], stdout=subprocess.PIPE, encoding="utf-8").stdout
    assert module(default_python, "-m", "pyrometer", "run", "--quiet", "sh", "-c", show).stdout == bare


def test_without_a_binary(default_python, tmp_path):
    env = dict(os.environ, PATH=str(tmp_path))
    del env["PYROMETER_BINARY"]
    # a script that leads back to the package is not the binary
    script = tmp_path / "pyrometer"
    script.write_text("#!%s\nfrom pyrometer.__main__ import main\nmain()\n" % default_python.path)
    script.chmod(0o755)
    done = module(default_python, "-m", "pyrometer", "--version", env=env)
    if done.returncode == 0:
        pytest.skip("a pyrometer is installed for this interpreter")
    assert done.returncode == 1 and "PYROMETER_BINARY" in harness.one_line_error(done, 1)
    # in PATH it is found
    script.unlink()
    script.symlink_to(harness.PYROMETER)
    assert module(default_python, "-m", "pyrometer", "--version", env=env).stdout == pyrometer("--version").stdout


def test_binary_that_cannot_run(default_python, tmp_path):
    done = module(default_python, "-m", "pyrometer", env=dict(os.environ, PYROMETER_BINARY=str(tmp_path)))
    assert str(tmp_path) in harness.one_line_error(done, 1)


def test_safe_path(python):
    """Nothing in the working directory is imported in the package's name, or in its modules'."""
    for name in ("json", "signal", "subprocess", "dataclasses", "pyrometer"):
        with open(name + ".py", "w") as f:
            f.write("raise SystemExit('the wrong one')\n")
    env = dict(os.environ, PYTHONSAFEPATH="1")
    if python.version >= (3, 11):
        assert module(python, "-m", "pyrometer", "--version", env=env).stdout == pyrometer("--version").stdout
        assert module(python, "-c", "import pyrometer; pyrometer.run(['true']).info()", env=env).stderr == ""


def test_zipapp(python, tmp_path):
    """The package in a zip file, the binary named from outside."""
    with open(os.path.join(tmp_path, "app.pyz"), "wb") as f:
        zipapp.create_archive(PACKAGE, f, main="pyrometer.__main__:main", filter=lambda path: "__pycache__" not in path.parts)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    assert module(python, "app.pyz", "--version", env=env).stdout == pyrometer("--version").stdout
    text = "import sys; sys.path.insert(0, 'app.pyz'); import pyrometer; print(pyrometer.run(['true']).returncode, pyrometer.__file__)"
    assert module(python, "-c", text, env=env).stdout.startswith("0 app.pyz" + os.sep)


# --- --path-fd, which `run` above rests on ---


def test_path_fd(tmp_path):
    read_end, write_end = os.pipe()
    # the command does not find the descriptor open
    done = pyrometer("run", "--quiet", "-o", "x.pyro", "--path-fd", write_end, "--", "sh", "-c", "test ! -e /proc/self/fd/%d" % write_end,
                     pass_fds=[write_end])
    os.close(write_end)
    with open(read_end) as f:
        assert f.read() == "x.pyro\n" and done.returncode == 0
    for fd in (0, 1, 2, 999, 2 ** 33):
        assert "--path-fd" in harness.one_line_error(pyrometer("run", "-o", "y.pyro", "--path-fd", fd, "true"), 2)
    assert not os.path.exists("y.pyro")
