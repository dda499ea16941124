"""What takes longer than a second says how far it is, on one line of the terminal that is gone afterwards.

With PYROMETER_PROGRESS_AFTER_MS=0 the line is there at once, before a command has done anything, and is written anew every
millisecond: so it is always seen, and whatever it could come between, it comes between.
"""
import concurrent.futures
import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import termios

import pytest

from harness import HANG, PYROMETER, ROOT, default_python, pyrometer, read_to_end, record, wait_until, workload
from tmux import HAS_TMUX, Terminal

ERASE = b"\r\x1b[K"
LINE = re.compile(rb"\r\x1b\[K(pyrometer: [a-z ]+: [0-9][0-9, s%]*)(?=\r\x1b\[K)")


def terminal_env(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PYROMETER_PROGRESS_AFTER_MS")}
    env.update(dict({"TERM": "xterm", "NO_COLOR": "1", "PYROMETER_PROGRESS_AFTER_MS": "0"}, **more))
    return {k: v for k, v in env.items() if v is not None}


def in_terminal(args, stdout=None, **env):
    """(status, what the terminal was sent, standard output); stdout=None: it is the terminal, too."""
    main, end = pty.openpty()
    with open(os.devnull, "wb") as null:
        process = subprocess.Popen([PYROMETER, *[str(a) for a in args]], stdin=subprocess.DEVNULL, stderr=end,
                                   stdout=end if stdout is None else null if stdout == "null" else stdout,
                                   env=terminal_env(**env))
    os.close(end)
    with concurrent.futures.ThreadPoolExecutor() as pool:  # neither may wait for the other to be read
        out = pool.submit(process.stdout.read) if process.stdout else None
        sent = read_to_end(main)
        out = out.result() if out else b""
    if process.stdout:
        process.stdout.close()
    os.close(main)
    return process.wait(timeout=HANG), sent, out


def lines_of(sent):
    return [m.group(1).decode() for m in LINE.finditer(sent)]


def left_over(sent):
    """What stands on the terminal in the end. Nothing may follow the line but its end."""
    first, *pieces = sent.split(ERASE)
    rest = [first]
    for number, piece in enumerate(pieces):
        is_line = re.fullmatch(rb"pyrometer: [a-z ]+: [0-9][0-9, s%]*", piece)
        assert not is_line or number + 1 < len(pieces), piece
        if not is_line:
            rest.append(piece)
    return b"".join(rest)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recordings of all kinds, and a history."""
    folder = tmp_path_factory.mktemp("progress")
    env = dict(os.environ, PYROMETER_DB=str(folder / "history.db"))
    few = ["-c", "def f(n):\n    return n and f(n - 1)\nfor i in range(50):\n    f(5)"]
    for name, options in (("a", []), ("b", []), ("t", ["--trace"]), ("m", ["--memory"]), ("l", ["--lines"])):
        program = [workload("shares.py"), "0.3"] if name in "ab" else few
        record([default_python().path, *program], folder / (name + ".pyro"), *options, env=env)
    whole = (folder / "a.pyro").read_bytes()
    (folder / "torn.pyro").write_bytes(whole[:-100])
    (folder / "stacks.txt").write_text("".join("main;work %d;leaf 1\n" % i for i in range(3000)))
    runs = folder / "soma" / "command"
    runs.mkdir(parents=True)
    (runs / "command.txt").write_text("python app.py\n")
    return folder


VIEWS = [
    ["report", "a.pyro"],
    ["report", "--by", "line", "l.pyro"],
    ["report", "--json", "a.pyro"],
    ["report", "stacks.txt"],
    ["report", "--thread", "nobody", "a.pyro"],
    ["report", "torn.pyro"],
    ["report", "."],
    ["tree", "--text", "a.pyro"],
    ["tree", "--json", "a.pyro"],
    ["lines", "a.pyro"],
    ["lines", "l.pyro"],
    ["memory", "m.pyro"],
    ["memory", "stats", "m.pyro"],
    ["memory", "leaks", "m.pyro"],
    ["memory", "lines", "m.pyro"],
    ["memory", "plot", "m.pyro"],
    ["timeline", "--json", "t.pyro"],
    ["diff", "a.pyro", "b.pyro"],
    ["info", "a.pyro"],
    ["verify", "a.pyro"],
    ["verify", "--json", "a.pyro"],
    ["verify", "torn.pyro"],
    ["export", "collapsed", "a.pyro"],
    ["export", "csv", "a.pyro"],
    ["export", "json", "a.pyro"],
    ["export", "speedscope", "a.pyro"],
    ["export", "callgrind", "a.pyro"],
    ["export", "chrome", "t.pyro"],
    ["export", "chrome", "a.pyro"],
    ["history", "--db", "history.db"],
    ["history", "show", "--db", "history.db", "1"],
    ["history", "check", "--db", "history.db"],
    ["history", "--db", "history.db", "--metric", "elapsed_time_sec"],
    ["history", "gc", "--dry-run", "--max-size", "1", "--db", "history.db"],
]


@pytest.mark.parametrize("args", VIEWS, ids=" ".join)
def test_the_line_comes_and_goes(folder, monkeypatch, args):
    """On one terminal with the output: what stays is what would be there without."""
    monkeypatch.chdir(folder)
    status, plain, _ = in_terminal(args, PYROMETER_PROGRESS_AFTER_MS="3600000")
    assert ERASE not in plain
    again, sent, _ = in_terminal(args)
    assert lines_of(sent) and again == status
    assert left_over(sent) == plain


@pytest.mark.once
@pytest.mark.parametrize("args", VIEWS, ids=" ".join)
def test_the_output_is_the_same(folder, monkeypatch, args):
    """Into a pipe, and with nothing of it where standard error is none."""
    monkeypatch.chdir(folder)
    done = pyrometer(*args, text=False, env=terminal_env())
    assert b"\x1b" not in done.stderr and b"\r" not in done.stderr
    status, sent, out = in_terminal(args, stdout=subprocess.PIPE)
    assert (status, out) == (done.returncode, done.stdout)
    assert lines_of(sent) and left_over(sent).replace(b"\r\n", b"\n") == done.stderr
    _, plain, out = in_terminal(args, stdout=subprocess.PIPE, TERM="dumb")
    assert out == done.stdout and plain.replace(b"\r\n", b"\n") == done.stderr


FILES = [
    ["flame", "a.pyro", "-o", "out.html"],
    ["flame", "a.pyro", "-o", "out.svg", "--by-time"],
    ["graph", "a.pyro", "-o", "out.svg"],
    ["graph", "a.pyro", "-o", "out.png"],
    ["timeline", "t.pyro", "-o", "out.html"],
    ["export", "pprof", "a.pyro", "-o", "out.pb.gz"],
    ["export", "perfetto", "t.pyro", "-o", "out.perfetto"],
    ["export", "pstats", "a.pyro", "-o", "out.pstats"],
    ["verify", "--repair", "torn.pyro", "-o", "out.pyro"],
    ["history", "import", "soma", "--db", "imported.db"],
]


@pytest.mark.parametrize("args", FILES, ids=" ".join)
def test_files(folder, monkeypatch, tmp_path, args):
    monkeypatch.chdir(folder)
    written = args[args.index("-o") + 1] if "-o" in args else None
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        out = [str(tmp_path / name / a) if a in (written, "imported.db") else a for a in args]
        status, sent, _ = in_terminal(out, stdout="null", **({} if name == "with" else {"PYROMETER_PROGRESS_AFTER_MS": "3600000"}))
        assert bool(lines_of(sent)) == (name == "with"), sent
        if name == "with":
            rest, first = left_over(sent), status
    assert status == first and rest == sent.replace(str(tmp_path / "without").encode(), str(tmp_path / "with").encode())
    if written:
        assert (tmp_path / "with" / written).read_bytes() == (tmp_path / "without" / written).read_bytes()


def test_nothing_within_a_second(folder):
    """The default, with something that takes no time at all."""
    _, sent, _ = in_terminal(["verify", folder / "nothing.pyro"], PYROMETER_PROGRESS_AFTER_MS=None)
    assert sent and ERASE not in sent


def test_after_a_second(target, tmp_path):
    """The default, with something that takes longer: the first line that is shown tells of a second, and there is one."""
    one = target([default_python().path, workload("chains.py"), "10", "20000", "60"])
    status, sent, _ = in_terminal(["attach", "--for", "1.6", "-o", tmp_path / "x.pyro", one.pid], PYROMETER_PROGRESS_AFTER_MS=None)
    assert status == 0 and lines_of(sent), sent
    assert re.fullmatch(r"pyrometer: taking samples: \d+, [1-9]\d* s", lines_of(sent)[0]), sent


def test_attach(target, tmp_path):
    """The program has another terminal, so there is a line while it is recorded; with --quiet there is none."""
    one = target([default_python().path, workload("chains.py"), "10", "20000", "60"])
    args = ["attach", "--for", "0.5", "-o", tmp_path / "x.pyro", "--force", one.pid]
    status, sent, _ = in_terminal(args)
    samples = [int(n) for n in re.findall(r"pyrometer: taking samples: (\d+), \d+ s", "\n".join(lines_of(sent)))]
    assert status == 0 and samples == sorted(samples) and len(set(samples)) > 2, sent
    assert b"recorded in" in left_over(sent)
    assert in_terminal(["attach", "--quiet", *args[1:]])[:2] == (0, b"")


def test_selftest(tmp_path):
    """The lines of the results go above it."""
    (tmp_path / "python3").symlink_to(default_python().path)
    _, sent, _ = in_terminal(["selftest"], PATH=str(tmp_path), HOME=str(tmp_path), PYENV_ROOT=str(tmp_path))
    assert "pyrometer: recording a program of known truth with each: 0 %" in lines_of(sent), sent
    rest = left_over(sent).decode().splitlines()
    assert len(rest) >= 4 and all(re.match("(ok  |FAIL)  |[0-9]+ of the claims", line) for line in rest), rest
    _, sent, out = in_terminal(["selftest"], stdout=subprocess.PIPE, PATH="/nowhere", HOME=str(tmp_path), PYENV_ROOT="/nowhere")
    assert sent == b"" and out.startswith(b"ok    rights"), sent


def test_run(tmp_path, monkeypatch):
    """The terminal is the program's while it runs, and ours afterwards; with --quiet it never is."""
    monkeypatch.chdir(tmp_path)
    program = "import sys, time; sys.stderr.write('begin\\n'); time.sleep(0.3); sys.stderr.write('end\\n')"
    for options in (["--no-history"], ["--db", "h.db"], ["--quiet", "--db", "h.db"]):
        status, sent, _ = in_terminal(["run", *options, default_python().path, "-c", program], stdout="null")
        before, middle = sent.split(b"begin\r\n")
        middle, after = middle.split(b"end\r\n")
        assert status == 0 and (before, middle) == (b"", b"")
        assert bool(lines_of(after)) == ("--quiet" not in options), sent
        if "--quiet" not in options:
            assert b"pyrometer" in left_over(after)  # which of its steps the line tells of depends on how quick they are
        else:
            assert after == b""


# --- a recording that takes a while ---


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """10^6 samples over many stacks: tenths of a second, in which the line is written anew a hundred times."""
    folder = tmp_path_factory.mktemp("big")
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "no compiler"
    sources = [os.path.join(ROOT, "src", d, f) for d in ("base", "format") for f in sorted(os.listdir(os.path.join(ROOT, "src", d)))
               if f.endswith(".c")]
    maker = str(folder / "make_big")
    subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-ffunction-sections", "-Wl,--gc-sections",
                    "-I" + os.path.join(ROOT, "src"), os.path.join(ROOT, "bench", "make_big.c"), *sources, "-lzstd", "-lxxhash", "-lm",
                    "-lpthread", "-o", maker], check=True, timeout=HANG)
    subprocess.run([maker, str(folder / "big.pyro"), "1000000", "50000", "30", "15"], check=True, timeout=HANG)
    return str(folder / "big.pyro")


