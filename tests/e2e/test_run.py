"""`pyrometer run`: whatever is started, it is recorded, and it does not notice."""
import fcntl
import glob
import json
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import termios

import pytest

import harness
from harness import PYROMETER, Recording, pyrometer, record, spin_text, workload


def busy_in(recording, function):
    """The function is in the recording and has most of its time."""
    row = recording.row(function)
    assert row, "%s is not in %s" % (function, [r["name"] for r in recording.rows()])
    assert row["total_percent"] > 50, row
    return row


# --- what can be started ---


def test_script(python, tmp_path):
    script = tmp_path / "app.py"
    script.write_text(spin_text("in_script", 0.4))
    recording = record([python.path, str(script)], tmp_path / "x.pyro")
    row = busy_in(recording, "in_script")
    assert row["file"].endswith("app.py")
    assert row["line"] == 2
    assert "whole" in recording.verify().stdout


def test_module(python, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(spin_text("in_module", 0.4))
    busy_in(record([python.path, "-m", "package"], tmp_path / "x.pyro"), "in_module")


def test_command(python, tmp_path):
    row = busy_in(record([python.path, "-c", spin_text("in_command", 0.4)], tmp_path / "x.pyro"), "in_command")
    assert row["file"] == "<string>"


def test_stdin_program(default_python, tmp_path):
    recording = record([default_python.path, "-"], tmp_path / "x.pyro", stdin=None,
                       input=spin_text("in_stdin", 0.4))
    busy_in(recording, "in_stdin")


def test_console_script(default_python, tmp_path):
    script = tmp_path / "tool"
    script.write_text("#!%s\n%s" % (default_python.path, spin_text("in_tool", 0.4)))
    script.chmod(0o755)
    busy_in(record([str(script)], tmp_path / "x.pyro"), "in_tool")


def test_program_found_in_path(default_python, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mytool").write_text("#!%s\n%s" % (default_python.path, spin_text("in_path", 0.4)))
    (folder / "mytool").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])
    busy_in(record(["mytool"], tmp_path / "x.pyro"), "in_path")


def test_shell_wrapper(python, tmp_path):
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text('#!/bin/sh\n"$1" -c "$2"\nexit 5\n')
    wrapper.chmod(0o755)
    recording = record([str(wrapper), python.path, spin_text("in_wrapper", 0.4)], tmp_path / "x.pyro", check=5)
    busy_in(recording, "in_wrapper")


def test_shell_exec(default_python, tmp_path):
    recording = record(["sh", "-c", 'exec "$0" -c "$1"', default_python.path, spin_text("in_exec", 0.4)],
                       tmp_path / "x.pyro")
    busy_in(recording, "in_exec")


def test_env_wrapper(default_python, tmp_path):
    recording = record(["env", "-i", default_python.path, "-c", spin_text("in_env", 0.4)], tmp_path / "x.pyro")
    busy_in(recording, "in_env")


