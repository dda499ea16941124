"""The history: every run leaves a row, whatever happens to it, and the program does not notice."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

import harness
from harness import PYROMETER, one_line_error, pyrometer, wait_until

METRICS = """user_time_sec system_time_sec pct_of_cpu elapsed_time_sec avg_shared_text_sz_kb avg_unshared_text_sz_kb
avg_stack_sz_kb avg_total_sz_kb max_res_set_sz_kb avg_res_set_sz_kb major_page_faults minor_page_faults
voluntary_context_switches involuntary_context_switches swaps file_system_inputs file_system_outputs socket_messages_sent
socket_messages_received signals_delivered page_size_bytes exit_status""".split()
CONTEXT = "command timestamp stdout stderr tiledb_stats somacore_version tiledbsoma_version host_context custom_out".split()
DB = os.path.join(".pyrometer", "history.db")
PACKAGE = os.path.join(harness.ROOT, "python")


@pytest.fixture(autouse=True)
def own_history(monkeypatch):
    monkeypatch.delenv("PYROMETER_DB", raising=False)


def meter(*command, options=(), **kwargs):
    """`run --no-profile`, quietly."""
    return pyrometer("run", "--no-profile", "--quiet", *options, "--", *command, **kwargs)


def last(*args):
    return json.loads(pyrometer("history", "show", "@", "--json", *args, check=0).stdout)


def runs(command, *args):
    return json.loads(pyrometer("history", "--json", *args, "--", command, check=0).stdout)


@contextlib.contextmanager
def database(path):
    db = sqlite3.connect(path)
    try:
        yield db
        db.commit()
    finally:
        db.close()


def check_database(path=DB):
    with database(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = db.execute("SELECT c.runs, (SELECT count(*) FROM run r WHERE r.command = c.id) FROM command c").fetchall()
        assert all(a == b for a, b in counted), counted
        return db.execute("SELECT count(*) FROM run").fetchone()[0]


# --- what a row holds ---


def test_every_run_leaves_a_row(default_python):
    done = pyrometer("run", "--", default_python.path, "-c", "print('out')", check=0)
    assert done.stdout == "out\n" and "run 1 in the history" in done.stderr
    run = last()
    assert run["id"] == 1 and run["argv"] == [default_python.path, "-c", "print('out')"]
    assert run["stdout"] == "out\n" and run["stderr"] == "" and run["exit_status"] == 0
    assert run["python_version"] == ".".join(map(str, default_python.version))
    assert run["directory"] == os.getcwd()
    assert os.path.exists(run["profile"]) and abs(run["timestamp"] - time.time()) < harness.HANG
    assert set(CONTEXT + METRICS) <= set(run)
    for key in ("cpu", "cores", "memory_bytes", "os", "kernel", "load_1", "hostname"):
        assert key in run["host_context"], run["host_context"]


def test_any_program_is_metered():
    meter("sh", "-c", "exit 7", check=7)
    run = last()
    assert run["exit_status"] == 7 and run["profile"] is None and run["python_version"] is None
    assert run["packages"] == {}


def test_metrics_are_measured_or_unknown(default_python):
    meter(default_python.path, "-c", "x = bytearray(50 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
          "import time, threading\nt = threading.Thread(target=time.sleep, args=(0.4,)); t.start(); t.join()", check=0)
    run = last()
    assert run["max_res_set_sz_kb"] > 50 << 10 and run["elapsed_time_sec"] >= 0.4
    assert run["user_time_sec"] + run["system_time_sec"] > 0
    assert 10 << 10 < run["avg_res_set_sz_kb"] <= run["max_res_set_sz_kb"] * 1.1
    assert run["avg_total_sz_kb"] >= run["avg_stack_sz_kb"] > 0 and run["avg_shared_text_sz_kb"] > 0
    assert run["minor_page_faults"] > 50 << 8 and run["page_size_bytes"] == os.sysconf("SC_PAGESIZE")
    # what the kernel does not count is not 0
    for name in ("swaps", "socket_messages_sent", "socket_messages_received", "signals_delivered"):
        assert run[name] is None, name
    more = run["metrics"]
    assert more["tree_peak_rss_kb"] > 50 << 10 and more["peak_threads"] == 2 and more["processes"] == 1
    assert more["io_read_chars"] > 0 and "instructions" in more
    assert [p["threads"] for p in run["processes"]] == [2]


def test_the_whole_tree(default_python):
    child = "x = bytearray(30 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nimport time; time.sleep(0.7)"
    text = "import subprocess, sys\nps = [subprocess.Popen([sys.executable, '-c', %r]) for _ in range(2)]\n[p.wait() for p in ps]" % child
    meter(default_python.path, "-c", text, check=0)
    run = last()
    assert run["metrics"]["processes"] >= 3 and run["metrics"]["peak_processes"] >= 3
    assert run["metrics"]["tree_peak_rss_kb"] > 60 << 10 > run["max_res_set_sz_kb"]
    assert len(run["processes"]) >= 3


def test_context_of_the_run(monkeypatch):
    monkeypatch.setenv("SOME_SETTING", "yes")
    meter("true", options=["--tag", "suite=nightly", "--tag", "n=1=2", "--env", "SOME_SETTING", "--env", "NOT_THERE"], check=0)
    run = last()
    assert run["tags"] == {"suite": "nightly", "n": "1=2"} and run["env"] == {"SOME_SETTING": "yes"}
    one_line_error(meter("true", options=["--tag", "nothing"]), 2)


@pytest.mark.parametrize("variables,expected", [
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"}, {"launcher": "openmpi", "rank": "3", "world_size": "8"}),
    ({"PMI_RANK": "1", "PMI_SIZE": "2"}, {"launcher": "mpi", "rank": "1", "world_size": "2"}),
    ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "job7"},
     {"launcher": "torchrun", "rank": "0", "world_size": "4", "local_rank": "0", "job": "job7"}),
    ({"SLURM_JOB_ID": "99", "SLURM_PROCID": "5"}, {"launcher": "slurm", "rank": "5", "job": "99", "slurm_job": "99"}),
    ({"DASK_WORKER_NAME": "w-1", "DASK_SCHEDULER_ADDRESS": "tcp://x:1"}, {"launcher": "dask", "rank": "w-1", "job": "tcp://x:1"}),
    ({"RANK": "0"}, {}),
])
def test_rank_and_job(monkeypatch, variables, expected):
    for name in os.environ:
        if name.startswith(("SLURM", "OMPI", "PMI", "DASK", "TORCHELASTIC")) or name == "RANK":
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    meter("true", check=0)
    assert last()["launch"] == expected


def git(*args):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_git(tmp_path):
    git("init", "-q", "-b", "topic/x", ".")
    (tmp_path / "f").write_text("1")
    git("add", "f")
    git("commit", "-q", "-m", "one")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, encoding="utf-8").stdout.strip()
    slow = ["sh", "-c", "sleep 1"]  # git's answer is there by then
    (tmp_path / "sub").mkdir()
    (tmp_path / ".pyrometer").mkdir()
    meter(*slow, check=0, cwd=tmp_path / "sub")
    run = last()
    assert (run["git_commit"], run["git_branch"], run["git_dirty"]) == (commit, "topic/x", False)
    git("pack-refs", "--all")
    (tmp_path / "f").write_text("2")
    meter(*slow, check=0)
    run = last()
    assert (run["git_commit"], run["git_branch"], run["git_dirty"]) == (commit, "topic/x", True)
    git("checkout", "-q", "--detach")
    git("worktree", "add", "-q", "../linked", "-b", "other")
    meter("true", check=0, cwd=tmp_path.parent / "linked", options=["--db", str(tmp_path / DB)])
    run = last()
    assert (run["git_commit"], run["git_branch"]) == (commit, "other")
    shutil.rmtree(tmp_path.parent / "linked")


def make_distribution(folder, name, version, modules, listing="RECORD"):
    info = folder / ("%s-%s.dist-info" % (name, version))
    info.mkdir(parents=True)
    lines = []
    for module in modules:
        path = folder / module.replace(".", "/")
        path.mkdir(parents=True, exist_ok=True)
        (path / "__init__.py").write_text("x = 1\n")
        lines.append("%s/__init__.py,sha256=x,6\n" % module.replace(".", "/"))
    if listing == "RECORD":
        (info / "RECORD").write_text("".join(lines))
    else:
        (info / "top_level.txt").write_text("\n".join({m.split(".")[0] for m in modules}) + "\n")


@pytest.mark.parametrize("options", [["--no-profile"], []], ids=["metered", "sampled"])
def test_imported_packages(python, tmp_path, monkeypatch, options):
    """By what was imported: not what is installed, not what shares a namespace."""
    folder = tmp_path / "site"
    make_distribution(folder, "tiledbsoma", "1.2.3", ["tiledbsoma"])
    make_distribution(folder, "somacore", "1.0.4", ["somacore"], "top_level.txt")
    make_distribution(folder, "not_imported", "9", ["not_imported"])
    make_distribution(folder, "space_one", "1", ["space.one"])
    make_distribution(folder, "space_two", "2", ["space.two"])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    pyrometer("run", "--quiet", *options, "--", python.path, "-c",
              "import tiledbsoma, somacore, space.one, time; time.sleep(0.2)", check=0)
    run = last()
    ours = {"tiledbsoma", "somacore", "not_imported", "space_one", "space_two"}  # a .pth file may import others
    assert {k: v for k, v in run["packages"].items() if k in ours} == {"tiledbsoma": "1.2.3", "somacore": "1.0.4", "space_one": "1"}
    assert (run["tiledbsoma_version"], run["somacore_version"]) == ("1.2.3", "1.0.4")


def test_packages_of_a_short_program(default_python, tmp_path, monkeypatch, scale):
    """It ends right after the import. Seen from outside, so a busy machine may miss one."""
    make_distribution(tmp_path / "site", "shorty", "1", ["shorty"])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    count = scale(8, 40)
    for _ in range(count):
        meter(default_python.path, "-c", "import shorty", check=0)
    seen = [r["packages"].get("shorty") for r in runs("%s -c 'import shorty'" % default_python.path)]
    assert len(seen) == count and seen.count("1") >= count / 2, seen


# --- files and numbers from the program ---


def test_tiledb_stats_both_layers(default_python, tmp_path):
    text = "import json\nwith open('tiledb_stats.json', 'w') as f: json.dump(json.dumps([{'timers': {'a.sum': 1.5}, 'counters': {'n': 3}}]), f)"
    meter(default_python.path, "-c", text, check=0)
    run = last()
    assert run["tiledb_stats"] == [{"timers": {"a.sum": 1.5}, "counters": {"n": 3}}]
    assert run["metrics"]["tiledb_stats.timers.a.sum"] == 1.5 and run["metrics"]["tiledb_stats.counters.n"] == 3
    # stale: not written by this run
    meter("true", check=0)
    assert last()["tiledb_stats"] is None


def test_plain_tiledb_stats(tmp_path):
    meter("sh", "-c", "echo '{\"reads\": 4}' > tiledb_stats.json", check=0)
    assert last()["metrics"]["tiledb_stats.reads"] == 4
    os.unlink("tiledb_stats.json")
    meter("sh", "-c", "echo '==== READ ====' > tiledb_stats.txt", check=0)
    assert last()["tiledb_stats"] == "==== READ ====\n"


def test_collect(tmp_path):
    (tmp_path / "out").mkdir()
    done = meter("sh", "-c", "echo '{\"rows\": 5, \"deep\": [{\"x\": 1}, {\"x\": 2}], \"name\": \"n\"}' > out/result.json; echo text > notes.txt",
                 options=["--collect", "out/result.json", "--collect", "notes.txt", "--collect", "missing.json"], check=0)
    assert "missing.json" in done.stderr
    run = last()
    assert run["metrics"]["result.rows"] == 5 and run["metrics"]["result.deep.x"] == 1 and run["metrics"]["result.deep.1.x"] == 2
    assert {o["name"]: o["text"] for o in run["custom_out"]}["notes"] == "text\n"


@pytest.mark.parametrize("options", [["--no-profile"], [], ["--calls"]], ids=["metered", "sampled", "calls"])
def test_metrics_from_python(python, monkeypatch, options):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    pyrometer("run", "--quiet", *options, "--", python.path, "-c",
              "import pyrometer, os\npyrometer.metric('rows', 3)\npyrometer.metric('rows', 4.5)\npyrometer.metric('nan', float('nan'))\n"
              "pyrometer.metric('é', 1)\nos._exit(0)", check=0)
    metrics = last()["metrics"]
    assert metrics["rows"] == 4.5 and metrics["é"] == 1 and "nan" not in metrics


def test_metric_without_a_meter(python, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    for value in ("", "1", "999999999", "x"):
        monkeypatch.setenv("PYROMETER_ACTIVE", value)
        subprocess.run([python.path, "-c", "import pyrometer; pyrometer.metric('rows', 3)"], check=True)


# --- the streams ---


def test_streams_are_kept_apart():
    done = meter("sh", "-c", "echo out; echo err >&2; echo more", check=0)
    assert (done.stdout, done.stderr) == ("out\nmore\n", "err\n")
    run = last()
    assert (run["stdout"], run["stderr"], run["stderr_with_stdout"]) == ("out\nmore\n", "err\n", False)


def test_one_stream_keeps_its_order():
    text = "for i in $(seq 200); do echo o$i; echo e$i >&2; done"
    expected = "".join("o%d\ne%d\n" % (i, i) for i in range(1, 201))
    done = meter("sh", "-c", text, stderr=subprocess.STDOUT, check=0)
    assert done.stdout == expected
    run = last()
    assert run["stdout"] == expected and run["stderr"] is None and run["stderr_with_stdout"]


def test_megabytes_of_binary(default_python, tmp_path):
    text = "import sys, os\nfor i in range(256): sys.stdout.buffer.write(bytes(range(256)) * 256)\nsys.stderr.buffer.write(os.urandom(300000))"
    done = meter(default_python.path, "-c", text, check=0, text=False, options=["--keep-output", "10000"])
    assert done.stdout == bytes(range(256)) * 256 * 256 and len(done.stderr) == 300000
    with database(DB) as db:
        kept = {name: (total, data) for name, total, data in db.execute("SELECT name, total, bytes FROM output")}
    assert kept["stdout"] == (1 << 24, done.stdout[:5000] + done.stdout[-5000:])
    assert kept["stderr"] == (300000, done.stderr[:5000] + done.stderr[-5000:])
    assert last()["stdout"]


@pytest.mark.parametrize("size", [0, 1, 4999, 5000, 5001, 9999, 10000, 10001, 15000, 65536, 70001])
def test_what_is_kept_of_a_stream(default_python, size):
    text = "import sys, random\nr = random.Random(1)\ndata = bytes(r.randrange(256) for _ in range(%d))\n" \
           "import os\nat = 0\nwhile at < len(data): at += os.write(1, data[at:at + r.randrange(1, 9000)])" % size
    done = meter(default_python.path, "-c", text, check=0, text=False, options=["--keep-output", "10000"])
    with database(DB) as db:
        total, data = db.execute("SELECT total, bytes FROM output WHERE name = 'stdout'").fetchone()
    assert total == len(done.stdout) == size
    assert data == (done.stdout if size <= 10000 else done.stdout[:5000] + done.stdout[-5000:])


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_file_is_left_alone_and_read_back(tmp_path, mode):
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    with open(path, mode) as f:
        if mode == "w":
            f.write("ours\n")
            f.flush()
        done = pyrometer("run", "--no-profile", "--", "sh", "-c", "stat -c %F -L /proc/self/fd/1; echo text", stdout=f, check=0)
    assert path.read_text() == ("before\n" if mode == "a" else "ours\n") + "regular file\ntext\n"
    run = last()
    assert run["stdout"] == "regular file\ntext\n" and "elapsed" in done.stderr and run["stderr"] == ""


def test_no_capture_touches_nothing(default_python):
    read, write = os.pipe()
    text = "import os, sys\nwith open('inode', 'w') as f: f.write('%d %d' % (os.fstat(1).st_ino, os.fstat(2).st_ino))\nsys.exit(3)"
    done = subprocess.run([PYROMETER, "run", "--no-profile", "--quiet", "--no-capture", "--", default_python.path, "-c", text],
                          stdout=write, stderr=write)
    inode = os.fstat(read).st_ino
    os.close(read)
    os.close(write)
    with open("inode") as f:
        assert f.read() == "%d %d" % (inode, inode)
    assert done.returncode == 3 and last()["stdout"] is None and last()["exit_status"] == 3


def test_a_terminal_stays_one(default_python):
    """isatty, its size, and a change of it with SIGWINCH."""
    import fcntl
    import pty
    import struct
    import termios
    text = ("import os, signal, sys, time\n"
            "def size(): return tuple(os.get_terminal_size(1))\n"
            "got = []\nsignal.signal(signal.SIGWINCH, lambda *a: got.append(1))\n"
            "print([os.isatty(i) for i in range(3)], size(), flush=True)\n"
            "end = time.time() + 60\n"
            "while size() != (44, 11) and time.time() < end: time.sleep(0.02)\n"
            "while not got and time.time() < end: time.sleep(0.02)\n"
            "print('now', size(), bool(got)); sys.stderr.write('last\\n')\n")
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 99, 0, 0))
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "--", default_python.path, "-c", text],
                               stdin=child, stdout=child, stderr=child, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(child)
    out = b""
    while b"\n" not in out:
        out += os.read(main, 1000)
    assert b"[True, True, True] (99, 25)\r\n" == out
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 11, 44, 0, 0))
    out += harness.read_to_end(main)
    assert process.wait(timeout=harness.HANG) == 0
    os.close(main)
    assert out.endswith(b"now (44, 11) True\r\nlast\r\n"), out
    assert last()["stdout"] == "[True, True, True] (99, 25)\nnow (44, 11) True\nlast\n"


def test_modes_of_the_terminal_follow(default_python):
    """What the program sets on its standard output is set on the terminal that the user types at."""
    import fcntl
    import pty
    import termios
    text = ("import sys, termios, time\na = termios.tcgetattr(1)\na[3] &= ~(termios.ECHO | termios.ICANON)\n"
            "termios.tcsetattr(1, termios.TCSANOW, a)\nprint('set', flush=True)\nprint('got', repr(sys.stdin.buffer.raw.read(1)), flush=True)\n")
    main, child = pty.openpty()
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "--", default_python.path, "-c", text],
                               stdin=child, stdout=child, stderr=child, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    out = b""
    while b"set" not in out:
        out += os.read(main, 1000)
    wait_until(lambda: not termios.tcgetattr(child)[3] & termios.ICANON, "the mode")
    os.write(main, b"q")  # no line end: only a terminal without ICANON hands it on
    while b"got" not in out:
        out += os.read(main, 1000)
    assert process.wait(timeout=harness.HANG) == 0
    os.close(child)
    os.close(main)
    assert b"b'q'" in out or b"got" in out


def on_a_terminal(command):
    """The command with a terminal of its own, and the other end of that."""
    import fcntl
    import pty
    import termios
    main, child = pty.openpty()
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    return process, main, child


def read_until(fd, text):
    out = b""
    while text not in out:
        out += os.read(fd, 1000)
    return out


@pytest.mark.parametrize("where", ["os.open(os.ttyname(2), os.O_RDWR)", "2"], ids=["opened", "stderr"])
def test_keys_for_a_pager(default_python, where):
    """less and more read the keyboard from the terminal they write to."""
    import termios
    text = ("import os, termios, tty\nfd = %s\nbefore = termios.tcgetattr(fd)\ntty.setcbreak(fd)\nprint('page', flush=True)\n"
            "key = os.read(fd, 1)\ntermios.tcsetattr(fd, termios.TCSANOW, before)\nprint('key', key, flush=True)\n" % where)
    process, main, child = on_a_terminal([PYROMETER, "run", "--no-profile", "--quiet", "--", default_python.path, "-c", text])
    before = termios.tcgetattr(child)
    read_until(main, b"page")
    os.write(main, b"k")
    read_until(main, b"key b'k'")
    assert process.wait(timeout=harness.HANG) == 0
    wait_until(lambda: termios.tcgetattr(child) == before, "the terminal as it was")
    os.close(child)
    os.close(main)


def test_what_is_typed_ahead_stays(default_python):
    """Nobody waits for it at our terminal, so it is for whoever reads next: the program, or the shell."""
    process, main, child = on_a_terminal([PYROMETER, "run", "--no-profile", "--quiet", "--", default_python.path, "-c",
                                          "import time; print('go', flush=True); time.sleep(0.6); print(input())"])
    read_until(main, b"go")
    os.write(main, b"for the program\nfor the shell\n")
    assert process.wait(timeout=harness.HANG) == 0
    assert os.read(child, 100) == b"for the shell\n"
    os.close(child)
    os.close(main)
    assert last()["stdout"] == "go\nfor the program\n"


def test_a_reader_that_goes_away():
    """yes gets the SIGPIPE it would have got."""
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "yes"], stdout=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(timeout=harness.HANG) == 128 + signal.SIGPIPE
    assert last()["exit_status"] == 128 + signal.SIGPIPE


def test_a_reader_that_does_not_read():
    """The program has ended; what it wrote waits for the reader, we do not."""
    read, write = os.pipe()
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "sh", "-c", "head -c 300000 /dev/zero; exit 4"], stdout=write)
    os.close(write)
    assert process.wait(timeout=harness.HANG) == 4
    with open(read, "rb") as f:
        assert len(f.read()) == 300000


def test_a_program_that_closes_its_streams():
    done = meter("sh", "-c", "echo one; exec 1>&- 2>&-; sleep 0.2; exit 5", check=5)
    assert done.stdout == "one\n" and last()["stdout"] == "one\n"


def test_streams_closed_from_the_start():
    done = subprocess.run(["sh", "-c", '"$0" run --no-profile --quiet -- sh -c "echo x; exit 3" >&- 2>&-', PYROMETER])
    assert done.returncode == 3


def test_a_grandchild_that_holds_the_pipe(tmp_path):
    """We end with the program; what the grandchild writes later still arrives."""
    gone = tmp_path / "gone"
    text = "(while [ ! -e %s ]; do sleep 0.02; done; echo late) & echo early; exit 6" % gone
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "--", "sh", "-c", text], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.wait(timeout=harness.HANG) == 6  # does not wait for it
    gone.write_text("")
    assert process.stdout.read() == "early\nlate\n"
    assert last()["stdout"] == "early\n"


def test_writes_after_the_parent_died(tmp_path):
    text = "(sleep 0.3; echo orphan; echo orphan-err >&2) & exit 0"
    done = meter("sh", "-c", text, check=0)
    assert (done.stdout, done.stderr) == ("orphan\n", "orphan-err\n")


LINES = "import sys, time\nfor i in range(200):\n print('line %d' % i, flush=True)\n time.sleep(0.002)\nsys.exit(9)\n"


def test_killed_at_any_moment(default_python, scale):
    """SIGKILL of ours: the program ends its work, nothing it prints is lost, and the database is whole."""
    expected = "".join("line %d\n" % i for i in range(200))
    for i in range(scale(15, 200)):
        process = subprocess.Popen([PYROMETER, "run", "--quiet", *(["--no-profile"] if i % 2 else []), "--", default_python.path, "-c", LINES],
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
        first = process.stdout.readline()  # it has begun
        time.sleep(random.random() * 0.6)
        process.kill()
        assert first + process.stdout.read() == expected
        process.wait()
    meter("true", check=0)
    check_database()


def test_killed_while_it_keeps(scale):
    for _ in range(scale(20, 200)):
        process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "true"])
        time.sleep(random.random() * 0.04)
        process.kill()
        process.wait()
    meter("true", check=0)
    assert check_database() >= 1


# --- how a command ends ---


def test_not_found_and_not_executable(tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert "cannot run nonesuch" in one_line_error(meter("nonesuch"), 127)
    assert "cannot run ./script" in one_line_error(meter("./script"), 126)
    assert not os.path.exists(DB)  # nothing ran, nothing is kept


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_killed_by_a_signal(number):
    meter("sh", "-c", "echo x; kill -%d $$" % number, check=128 + number)
    run = last()
    assert run["exit_status"] == 128 + number and run["stdout"] == "x\n"


def test_signals_are_forwarded(default_python):
    text = "import signal, sys, time\nsignal.signal(signal.SIGUSR1, lambda *a: sys.exit(11))\nprint('ready', flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "--", default_python.path, "-c", text], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=harness.HANG) == 11
    process.stdout.close()


# --- groups ---


def test_repeat_and_warmup():
    meter("sh", "-c", "echo $$ >> pids", options=["--repeat", "3", "--warmup", "2"], check=0)
    with open("pids") as f:
        assert len(set(f.read().split())) == 5
    counted, everything = runs("sh -c 'echo $$ >> pids'"), runs("sh -c 'echo $$ >> pids'", "--all")
    assert len(counted) == 3 and len(everything) == 5
    assert {r["group"] for r in everything} == {everything[0]["uid"]}
    assert [r["warmup"] for r in everything] == [True, True, False, False, False]
    assert [r["repeat"] for r in everything] == list(range(5))


def test_repeat_leaves_the_signals_alone():
    """Each turn finds them as the first did."""
    meter("sh", "-c", "grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status > turn-$$", options=["--repeat", "3"], check=0)
    found = []
    for name in os.listdir():
        if name.startswith("turn-"):
            with open(name) as f:
                found.append(f.read())
    assert len(found) == 3 and len(set(found)) == 1 and "SigIgn" in found[0], found


def test_repeat_ends_with_a_failure():
    meter("sh", "-c", "echo x >> count; [ $(wc -l < count) -lt 3 ]", options=["--repeat", "9"], check=1)
    with open("count") as f:
        assert len(f.read().split()) == 3


def test_repeat_with_recordings(default_python):
    pyrometer("run", "--quiet", "--repeat", "2", "--", default_python.path, "-c", "pass", check=0)
    found = runs("%s -c pass" % default_python.path)
    assert len({r["profile"] for r in found}) == 2 and all(os.path.exists(r["profile"]) for r in found)
    for wrong in (["--repeat", "2", "-o", "x.pyro"], ["--warmup", "1"], ["--repeat", "0"], ["--no-profile", "--calls"]):
        one_line_error(pyrometer("run", *wrong, "--", "true"), 2)


# --- the store ---


def test_no_history(tmp_path):
    meter("true", options=["--no-history"], check=0)
    assert not os.path.exists(".pyrometer")


def test_where_the_history_is(tmp_path, monkeypatch):
    meter("true", check=0)
    (tmp_path / "a" / "b").mkdir(parents=True)
    meter("true", check=0, cwd=tmp_path / "a" / "b")
    assert check_database() == 2
    meter("true", options=["--db", "other.db"], check=0)
    assert check_database("other.db") == 1
    monkeypatch.setenv("PYROMETER_DB", str(tmp_path / "third.db"))
    meter("true", check=0)
    assert check_database("third.db") == 1 and len(runs("true")) == 1


def test_many_at_once(scale):
    count = scale(40, 200)
    processes = [subprocess.Popen([PYROMETER, "run", "--no-profile", "--quiet", "--", "sh", "-c", "read x; exit 5"],
                                  stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(count)]
    for process in processes:
        process.stdin.close()  # all end now
    for process in processes:
        assert process.wait(timeout=harness.HANG) == 5
        assert process.stderr.read() == b""
        process.stderr.close()
    assert check_database() == count


def test_newer_database_is_refused():
    meter("true", check=0)
    with database(DB) as db:
        db.execute("PRAGMA user_version = 1000")
    done = meter("sh", "-c", "echo out; exit 3", check=3)
    assert done.stdout == "out\n" and "newer Pyrometer" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "newer Pyrometer" in one_line_error(pyrometer("history"), 1)


@pytest.mark.parametrize("content", [b"not a database, but a text that is long enough" * 100, b"SQLite format 3\0" + b"\xff" * 5000, b"x"])
def test_damaged_database(content):
    os.mkdir(".pyrometer")
    with open(DB, "wb") as f:
        f.write(content)
    done = meter("sh", "-c", "echo out; exit 3", check=3)
    assert done.stdout == "out\n" and "not in the history" in done.stderr
    one_line_error(pyrometer("history"), 1)
    with open(DB, "rb") as f:
        assert f.read() == content


def test_database_damaged_inside():
    for _ in range(20):
        meter("true", check=0)
    with database(DB) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = os.path.getsize(DB)
    with open(DB, "r+b") as f:
        for page in range(1, size // 4096):
            f.seek(page * 4096)
            f.write(random.Random(page).randbytes(4096) if hasattr(random.Random, "randbytes") else os.urandom(4096))
    done = meter("sh", "-c", "echo out; exit 3", check=3)
    assert done.stdout == "out\n" and len(done.stderr.splitlines()) == 1
    pyrometer("history", check=1)


def test_somebody_elses_database():
    os.mkdir(".pyrometer")
    with database(DB) as db:
        db.execute("CREATE TABLE theirs(x)")
    assert "not a history" in meter("true", check=0).stderr
    assert "not a history" in one_line_error(pyrometer("history"), 1)


def as_nobody(command, **kwargs):
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", stdin=subprocess.DEVNULL, **kwargs)


def test_read_only_folder(tmp_path):
    binary = shutil.copy(PYROMETER, "/tmp/pyrometer-test-%d" % os.getpid())
    folder = "/tmp/pyrometer-ro-%d" % os.getpid()
    os.mkdir(folder, 0o755)
    try:
        os.chmod(folder, 0o555)
        done = as_nobody([binary, "run", "--no-profile", "--quiet", "sh", "-c", "echo out; exit 3"], cwd=folder)
        assert (done.returncode, done.stdout) == (3, "out\n") and len(done.stderr.splitlines()) == 1, done.stderr
        assert "--db" in done.stderr
        # a history that may only be read
        os.chmod(folder, 0o755)
        subprocess.run([binary, "run", "--no-profile", "--quiet", "true"], cwd=folder, check=True)
        for name in os.listdir(os.path.join(folder, ".pyrometer")):
            os.chmod(os.path.join(folder, ".pyrometer", name), 0o444)
        os.chmod(os.path.join(folder, ".pyrometer"), 0o555)
        done = as_nobody([binary, "history"], cwd=folder)
        assert done.returncode == 0 and "true" in done.stdout, done.stderr
        done = as_nobody([binary, "run", "--no-profile", "--quiet", "false"], cwd=folder)
        assert done.returncode == 1 and "not in the history" in done.stderr
    finally:
        os.unlink(binary)
        os.chmod(os.path.join(folder, ".pyrometer"), 0o755)
        shutil.rmtree(folder)


def test_full_disk(tmp_path):
    """A file system that is full in the middle of a commit."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        db = str(disk / "history.db")
        kept = 0
        for i in range(30):
            done = meter("head", "-c", "30000", "/dev/urandom", options=["--db", db], text=False)
            assert done.returncode == 0 and len(done.stdout) == 30000
            kept += not done.stderr
            assert not done.stderr or b"no space" in done.stderr
        assert 0 < kept < 30
        assert check_database(db) == kept
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_golden_schema_1():
    """A database of the first schema is read as it is, and brought forward by the first writer."""
    shutil.copy(os.path.join(harness.ROOT, "tests", "golden", "history-schema1.db"), "old.db")
    listed = json.loads(pyrometer("history", "--db", "old.db", "--json", check=0).stdout)["commands"]
    assert {c["command"]: c["runs"] for c in listed} == {"python3 -c 'print(\"golden\")'": 3, "true": 1}
    before = runs("python3 -c 'print(\"golden\")'", "--db", "old.db")
    assert [r["stdout"] for r in before] == ["golden\n"] * 3 and before[0]["tags"] == {"kind": "golden"}
    with database("old.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    meter("true", options=["--db", "old.db"], check=0)
    with database("old.db") as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] > 1
    assert check_database("old.db") == 5
    assert runs("python3 -c 'print(\"golden\")'", "--db", "old.db") == before
    assert len(runs("true", "--db", "old.db")) == 2


