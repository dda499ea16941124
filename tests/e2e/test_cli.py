"""The command line itself: help, versions, wrong words, closed outputs, names of runs, verify.

What the help says and what the sources take is compared word by word: the tables of commands and
options are read out of src/cmd, the documents out of docs/man.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness
from harness import pyrometer

ROOT = pathlib.Path(harness.ROOT)
ROW = re.compile(r'X\((\w+), cmd_\w+, "(\w+)",\s*\\?\s*"([^"]+)"\)')
COMMANDS = {name: summary for name, _, summary in
            ROW.findall((ROOT / "src/cmd/cmd.h").read_text(encoding="utf-8"))}
KINDS = "FLAG|TEXT|OPT_TEXT|COUNT|REAL|EACH"
OPTION = re.compile(r'\{\s*(?:\.name\s*=\s*)?"([a-z][a-z-]*)",\s*(?:\.letter\s*=\s*)?(?:(0)|\'(\w)\'),'
                    r'\s*(?:\.kind\s*=\s*)?CMD_(%s)\b' % KINDS)
DOCUMENTED = re.compile(r"^- (?:\*\*-(\w)\*\*, )?\*\*--([a-z][a-z-]*)\*\*(\[=[A-Z]+\]| [A-Z][A-Z:]*)?$", re.M)
SHAPE = {"FLAG": "none", "OPT_TEXT": "optional", "TEXT": "value", "COUNT": "value", "REAL": "value", "EACH": "value"}


def man(page):
    return (ROOT / "docs/man" / (page + ".md")).read_text(encoding="utf-8")


def options_of_source(command):
    """{long name: (letter, shape)} of the option table in the command's file, shared rows included."""
    source = (ROOT / "src/cmd" / (command + ".c")).read_text(encoding="utf-8")
    shared = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/cmd").glob("*.h")))
    for name in sorted(set(re.findall(r"\bCMD_[A-Z_]+(?=\(&)", source))):
        source += re.search(r"#define %s\(.*?(?<!\\)\n" % name, shared, re.S).group()
    return {name: (letter, SHAPE[kind]) for name, _, letter, kind in OPTION.findall(source)}


def options_of_man(command):
    def shape(value):
        return "optional" if value.startswith("[=") else "value" if value else "none"
    return {name: (letter, shape(value)) for letter, name, value in DOCUMENTED.findall(man("pyrometer-" + command))}


def fails(*args, status=2):
    """The one line of a refusal, and nothing on stdout."""
    done = pyrometer(*args, check=status)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and re.match(r"pyrometer( \w+)?: ", lines[0]), done.stderr
    return lines[0]


def test_the_table_was_read():
    assert len(COMMANDS) >= 8 and "run" in COMMANDS


# --- the binary ---


@pytest.mark.skipif("PYROMETER_SANITIZED" in os.environ, reason="a sanitizer's library is in it")
@pytest.mark.parametrize("name", ["pyrometer", "libpyrometer-agent.so"])
def test_needs_nothing_but_glibc(name):
    path = os.path.join(os.path.dirname(harness.PYROMETER), name)
    done = subprocess.run(["objdump", "-p", path], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    needed = set(re.findall(r"^\s*NEEDED\s+(\S+)", done.stdout, re.M))
    assert "libc.so.6" in needed
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"}, needed


# --- help ---


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command):
    done = pyrometer(command, "--help", check=0)
    assert done.stderr == ""
    assert done.stdout.startswith("pyrometer %s: %s\n" % (command, COMMANDS[command]))
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for heading in ("Usage:", "Options:", "Examples:"):
        assert "\n%s\n" % heading in done.stdout
    for other in ([command, "-h"], ["help", command]):
        assert pyrometer(*other, check=0).stdout == done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_options_and_documents_agree(command):
    documented = options_of_man(command)
    assert documented.pop("help", None) == ("h", "none")
    assert documented == options_of_source(command)
    text = pyrometer("help", command, check=0).stdout
    for name in documented:
        assert re.search(r"^  (-\w, )?--%s\b" % name, text, re.M), name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_synopsis_exists(command):
    synopsis = man("pyrometer-" + command).split("## SYNOPSIS")[1].split("##")[0]
    for name in re.findall(r"--([a-z][a-z-]+)", synopsis):
        assert name in options_of_man(command), name


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_has_its_sections(command):
    sections = re.findall(r"^## (.*)$", man("pyrometer-" + command), re.M)
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS"):
        assert section in sections