def test_venv(python, tmp_path):
    folder = tmp_path / "venv"
    made = subprocess.run([python.path, "-m", "venv", "--without-pip", str(folder)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if made.returncode:
        pytest.skip("this %s makes no venv: %s" % (python, made.stdout.strip().splitlines()[-1]))
    busy_in(record([str(folder / "bin" / "python"), "-c", spin_text("in_venv", 0.4)], tmp_path / "x.pyro"), "in_venv")


def test_pytest(tmp_path):
    """pytest itself as the target, with the pytest that runs these tests."""
    test = tmp_path / "test_inner.py"
    body = "\n".join("    " + line for line in spin_text("inner", 0.5).splitlines())
    test.write_text("def test_that_spins():\n" + body + "\n")
    recording = record([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)], tmp_path / "x.pyro")
    assert "1 passed" in recording.stdout
    assert recording.row("test_that_spins")["total"] > 0
    assert any("pytest" in (r["file"] or "") for r in recording.rows())


EMBEDDED = """
#include <Python.h>
int main(int argc, char **argv)
{
    (void)argc;
    Py_Initialize();
    int rc = PyRun_SimpleString(argv[1]);
    return Py_FinalizeEx() < 0 ? 120 : rc ? 1 : 0;
}
"""


def make_host(python, folder, static):
    """The C program above, linked against libpython, or with libpython in it."""
    config = python.path + "-config"
    if python.name.endswith("-system"):
        config = shutil.which("python%s-config" % python.minor, path="/usr/bin") or ""
    if not os.access(config, os.X_OK):
        pytest.skip("no headers for %s" % python)
    source, host = folder / "host.c", folder / "host"
    source.write_text(EMBEDDED)

    def flags(*what):
        return subprocess.run([config, *what], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.split()

    libdir = os.path.join(os.path.dirname(os.path.dirname(python.path)), "lib")
    link = [*flags("--embed", "--ldflags"), "-Wl,-rpath," + libdir]
    if static:
        archive = os.path.join(flags("--configdir")[0], "libpython%s.a" % python.minor)
        if not os.path.exists(archive):
            pytest.skip("no %s" % archive)
        # as python itself is linked: its symbols are there for modules, and for our library
        link = ["-Wl,--export-dynamic", archive, *[f for f in link if not f.startswith("-lpython")]]
        if python.name.endswith("-system"):  # Debian's is not position-independent, and has more modules in it
            link += ["-no-pie", "-lz", "-lexpat"]
    subprocess.run(["gcc", str(source), "-o", str(host), *flags("--includes"), *link], check=True)
    return str(host)


WHERE = "print('libpython' in open('/proc/self/maps').read())\n"


def test_embedded(python, tmp_path):
    host = make_host(python, tmp_path, static=False)
    recording = record([host, spin_text("in_host", 0.4) + WHERE], tmp_path / "x.pyro")
    assert recording.stdout == "True\n"
    busy_in(recording, "in_host")


@pytest.mark.long
def test_embedded_static(python, tmp_path):
    host = make_host(python, tmp_path, static=True)
    recording = record([host, spin_text("in_host", 0.4) + WHERE], tmp_path / "x.pyro")
    assert recording.stdout == "False\n"
    busy_in(recording, "in_host")
    calls = record([host, "def f(): pass\nfor _ in range(1000): f()\n"], tmp_path / "calls.pyro", "--calls")
    assert calls.row("f")["calls"] == 1000


# --- the program does not notice ---

MIRROR = r"""
import os, sys
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(data[::-1])
sys.stderr.buffer.write(bytes(range(256)))
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 1, 2, 77, 255])
def test_streams_and_status(default_python, tmp_path, status):
    data = bytes(range(256)) * 5000  # more than a pipe holds
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", MIRROR, status,
                     text=False, stdin=None, input=data)
    assert done.returncode == status
    assert done.stdout == data[::-1]
    assert done.stderr == bytes(range(256))


def test_stdout_is_the_targets_alone(default_python, tmp_path):
    """Without --quiet the summary goes to stderr."""
    done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", "print('mine')", check=0)
    assert done.stdout == "mine\n"
    assert done.stderr


def test_arguments_pass_untouched(default_python, tmp_path):
    args = ["--json", "-o", "--", "--quiet", "a b", "", "é\n", "--for=3"]
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", default_python.path, "-c",
                     "import sys, json; print(json.dumps(sys.argv[1:]))", *args, check=0)
    assert json.loads(done.stdout) == args


def test_environment_passes_untouched(default_python, tmp_path):
    """But for the one variable that says who records."""
    show = "import os, json; print(json.dumps(dict(os.environ), sort_keys=True))"
    bare = subprocess.run([default_python.path, "-c", show], stdout=subprocess.PIPE, encoding="utf-8").stdout
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", show, check=0)
    seen = json.loads(done.stdout)
    assert seen.pop("PYROMETER_ACTIVE").isdigit()
    expected = json.loads(bare)
    expected.pop("PYROMETER_ACTIVE", None)
    assert seen == expected


PROCESS_STATE = r"""
import json, os, signal, resource
status = dict(line.split(':', 1) for line in open('/proc/self/status') if line.startswith('Sig') or line.startswith('Shd'))
print(json.dumps({
    'fds': sorted(int(f) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)),
    'blocked': status['SigBlk'].strip(), 'ignored': status['SigIgn'].strip(), 'cwd': os.getcwd(),
    'group_leader': os.getpgrp() == os.getpid(), 'umask': os.umask(0), 'nice': os.nice(0),
    'files': resource.getrlimit(resource.RLIMIT_NOFILE),
}))
"""


def test_process_state_passes_untouched(default_python, tmp_path):
    """No signal is blocked or ignored for the target that was not before, no descriptor leaks in."""
    def state(command):
        out = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
        return json.loads(out)

    target = [default_python.path, "-c", PROCESS_STATE]
    bare = state(target)
    recorded = state([PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", *target])
    assert recorded == bare


def take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_terminal_stays_the_targets(default_python, tmp_path):
    """With a terminal the target sees a terminal, and reads what is typed."""
    text = "import sys, os; print([os.isatty(i) for i in range(3)], os.tcgetpgrp(0) == os.getpgrp()); print(input()[::-1])"
    main, child = pty.openpty()
    process = subprocess.Popen([PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--",
                                default_python.path, "-c", text],
                               stdin=child, stdout=child, stderr=child, start_new_session=True,
                               preexec_fn=take_terminal)
    os.close(child)
    os.write(main, b"lemon\n")
    out = harness.read_to_end(main)
    os.close(main)
    assert process.wait(timeout=harness.HANG) == 0
    assert b"[True, True, True] True" in out
    assert b"nomel" in out


@pytest.mark.parametrize("inherited", range(12))
def test_inherited_descriptors(default_python, tmp_path, inherited):
    """Whatever else is open, both streams end with the program, also if they are one."""
    script = "".join("exec %d</dev/null; " % fd for fd in range(3, 3 + inherited)) + '"$@" 2>&1 | cat'
    command = [PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-S", "-c", "print(1)"]
    done = subprocess.run(["bash", "-c", script, "bash", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=harness.HANG)
    assert done.stdout == b"1\n"


# --- signals ---


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1])
def test_status_after_a_signal(default_python, tmp_path, number):
    text = "import os, signal; signal.signal({n}, signal.SIG_DFL) if {n} != 9 else None; os.kill(os.getpid(), {n})".format(n=int(number))
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", text)
    assert done.returncode == 128 + number


COUNTER = r"""
import os, signal, sys, time
got = []
signal.signal({n}, lambda *a: got.append(1))
print('ready', flush=True)
end = time.time() + 60
while not got and time.time() < end:
    time.sleep(0.02)
time.sleep(0.3)
print(len(got), flush=True)
sys.exit(40 + len(got))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
                                    signal.SIGALRM, signal.SIGCONT, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU, signal.SIGIO,
                                    signal.SIGPROF, signal.SIGVTALRM, signal.SIGURG, signal.SIGRTMIN, signal.SIGRTMIN + 5],
                         ids=lambda number: getattr(number, "name", str(int(number))))