# --- looking ---


@pytest.fixture
def some_runs():
    for i in range(4):
        meter("sh", "-c", "exit %d" % (i % 2), options=["--tag", "n=%d" % i])
    meter("sh", "-c", "exit 0", options=["--tag", "n=9"])


def test_lists(some_runs):
    text = pyrometer("history", check=0).stdout
    assert re.search(r"^ +3 .* sh -c 'exit 0'$", text, re.M) and re.search(r"^ +2 .* sh -c 'exit 1'$", text, re.M), text
    for words in (["sh -c 'exit 0'"], ["sh -c 'exit 0'", "--last", "9"], ["/bin/sh -c 'exit 0'"], ['sh  -c "exit 0"']):
        text = pyrometer("history", *words, check=0).stdout
        assert len(text.splitlines()) == 4 and "n=9" in text, text
    assert [r["tags"]["n"] for r in runs("sh -c 'exit 0'")] == ["0", "2", "9"]
    assert [r["tags"]["n"] for r in runs("sh -c 'exit 0'", "--last", "2")] == ["2", "9"]
    assert [r["id"] for r in runs("sh -c 'exit 0'", "--tag", "n=2")] == [3]
    assert len(runs("sh -c 'exit 0'", "--tag", "n")) == 3 and not runs("sh -c 'exit 0'", "--tag", "m")
    assert len(runs("sh -c 'exit 0'", "--since", "1h")) == 3 and not runs("sh -c 'exit 0'", "--since", "2200-01-01")
    assert "no runs" in one_line_error(pyrometer("history", "other"), 1)
    for wrong in (["--since", "soon"], ["--json=rows"], ["--json", "--csv"], ["--last", "0"]):
        one_line_error(pyrometer("history", *wrong, "sh"), 2)


