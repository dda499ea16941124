"""Shell completion, in the shells themselves: the files are generated from the pages in docs/man and asked what they
would offer. bash's function is called as readline calls it, fish has a command for it, zsh gets a terminal."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

import harness
from test_cli import COMMANDS, options_of_man

ROOT = pathlib.Path(harness.ROOT)
PAGES = sorted(str(p) for p in (ROOT / "docs/man").glob("*.md"))
WITH_RUN = [c for c in COMMANDS if re.search(r"^    pyrometer .*\bRUN\b", (ROOT / "docs/man" / ("pyrometer-%s.md" % c)).read_text(encoding="utf-8"), re.M)]
RUNS = ["20250101-000000-abc111", "20250102-000000-abc222"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two recordings, a working directory below them with a file of its own."""
    runs = tmp_path / ".pyrometer/runs"
    runs.mkdir(parents=True)
    for run in RUNS:
        (runs / (run + ".pyro")).touch()
    here = tmp_path / "here"
    here.mkdir()
    (here / "app.pyro").touch()
    monkeypatch.chdir(here)
    return here


def shell_words(line):
    """As bash does it with its default COMP_WORDBREAKS."""
    return re.findall(r"[=@:]+|[^\s=@:]+", line) + ([""] if line[-1:].isspace() else [])


class Bash:
    PROGRAM = "bash"

    def offers(self, script, line):
        words = shell_words(line)
        text = '. "$1"; COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$(($# - 3)); COMP_WORDS=("${@:3}"); _pyrometer; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", text, "bash", script, line, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=60)
        assert done.stderr == "", done.stderr
        return [word for word in done.stdout.splitlines() if word]


class Fish:
    PROGRAM = "fish"

    def offers(self, script, line):
        done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=60, env=dict(os.environ, HOME=os.getcwd()))
        assert done.stderr == "", done.stderr
        return [word.partition("\t")[0] for word in done.stdout.splitlines()]


class Zsh:
    """What zsh would offer is only to be had on a terminal: the list that it prints is read."""
    PROGRAM = "zsh"
    # the quotes keep the marks out of the terminal's echo
    START = ("fpath=(%s $fpath); LISTMAX=10000; autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' verbose no;"
             " mark() { print LIS''TED }; zle -N mark; bindkey '^T' list-choices; bindkey '^Y' mark; PROMPT='REA''DY'\n")

    def offers(self, script, line):
        with Terminal(["zsh", "-f", "-i"]) as terminal:
            terminal.send(self.START % os.path.dirname(script))
            terminal.read_until("READY")
            terminal.send(line + "\x14\x19")
            shown = terminal.read_until("LISTED")
        # the line as it is typed, the list, and the line once more
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r|\a", " ", shown).partition("LISTED")[0]
        listed = shown.partition(line.strip())[2]
        return listed.rpartition("pyrometer")[0].split()


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", COLUMNS="200", LINES="200")
            os.execvp(command[0], command)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def send(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, pattern):
        """What it printed until the pattern came."""
        text, end = "", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 1.0)[0]:
                text += os.read(self.fd, 65536).decode("utf-8", "replace")
            if pattern in text:
                return text
        raise AssertionError("the shell did not answer: %r" % text[-500:])


SHELLS = {"bash": Bash(), "zsh": Zsh(), "fish": Fish()}
FILES = {"bash": "pyrometer.bash", "zsh": "_pyrometer", "fish": "pyrometer.fish"}


@pytest.fixture(scope="module", params=SHELLS)
def offers(request, tmp_path_factory):
    """offers(line): what the shell would offer at its end."""
    shell = SHELLS[request.param]
    if not shutil.which(shell.PROGRAM):
        pytest.skip("no %s here" % shell.PROGRAM)
    script = tmp_path_factory.mktemp(request.param) / FILES[request.param]
    subprocess.run([sys.executable, ROOT / "tools/gen_completion.py", request.param, script, *PAGES], check=True)

    return lambda line: shell.offers(str(script), line)


def test_commands(offers):
    assert set(COMMANDS) | {"help"} <= set(offers("pyrometer "))
    assert offers("pyrometer repor") in (["report"], [])  # zsh lists nothing where there is no choice
    assert {"report"} <= set(offers("pyrometer r")) and "info" not in offers("pyrometer r")
    assert set(COMMANDS) <= set(offers("pyrometer help "))


def test_options(offers):
    """Every option of every command, and no other."""
    assert {"--help", "--version"} <= set(offers("pyrometer --"))
    for command in COMMANDS:
        documented = {"--" + name for name in options_of_man(command)}
        offered = {word.rstrip("=") for word in offers("pyrometer %s --" % command)}
        if len(documented) > 1:
            assert {word for word in offered if word.startswith("--")} == documented, command


def test_values(offers):
    assert set(offers("pyrometer report --by ")) == {"function", "line", "file", "module", "thread", "process"}
    metrics = set(offers("pyrometer report --metric="))
    assert {m.split("=")[-1] for m in metrics} >= {"wall", "cpu", "gil"}
    assert "app.pyro" in offers("pyrometer export collapsed -o ") + offers("pyrometer export collapsed -o")
    assert not set(offers("pyrometer report --limit ")) & {"app.pyro", *RUNS}


@pytest.mark.parametrize("command", WITH_RUN)
def test_recordings(offers, command):
    line = "pyrometer %s " % command
    if command == "export":
        assert "collapsed" in offers(line)
        line += "collapsed "
    assert {*RUNS, "app.pyro"} <= set(offers(line))
    last = {word.lstrip("@") for word in offers(line + "@")}
    assert "~1" in last and not last & {"app.pyro", *RUNS}


def test_program_of_run(offers):
    assert "sha256sum" in offers("pyrometer run --quiet -o x.pyro sha2")
    # from the program on, the line is its own
    assert not {"--quiet", "--sample"} & set(offers("pyrometer run -o x.pyro ls --"))
    assert {"--quiet", "--sample"} <= {word.rstrip("=") for word in offers("pyrometer run -o x.pyro --")}


def test_process(offers):
    me = str(os.getpid())
    assert any(me in word for word in offers("pyrometer dump " + me[:-1]))


def test_no_recordings_yet(offers, folder):
    (folder / ".pyrometer").mkdir()
    assert not set(offers("pyrometer report ")) & set(RUNS)


def test_make_install(tmp_path):
    """Where each shell and man look, and the binary."""
    if "PYROMETER" in os.environ:
        pytest.skip("another binary is under test")
    subprocess.run(["meson", "install", "-C", ROOT / "build", "--no-rebuild", "--destdir", tmp_path / "dest"], check=True, stdout=subprocess.DEVNULL)
    found = {p.relative_to(tmp_path / "dest").as_posix() for p in (tmp_path / "dest").rglob("*") if p.is_file()}
    for place in ("bin/pyrometer", "share/man/man1/pyrometer.1", "share/bash-completion/completions/pyrometer.bash",
                  "share/zsh/site-functions/_pyrometer", "share/fish/vendor_completions.d/pyrometer.fish"):
        assert any(path.endswith("/" + place) for path in found), (place, found)
    assert not any(path.endswith(".py") for path in found)