def test_overview():
    done = pyrometer("--help", check=0)
    assert done.stderr == ""
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for name, summary in COMMANDS.items():
        assert re.search(r"^  %s +%s$" % (name, re.escape(summary)), done.stdout, re.M)
    for other in (["-h"], ["help"], ["help", "help"]):
        assert pyrometer(*other, check=0).stdout == done.stdout
    # without arguments it is the answer to wrong usage
    bare = pyrometer(check=2)
    assert bare.stdout == "" and bare.stderr == done.stdout


def test_main_page_lists_the_commands():
    section = man("pyrometer").split("## COMMANDS")[1].split("\n## ")[0]
    assert re.findall(r"^- \*\*(\w+)\*\*", section, re.M) == list(COMMANDS) + ["help"]


def test_version():
    done = pyrometer("--version", check=0)
    assert re.fullmatch(r"pyrometer \d+\.\d+\.\d+\S*\n", done.stdout) and done.stderr == ""


@pytest.mark.once
def test_man_pages_are_good_roff(tmp_path):
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff")
    for page in ["pyrometer"] + ["pyrometer-" + command for command in COMMANDS]:
        out = tmp_path / (page + ".1")
        subprocess.run(["python3", ROOT / "tools/gen_help.py", "--man", out, ROOT / "docs/man" / (page + ".md")], check=True)
        done = subprocess.run([groff, "-man", "-ww", "-z", out], stderr=subprocess.PIPE, encoding="utf-8")
        assert done.returncode == 0 and done.stderr == "", done.stderr


# --- wrong words ---


def test_unknown_command():
    assert "did you mean 'report'?" in fails("reprot")
    assert "did you mean 'help'?" in fails("hlep")
    assert "--help" in fails("quux")
    assert "pyrometer run" in fails("app.py")
    assert "did you mean 'verify'?" in fails("help", "verfy")
    assert "one command" in fails("help", "run", "report")


def test_unknown_option():
    assert "did you mean --version?" in fails("--verison")
    assert "--sample" in fails("--sample=5", "run")
    assert fails("verify", "--reapir") == "pyrometer verify: unknown option --reapir (did you mean --repair?)"
    # no abbreviations
    assert "did you mean --repair?" in fails("verify", "--rep")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_strange_option(command):
    assert "--no-such-thing" in fails(command, "--no-such-thing")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_with_a_value_asks_for_it(command):
    for name, (_, shape) in options_of_man(command).items():
        if shape == "value":
            assert "--%s needs " % name in fails(command, "--" + name)
        elif shape == "none" and name != "help":
            assert "--%s takes no value" % name in fails(command, "--%s=x" % name)


def test_the_line_is_printable():
    line = fails("verify", "a\nb\033[31m", status=1)
    assert "\033" not in line and r"a\nb\x1b[31m" in line


# --- outputs that do not take it ---


def test_full_output():
    with open("/dev/full", "w") as full:
        done = pyrometer("--help", stdout=full)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "cannot write the output" in done.stderr