def test_json_and_csv(some_runs):
    listed = runs("sh -c 'exit 0'")
    columns = json.loads(pyrometer("history", "--json=columns", "sh -c 'exit 0'", check=0).stdout)
    for name in CONTEXT + METRICS:
        assert columns[name] == {str(i): r[name] for i, r in enumerate(listed)}
    import csv
    rows = list(csv.DictReader(pyrometer("history", "--csv", "sh -c 'exit 0'", check=0).stdout.splitlines()))
    assert [float(r["elapsed_time_sec"]) for r in rows] == [r["elapsed_time_sec"] for r in listed]
    assert [r["swaps"] for r in rows] == [""] * 3 and [r["tags"] for r in rows] == ["n=0", "n=2", "n=9"]


def test_json_is_documented(some_runs):
    with open(os.path.join(harness.ROOT, "docs", "json.md"), encoding="utf-8") as f:
        document = f.read()
    section = document[document.index("pyrometer history"):]
    for key in list(last()) + list(json.loads(pyrometer("history", "--json", check=0).stdout)["commands"][0]):
        assert "`%s`" % key in section, key


def test_metrics_are_documented(some_runs):
    with open(os.path.join(harness.ROOT, "docs", "history.md"), encoding="utf-8") as f:
        document = f.read()
    for key in METRICS + list(last()["metrics"]):
        assert "`%s`" % key in document, key