def test_signal_is_forwarded_once(default_python, tmp_path, number):
    process = subprocess.Popen(
        [PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c",
         COUNTER.replace("{n}", str(int(number)))], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8",
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # whoever runs the tests may ignore it (nohup)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "1\n"
    assert process.wait(timeout=harness.HANG) == 41
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("handled", [True, False], ids=["handled", "ignored"])
def test_signal_that_was_ignored_at_first(default_python, tmp_path, number, handled):
    """As a shell starts what runs in the background, or nohup: a program that has a handler gets it all the same, another ignores it."""
    quiet = "import time\nprint('ready', flush=True)\ntime.sleep(0.3)\nprint(1, flush=True)\nraise SystemExit(41)"
    process = subprocess.Popen(
        [PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c",
         COUNTER.replace("{n}", str(int(number))) if handled else quiet], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        encoding="utf-8", preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "1\n"
    assert process.wait(timeout=harness.HANG) == 41
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout


def test_ctrl_c_on_a_terminal_arrives_once(default_python, tmp_path):
    main, child = pty.openpty()
    process = subprocess.Popen(
        [PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c",
         COUNTER.replace("{n}", str(int(signal.SIGINT)))], stdin=child, stdout=subprocess.PIPE, stderr=child,
        encoding="utf-8", start_new_session=True,
        preexec_fn=take_terminal)
    os.close(child)
    assert process.stdout.readline() == "ready\n"
    os.write(main, b"\x03")
    assert process.stdout.readline() == "1\n"
    assert process.wait(timeout=harness.HANG) == 41
    os.close(main)
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout


# Tells after each signal how many there were, two in quick succession included.
EACH_SIGNAL = r"""
import os, select, signal, time
read, write = os.pipe()
os.set_blocking(write, False)
signal.signal({n}, lambda *a: None)
signal.set_wakeup_fd(write)
print('ready', os.getpid(), flush=True)
total = 0
for _ in range({times}):
    if not select.select([read], [], [], 60)[0]:
        break
    time.sleep(0.15)
    total += len(os.read(read, 100))
    print(total, flush=True)
"""


def start_counter(python, options, number, times, before=lambda: None, **kwargs):
    def prepare():
        signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it (nohup)
        before()

    text = EACH_SIGNAL.replace("{n}", str(int(number))).replace("{times}", str(times))
    process = subprocess.Popen([PYROMETER, "run", "--quiet", *options, "--", python.path, "-c", text], stdout=subprocess.PIPE,
                               encoding="utf-8", start_new_session=True, preexec_fn=prepare, **kwargs)
    assert process.stdout.readline().startswith("ready ")
    return process


@pytest.mark.parametrize("options", [["--no-history"], ["--no-profile"]], ids=" ".join)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGCONT], ids=lambda number: number.name)
def test_signal_to_the_group_arrives_once(default_python, options, number):
    """Who sends to the whole group has reached the program without us; and one to us alone is sent on, before and after."""
    process = start_counter(default_python, options, number, 4, stdin=subprocess.DEVNULL)
    for count, send in enumerate((os.kill, os.killpg, os.kill, os.killpg), 1):
        send(process.pid, number)
        assert process.stdout.readline() == "%d\n" % count
    assert process.wait(timeout=harness.HANG) == 0