def test_closed_output():
    done = subprocess.run(["/bin/sh", "-c", '"$0" --help >&-', harness.PYROMETER], stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"cannot write the output" in done.stderr


def test_reader_that_went_away():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as gone:
        done = subprocess.run([harness.PYROMETER, "--help"], stdout=gone, stderr=subprocess.PIPE)
    assert done.stderr == b"" and done.returncode != 0


# --- names of runs, verify ---


@pytest.fixture
def recording(default_python, tmp_path):
    return harness.record([default_python.path, "-c", harness.spin_text("work", 0.3)], tmp_path / "app.pyro")


def test_no_recordings_yet():
    assert "pyrometer run python app.py" in fails("verify", status=1)
    assert "names no run" in fails("verify", "@x")


def test_runs_by_name(recording):
    runs = pathlib.Path(".pyrometer/runs")
    runs.mkdir(parents=True)
    for run in ("20250101-000000-abc111", "20250102-000000-abc222"):
        shutil.copy(recording.path, runs / (run + ".pyro"))
    for name, run in (("@", "abc222"), ("@~1", "abc111"), ("abc1", "abc111"), ("20250102", "abc222")):
        assert run in json.loads(pyrometer("verify", "--json", name, check=0).stdout)["run"]["path"]
    assert "fits 2 recordings" in fails("verify", "abc", status=1)
    assert "too far back" in fails("verify", "@~2", status=1)


def test_verify_whole(recording):
    assert ": whole\n" in pyrometer("verify", recording.path, check=0).stdout
    verdict = json.loads(pyrometer("verify", "--json", recording.path, check=0).stdout)
    assert verdict["whole"] and verdict["finished"] and verdict["samples"] > 0
    assert verdict["run"] == json.loads(pyrometer("info", "--json", recording.path, check=0).stdout)["run"]
    assert verdict["file_bytes"] == os.path.getsize(recording.path)
    # nothing to do, unless a copy is asked for
    assert "nothing to repair" in pyrometer("verify", "--repair", recording.path, check=0).stdout
    assert sorted(os.listdir(".")) == [".pyrometer", "app.pyro"]
    pyrometer("verify", "--repair", "-o", "copy.pyro", recording.path, check=0)
    pyrometer("verify", "copy.pyro", check=0)


def test_verify_torn(recording):
    data = pathlib.Path(recording.path).read_bytes()
    torn = pathlib.Path("torn.pyro")
    torn.write_bytes(data[:-7])
    done = pyrometer("verify", torn, check=1)
    assert ": damaged\n" in done.stdout and "not finished" in done.stdout and "--repair" in done.stdout
    verdict = json.loads(pyrometer("verify", "--json", torn, check=1).stdout)
    assert not verdict["whole"] and verdict["torn_bytes"] > 0 and verdict["repaired"] is None

    assert "torn-repaired.pyro" in pyrometer("verify", "--repair", torn, check=0).stdout
    pyrometer("verify", "torn-repaired.pyro", check=0)
    assert torn.read_bytes() == data[:-7]
    assert "--force" in fails("verify", "--repair", torn, status=1)
    pyrometer("verify", "--repair", "--force", torn, check=0)
    assert "the recording itself" in fails("verify", "--repair", "--force", "-o", torn, torn, status=1)
    assert torn.read_bytes() == data[:-7]


def test_verify_usage(recording):
    assert "goes with --repair" in fails("verify", "-o", "x.pyro", recording.path)
    assert "goes with --repair" in fails("verify", "--force", recording.path)
    assert "one recording" in fails("verify", recording.path, recording.path)


def test_verify_what_is_no_recording():
    pathlib.Path("empty").touch()
    pathlib.Path("other").write_text("hello\n" * 100)
    pathlib.Path("folder").mkdir()
    assert "is empty" in fails("verify", "empty", status=1)
    assert "not a Pyrometer recording" in fails("verify", "other", status=1)
    assert "is a directory" in fails("verify", "folder", status=1)
    assert "no such file" in fails("verify", "./none.pyro", status=1)


def test_no_folder_for_recordings(tmp_path):
    (tmp_path / ".pyrometer").write_text("", encoding="utf-8")
    done = pyrometer("run", "true", cwd=tmp_path, check=1)
    assert done.stderr.strip().endswith("something that is no folder has that name; name a file with -o")


def test_a_folder_is_no_output(tmp_path):
    """With --force and without: the advice to use it would lead nowhere."""
    for more in ([], ["--force"]):
        assert "is a directory: -o needs the name of a file" in harness.one_line_error(pyrometer("run", "-o", tmp_path, *more, "true"), 1)


def test_a_script_whose_interpreter_is_not_there(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/nowhere/python3\n", encoding="utf-8")
    script.chmod(0o755)
    assert "interpreter" in harness.one_line_error(pyrometer("run", script, cwd=tmp_path), 127)
    assert "No such file" in harness.one_line_error(pyrometer("run", "./none", cwd=tmp_path), 127)