def test_show_and_names(some_runs):
    uid = last()["uid"]
    for name in ("@", "5", uid, uid[:8]):
        assert "run 5, " + uid in pyrometer("history", "show", name, check=0).stdout
    assert "run 4, " in pyrometer("history", "show", "@~1", check=0).stdout
    text = pyrometer("history", "show", check=0).stdout
    assert "swaps" in text and "unknown" in text and "n 9" in text
    for wrong, status in (("77", 1), ("@~77", 1), ("nonsense", 1), ("@x", 2)):
        one_line_error(pyrometer("history", "show", wrong), status)


def test_no_history_yet():
    assert "no history yet" in one_line_error(pyrometer("history"), 1)


def test_rm_and_gc(default_python, some_runs):
    pyrometer("history", "rm", "1", "@", check=0)
    assert check_database() == 3
    one_line_error(pyrometer("history", "rm", "2", "99"), 1)
    assert check_database() == 3  # all or none
    pyrometer("run", "--quiet", "--", default_python.path, "-c", "pass", check=0)
    profile = last()["profile"]
    done = pyrometer("history", "gc", "--max-size", "1", "--dry-run", check=0)
    assert done.stdout.count("would remove run") == 4 and check_database() == 4 and os.path.exists(profile)
    pyrometer("history", "gc", "--older-than", "1d", check=0)
    assert check_database() == 4
    pyrometer("history", "gc", "--max-size", "1", check=0)
    assert check_database() == 0 and not os.path.exists(profile)
    one_line_error(pyrometer("history", "gc"), 2)