@pytest.mark.once
@pytest.mark.parametrize("args, stage", [
    (["report"], "adding up samples"),
    (["verify"], "checking the recording"),
    (["export", "speedscope"], "writing samples"),
    (["export", "collapsed"], "writing stacks"),
    (["tree", "--json"], "writing the tree"),
], ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_percent_grows(big, args, stage):
    status, sent, _ = in_terminal([*args, big], stdout="null")
    percent = [int(p) for p in re.findall(r"pyrometer: %s: (\d+) %%" % stage, "\n".join(lines_of(sent)))]
    assert status == 0 and left_over(sent) == b""
    assert percent == sorted(percent) and len(set(percent)) > 3 and 0 <= percent[0] and percent[-1] <= 100


class Started:
    """A command at a terminal of its own, with a process group in its foreground, that has shown its line."""

    def __init__(self, args, stdout=subprocess.DEVNULL):
        self.main, end = pty.openpty()
        self.process = subprocess.Popen([PYROMETER, *args], stdin=end, stdout=stdout, stderr=end, env=terminal_env(),
                                        start_new_session=True, preexec_fn=self.take_terminal)
        os.close(end)
        self.sent = b""
        while not lines_of(self.sent):
            self.sent += os.read(self.main, 1000)

    @staticmethod
    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # a test run in the background may ignore them
            signal.signal(number, signal.SIG_DFL)

    def finish(self):
        self.sent += read_to_end(self.main)
        os.close(self.main)
        return self.process.wait(timeout=HANG)


@pytest.mark.parametrize("how", ["C-c", "SIGTERM", "SIGHUP"])
def test_interrupted(big, tmp_path, how):
    """However it is ended, the line is gone, and who waits for us sees by what."""
    started = Started(["export", "speedscope", big, "-o", str(tmp_path / "x.json")])
    if how == "C-c":
        os.write(started.main, b"\x03")
    else:
        started.process.send_signal(getattr(signal, how))
    assert started.finish() == -(signal.SIGINT if how == "C-c" else getattr(signal, how))
    sent = started.sent.replace(b"^C", b"")  # which the terminal echoes
    assert left_over(sent) == b"" and sent.endswith(ERASE)


def test_reader_went_away(big):
    """SIGPIPE ends us, as it does without the line; the line is gone all the same."""
    read, write = os.pipe()
    os.close(read)
    started = Started(["export", "csv", big], stdout=write)
    os.close(write)
    assert started.finish() == -signal.SIGPIPE
    assert left_over(started.sent) == b"" and started.sent.endswith(ERASE)


def test_terminal_of_a_pager(big):
    """In `pyrometer … | less` the pager has the terminal, and has set it to read single keys: nothing is drawn or erased then."""
    main, end = pty.openpty()
    modes = termios.tcgetattr(end)
    modes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(end, termios.TCSANOW, modes)
    done = subprocess.run([PYROMETER, "report", big], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, env=terminal_env(),
                          timeout=HANG)
    os.close(end)
    assert done.returncode == 0 and done.stdout and read_to_end(main) == b""
    os.close(main)


@pytest.mark.once
@pytest.mark.skipif(not HAS_TMUX, reason="no tmux")
def test_screen_is_not_disturbed(folder, tmp_path):
    """The tree to walk through has the terminal for itself; after it, the shell does."""
    screens = []
    for ms in ("0", "3600000"):
        (tmp_path / ms).mkdir()
        with Terminal(tmp_path / ms, PYROMETER_PROGRESS_AFTER_MS=ms) as t:
            t.run("%s tree %s" % (PYROMETER, folder / "a.pyro"))
            t.wait("main")
            t.keys("End")
            t.keys("Home")
            screens.append(t.text())
            t.keys("q")
            wait_until(lambda: t.text().rstrip().endswith("ready>"), "the shell")
            assert "pyrometer:" not in t.text()
    assert screens[0] == screens[1]