def test_signal_as_timeout_sends_it(default_python):
    """timeout(1) sends to the program it has started, and then to its whole group: one signal, to the eye of the program."""
    process = start_counter(default_python, ["--no-history"], signal.SIGTERM, 1, stdin=subprocess.DEVNULL)
    os.kill(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "1\n"
    assert process.wait(timeout=harness.HANG) == 0


def test_signal_after_ctrl_c(default_python):
    main, child = pty.openpty()
    process = start_counter(default_python, ["--no-history"], signal.SIGINT, 2, stdin=child, stderr=child, before=take_terminal)
    os.close(child)
    os.write(main, b"\x03")
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "2\n"
    assert process.wait(timeout=harness.HANG) == 0
    os.close(main)


# Job control as a shell has it: runs the job in a group of its own, tells when it stops, and at a line goes on with it.
SHELL = r"""
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(job, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print('stopped by', os.WSTOPSIG(status) if os.WIFSTOPPED(status) else None, flush=True)
sys.stdin.readline()
os.tcsetpgrp(0, job)
os.killpg(job, signal.SIGCONT)
_, status = os.waitpid(job, 0)
sys.exit(os.WEXITSTATUS(status))
"""


@pytest.mark.parametrize("options", [["--no-history"], ["--no-capture"]], ids=" ".join)
def test_ctrl_z_and_fg(default_python, tmp_path, options):
    """Both stop, the program and us, and both go on; the program is told once."""
    main, child = pty.openpty()
    text = EACH_SIGNAL.replace("{n}", str(int(signal.SIGCONT))).replace("{times}", "1")
    shell = subprocess.Popen([sys.executable, "-c", SHELL, PYROMETER, "run", "--quiet", *options, "-o", str(tmp_path / "x.pyro"), "--",
                              default_python.path, "-c", text], stdin=child, stdout=subprocess.PIPE, stderr=child, encoding="utf-8",
                             start_new_session=True, preexec_fn=take_terminal)
    os.close(child)
    program = int(shell.stdout.readline().split()[1])
    os.write(main, b"\x1a")
    assert shell.stdout.readline() == "stopped by %d\n" % signal.SIGTSTP
    harness.wait_until(lambda: harness.process_state(program) == "T", "the stop of the program")
    os.write(main, b"fg\n")
    assert shell.stdout.readline() == "1\n"
    assert shell.wait(timeout=harness.HANG) == 0
    os.close(main)
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout


def test_terminated_target(default_python, tmp_path):
    """A target that dies of the forwarded signal: 128+15, and a whole file."""
    process = subprocess.Popen(
        [PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c",
         "print('ready', flush=True)\nwhile True: pass"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(timeout=harness.HANG) == 128 + signal.SIGTERM
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout


# --- options ---


def test_for_ends_the_recording_not_the_target(default_python, tmp_path):
    """The target works in early_part, then, after the recording has ended, in late_part."""
    text = spin_text("early_part", 0.7) + spin_text("late_part", 1.2) + "print('finished')\n"
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--for", "0.4")
    assert recording.stdout == "finished\n"
    assert recording.row("early_part")
    assert recording.row("late_part") is None
    assert "whole" in recording.verify().stdout


def test_quiet(default_python, tmp_path):
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", "pass", check=0)
    assert done.stderr == "" and done.stdout == ""


def test_summary(default_python, tmp_path):
    done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", default_python.path, workload("shares.py"), "0.7", check=0)
    text = done.stderr
    for word in ("hot_70", "hot_20", "hot_10", str(tmp_path / "x.pyro"), "pyrometer report"):
        assert word in text, text
    for word in ("elapsed", "cpu", "memory", "process", "thread"):
        assert word in text.lower(), text
    assert "\x1b" not in text  # no colour where no terminal is
    functions, lines = hottest(text, "hottest functions"), hottest(text, "hottest lines")
    assert [name for _, name, _ in functions if name.startswith("hot_")] == ["hot_70", "hot_20", "hot_10"], text
    assert functions[0][0] > 50 and lines[0][1] == "hot_70", text
    for rows in (functions, lines):
        assert sum(share for share, _, _ in rows) < 100.5, text
        assert all(re.match(r".*shares\.py:\d+$", place) for _, name, place in rows if name.startswith("hot_")), text


def hottest(summary, title):
    """[(share, function, "file:line")] of one of the lists in the summary; each row has all three."""
    rows = []
    for line in summary.partition(title)[2].splitlines()[1:]:
        if not line.startswith("  "):
            break
        share, name, place = re.fullmatch(r" +(\d+\.\d) % (?:± \d+\.\d *| +)(\S+)(?:  (.*))?", line).groups()
        rows.append((float(share), name, place))
    return rows


def test_summary_has_five_rows(default_python, tmp_path):
    """Of seven functions, which take as long each; the heaviest first."""
    text = "".join(spin_text("part_%d" % i, 0.12) for i in range(7))
    summary = pyrometer("run", "--no-history", "-o", tmp_path / "x.pyro", "--", default_python.path, "-c", text, check=0).stderr
    for title in ("hottest functions", "hottest lines"):
        rows = hottest(summary, title)
        assert len(rows) == 5, summary
        shares = [share for share, _, _ in rows]
        assert shares == sorted(shares, reverse=True) and min(shares) > 0, summary
        assert sum(name.startswith("part_") for _, name, _ in rows) >= 3, summary


NEXT = {
    "--sample": ["report", "lines", "flame"],
    "--calls": ["report", "flame", "export pstats"],
    "--lines": ["report", "lines", "flame", "export pstats"],
    "--trace": ["report", "timeline", "flame", "export perfetto"],
    "--memory": ["memory", "memory leaks", "flame"],
}


@pytest.mark.parametrize("instrument", NEXT)
@pytest.mark.once
def test_what_to_type_next(default_python, tmp_path, instrument):
    """The views that have most to say, and each finds the recording wherever it was put."""
    def offered(*options):
        done = pyrometer("run", instrument, "--no-history", *options, "--", default_python.path, workload("shares.py"), "0.3", check=0)
        line, = [x for x in done.stderr.splitlines() if x.startswith("next: ")]
        return line[len("next: "):].split(", ")
    run = str(tmp_path / "it's a run.pyro")
    named = [shlex.split(step) for step in offered("-o", run)]
    assert [" ".join(words[1:words.index(run)]) for words in named] == NEXT[instrument]
    for words in named:
        assert words[0] == "pyrometer"
        pyrometer(*words[1:], check=0)
    # the last one needs no name
    assert [step.split(" -o ")[0] for step in offered()] == ["pyrometer " + step for step in NEXT[instrument]]


def test_output_is_refused_and_forced(default_python, tmp_path):
    path = tmp_path / "x.pyro"
    path.write_bytes(b"precious")
    marker = tmp_path / "started"
    command = [default_python.path, "-c", "open(%r, 'w').close()" % str(marker)]
    done = pyrometer("run", "-o", path, "--", *command)
    line = harness.one_line_error(done, 1)
    assert "--force" in line
    assert path.read_bytes() == b"precious"
    assert not marker.exists()  # told before anything was started
    pyrometer("run", "--quiet", "--force", "-o", path, "--", *command, check=0)
    assert marker.exists()
    assert "whole" in Recording(path).verify().stdout


@pytest.mark.parametrize("rate", ["100", "1000", "5000"])
def test_rate(default_python, tmp_path, rate):
    recording = record([default_python.path, "-c", spin_text("spin", 1)], tmp_path / "x.pyro", "--sample=" + rate)
    stats = recording.stats()
    assert stats["rate_millihertz"] == int(rate) * 1000
    assert stats["samples"] > 0
    assert stats["ticks_taken"] + stats["ticks_missed"] <= stats["ticks_requested"] + 1
    # the number of looks fits the time that was looked at, within what a busy machine does
    assert 0.5 < stats["ticks_requested"] / (stats["sampled_ns"] / 1e9 * int(rate)) < 1.5, stats


def test_runs_folder_and_their_names(default_python, virgin):
    """Without -o: .pyrometer/runs, found upward; @, @~N, ids and their beginnings name the runs."""
    for i in range(3):
        pyrometer("run", "--quiet", "--", default_python.path, "-c", spin_text("run_%d" % i, 0.3), check=0)
    home = virgin / ".pyrometer"
    assert (home / ".gitignore").read_text() == "*\n"
    runs = sorted(glob.glob(str(home / "runs" / "*.pyro")))
    assert len(runs) == 3
    assert Recording("@").row("run_2")
    assert Recording("@~1").row("run_1")
    assert Recording("@~2").row("run_0")
    for path in runs:
        stem = os.path.basename(path)[:-len(".pyro")]
        assert Recording(stem).info()["run"]["id"] == Recording(path).info()["run"]["id"]
    harness.one_line_error(pyrometer("report", "@~3"), 1)
    harness.one_line_error(pyrometer("report", "@x"), 2)
    harness.one_line_error(pyrometer("report", os.path.basename(runs[0])[:4]), 1)  # fits all three
    harness.one_line_error(pyrometer("report", "no-such-run"), 1)
    below = virgin / "deep" / "below"
    below.mkdir(parents=True)
    done = pyrometer("run", "--quiet", "--", default_python.path, "-c", "pass", cwd=below, check=0)
    assert not done.stderr and len(glob.glob(str(home / "runs" / "*.pyro"))) == 4
    assert not (below / ".pyrometer").exists()
    pyrometer("report", cwd=below, check=0)


def test_no_recordings_yet(virgin):
    line = harness.one_line_error(pyrometer("report"), 1)
    assert "pyrometer run" in line


def test_too_short_to_sample(default_python, tmp_path):
    done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", "true", check=0)
    assert done.stderr
    done = pyrometer("report", tmp_path / "x.pyro", check=0)
    assert re.search(r"short|no sample", done.stdout + done.stderr), (done.stdout, done.stderr)
    report = Recording(tmp_path / "x.pyro").report()
    assert report["rows"] == [] and report["total"] == 0
    record([default_python.path, workload("short.py")], tmp_path / "y.pyro")
    pyrometer("report", tmp_path / "y.pyro", check=0)
    # seen, but for a handful of looks: the summary and the report both say what else to try
    done = pyrometer("run", "--sample=20", "-o", tmp_path / "z.pyro", "--", default_python.path, "-c", spin_text("spin", 0.3), check=0)
    for text in (done.stderr, pyrometer("report", tmp_path / "z.pyro", check=0).stdout):
        assert "too short to sample" in text and "--sample=" in text and "--calls" in text, text


def test_no_python_to_sample(tmp_path):
    """A higher rate would not help, nor would counting calls."""
    done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", "sleep", "0.3", check=0)
    for text in (done.stderr, pyrometer("report", tmp_path / "x.pyro", check=0).stdout):
        assert "no Python process was seen" in text and "--no-profile" in text, text
        assert "too short" not in text and "--sample" not in text and "--calls" not in text, text
    assert "next:" not in done.stderr


@pytest.mark.parametrize("args, status, remedy", [
    (["app.py"], 127, "pyrometer run python3 app.py"),
    (["./app.py"], 126, "pyrometer run python3 ./app.py"),
    (["my app.py", "x"], 127, "pyrometer run python3 'my app.py' …"),
    (["--no-profile", "app.py"], 127, "pyrometer run python3 app.py"),
    (["-m", "timeit"], 2, "pyrometer run python3 -m …"),
    (["-c", "pass"], 2, "pyrometer run python3 -c …"),
    (["-mtimeit"], 2, "pyrometer run python3 -m …"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_script_is_no_command(tmp_path, args, status, remedy):
    for name in ("app.py", "my app.py"):
        (tmp_path / name).write_text("print(1)\n")
    line = harness.one_line_error(pyrometer("run", *args, cwd=tmp_path), status)
    assert line.endswith("try: " + remedy), line


def test_a_script_that_is_not_there(tmp_path):
    assert "try:" not in harness.one_line_error(pyrometer("run", "app.py", cwd=tmp_path), 127)


@pytest.mark.parametrize("args, named", [([""], "run ''"), (["-o", "", "true"], "-o ''")])
def test_empty_argument(tmp_path, args, named):
    line = harness.one_line_error(pyrometer("run", *args, cwd=tmp_path), 2)
    assert named in line and "empty" in line, line


def test_command_not_found(tmp_path):
    done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", "no-such-program-here")
    line = harness.one_line_error(done, 127)
    assert "no-such-program-here" in line and os.listdir(tmp_path) == []


def test_command_not_executable(tmp_path):
    (tmp_path / "plain").write_text("just text")
    for name in (tmp_path / "plain", tmp_path, tmp_path / "plain" / "x"):
        done = pyrometer("run", "-o", tmp_path / "x.pyro", "--", name)
        harness.one_line_error(done, 126)
    assert os.listdir(tmp_path) == ["plain"]


@pytest.fixture
def seems_to_start(tmp_path):
    """What only an exec finds out about."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    return script


def test_a_command_that_does_not_start_leaves_no_file(seems_to_start, tmp_path):
    harness.one_line_error(pyrometer("run", "-o", tmp_path / "x.pyro", "--", seems_to_start), 127)
    assert os.listdir(tmp_path) == ["script"]


def test_a_command_that_does_not_start_removes_nothing(seems_to_start, tmp_path):
    """A typo in the command must not cost the recording that it was to replace, nor a device that was there."""
    old, device = tmp_path / "old.pyro", tmp_path / "device"
    old.write_bytes(b"precious")
    device.symlink_to("/dev/null")
    for command, status in (("no-such-program-here", 127), ("./no-such-program-here", 127), (tmp_path, 126), (seems_to_start, 127)):
        if command != tmp_path and command != seems_to_start:
            harness.one_line_error(pyrometer("run", "--force", "-o", old, "--", command), status)
            assert old.read_bytes() == b"precious"
        harness.one_line_error(pyrometer("run", "--force", "-o", device, "--", command), status)
        assert device.is_symlink() and os.path.exists("/dev/null")


def test_the_path_is_searched_as_execvp_does(tmp_path):
    """Empty parts are the working folder; what may not be executed is passed over, but told if nothing else is found."""
    denied, good = tmp_path / "denied", tmp_path / "good"
    for folder, mode in ((denied, 0o644), (good, 0o755)):
        folder.mkdir()
        (folder / "tool-of-ours").write_text("#!/bin/sh\nexit 5\n")
        (folder / "tool-of-ours").chmod(mode)

    def run(path, status):
        env = {k: v for k, v in os.environ.items() if k != "PATH"}
        env.update({"PATH": path} if path is not None else {})
        done = subprocess.run([PYROMETER, "run", "--quiet", "--force", "-o", str(tmp_path / "x.pyro"), "--", "tool-of-ours"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=str(good), timeout=harness.HANG)
        assert done.returncode == status, done

    run("%s:%s" % (denied, good), 5)
    run("%s:" % denied, 5)
    run("", 5)
    run(str(denied), 126)
    run(str(tmp_path), 127)
    run(None, 127)


def test_info(default_python, tmp_path):
    recording = record([default_python.path, "-c", spin_text("spin", 0.3), "an argument"], tmp_path / "x.pyro")
    info = recording.info()
    text = json.dumps(info)
    assert "an argument" in text
    assert ".".join(map(str, default_python.version)) in text
    assert os.uname().nodename in text
    stats = info["stats"]
    for name in ("ticks_requested", "ticks_taken", "samples", "samples_retried", "samples_marked", "ticks_missed",
                 "sampler_cpu_ns", "peak_rss_bytes", "elapsed_ns"):
        assert name in stats, name
    assert stats["sampler_cpu_ns"] > 0 and stats["ticks_taken"] > 0
    sampling = info["sampling"]
    assert sampling["achieved_hz"] == pytest.approx(stats["ticks_taken"] / (stats["sampled_ns"] / 1e9))
    assert sampling["requested_hz"] == 1000 and 0 < sampling["achieved_hz"] < 1500, sampling
    assert sampling["sampler_cpu_seconds"] == pytest.approx(stats["sampler_cpu_ns"] / 1e9)
    assert stats["exit_status"] == 0
    assert stats["elapsed_ns"] > 0 and stats["peak_rss_bytes"] > 1 << 20
    plain = pyrometer("info", recording.path, check=0).stdout
    assert "an argument" in plain and "samples" in plain
    facts = dict(re.findall(r"^(\w+) +(.*)$", plain.partition("\n\n")[0], re.M))
    assert facts["instruments"] == info["meta"]["instruments"] == "sample"
    assert (facts["machine"], facts["host"]) == (os.uname().machine, os.uname().nodename)
    assert facts["python"] == ".".join(map(str, default_python.version))
    assert "%.0f looks a second" % sampling["achieved_hz"] in facts["samples"]
    lost = re.findall(r"\d+ look", facts["lost"])  # a busy machine misses some; test_badfiles.py has more to lose
    assert lost == (["%d look" % stats["ticks_missed"]] if stats["ticks_missed"] else []), facts


def test_exit_status_is_recorded(default_python, tmp_path):
    recording = record([default_python.path, "-c", "raise SystemExit(9)"], tmp_path / "x.pyro", check=9)
    assert recording.stats()["exit_status"] == 9


@pytest.mark.parametrize("limit", [20, 32, 64, 65])
def test_few_descriptors(default_python, tmp_path, limit):
    """What a program prints arrives, also where there is no room for who would pass it on."""
    text = "for i in range(5): print('line', i)"
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    done = subprocess.run([PYROMETER, "run", "--quiet", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c", text],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8", preexec_fn=limited,
                          cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "".join("line %d\n" % i for i in range(5))), done.stderr