def test_a_recording_of_ones_own_stays(default_python, tmp_path):
    pyrometer("run", "--quiet", "-o", "mine.pyro", "--", default_python.path, "-c", "pass", check=0)
    assert last()["profile"] == str(tmp_path / "mine.pyro")
    pyrometer("history", "rm", "@", check=0)
    assert os.path.exists("mine.pyro")


# --- other tools' histories ---


def soma_tree(folder):
    import hashlib
    command = "python tests/objects.py"
    place = folder / hashlib.md5(command.encode()).hexdigest()
    place.mkdir(parents=True)
    (place / "command.txt").write_text(command)
    for i in range(3):
        run = {"command": command, "timestamp": 1690000000.25 + i, "stdout": "out %d\n" % i, "stderr": "", "tiledb_stats": {"timers": {"t.sum": i}},
               "tiledbsoma_version": "1.2", "host_context": {"cpu_count": 8, "python_version": "3.10"}, "user_time_sec": "1.5%d" % i,
               "pct_of_cpu": "98%", "max_res_set_sz_kb": 1000 + i, "exit_status": 0, "custom_out": [None, None]}
        (place / ("%s.json" % run["timestamp"])).write_text(json.dumps(run))
    return place


def test_import_of_soma_runs(tmp_path):
    place = soma_tree(tmp_path / "profiling_runs")
    done = pyrometer("history", "import", tmp_path / "profiling_runs", check=0)
    assert "3 runs imported" in done.stdout and done.stderr == ""
    found = runs("python tests/objects.py")
    assert [r["max_res_set_sz_kb"] for r in found] == [1000, 1001, 1002]
    assert [r["user_time_sec"] for r in found] == [1.50, 1.51, 1.52] and found[0]["pct_of_cpu"] == 98
    assert found[1]["stdout"] == "out 1\n" and found[1]["timestamp"] == 1690000001.25
    assert found[2]["tiledb_stats"] == {"timers": {"t.sum": 2}} and found[2]["metrics"]["tiledb_stats.timers.t.sum"] == 2
    assert found[0]["tiledbsoma_version"] == "1.2" and found[0]["host_context"]["cpu_count"] == "8"
    assert "3 known already" in pyrometer("history", "import", tmp_path / "profiling_runs", check=0).stdout
    (place / "broken.json").write_text('{"command": "x", ')
    (place / "list.json").write_text("[1, 2]")
    done = pyrometer("history", "import", tmp_path / "profiling_runs", check=0)
    assert "broken.json" in done.stderr and "list.json" in done.stderr and len(runs("python tests/objects.py")) == 3


def test_pickles_are_named_and_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.system, ("touch %s/ran" % tmp_path,))
    import pickle
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "2023-06-06 10:00:00.run").write_bytes(pickle.dumps(Evil()))
    done = pyrometer("history", "import", tmp_path / "old")
    assert done.returncode == 1 and "2023-06-06 10:00:00.run" in done.stderr
    assert not (tmp_path / "ran").exists()


# --- Python ---

ASK = r"""
import pyrometer
from pyrometer import data
h = pyrometer.history.open(*ARGS)
assert [c["runs"] for c in h.commands()] == [3]
values = h.extract("python tests/objects.py", "peak_memory")
assert values == [1000, 1001, 1002], values
assert data.FileBasedProfileDB(*ARGS).extract('python tests/objects.py', 'peak_memory') == values
assert "3 runs" in str(data.FileBasedProfileDB(*ARGS))
assert [r["max_res_set_sz_kb"] for r in h.find("python tests/objects.py", last=2)] == values[1:]
assert len(list(h.runs())) == 3 and h.extract("python tests/objects.py", "tiledb_stats.timers.t.sum") == [0, 1, 2]
assert h.find("other") == [] and h.extract("other", "x") == []
try:
    h.extract("python tests/objects.py", "no_such_metric")
except KeyError:
    pass
else:
    raise AssertionError
try:
    import pandas
except ImportError:
    pass
else:
    assert list(h.to_pandas("python tests/objects.py")["max_res_set_sz_kb"]) == values
"""


def test_in_python(python, tmp_path, monkeypatch):
    soma_tree(tmp_path / "profiling_runs")
    pyrometer("history", "import", tmp_path / "profiling_runs", check=0)
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    monkeypatch.setenv("PYROMETER_BINARY", PYROMETER)
    for args in ("()", "(%r,)" % os.path.abspath(DB)):
        done = subprocess.run([python.path, "-c", ASK.replace("*ARGS", "*" + args)], stderr=subprocess.PIPE, encoding="utf-8")
        assert done.returncode == 0, done.stderr
    done = subprocess.run([python.path, "-c", "import pyrometer\ntry: pyrometer.history.open('nowhere.db')\n"
                           "except pyrometer.PyrometerError as e: print(e)"], stdout=subprocess.PIPE, encoding="utf-8")
    assert "nowhere.db" in done.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
