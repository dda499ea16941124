"""`run`, `load` and what they return. All numbers come from the binary's --json (docs/json.md).

A program that only marks its timeline imports this too, so json and subprocess wait until they are used, and there are
no dataclasses: to import those takes longer than all of this package.
"""

import os

from ._binary import PyrometerError, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Union

    Text = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
    # A value of a command line option: True is a flag, None and False leave it out, a list repeats it.
    Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[str]]
    Stream = Union[None, int, IO[Any]]


def _options(options: "Mapping[str, Option]") -> "List[str]":
    """min_percent=5 is --min-percent=5; for_=3 is --for=3 (`for` being Python's)."""
    words = []
    for key, value in options.items():
        name = "--" + key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif isinstance(value, (str, int, float, os.PathLike)):
            words.append("%s=%s" % (name, os.fspath(value) if isinstance(value, os.PathLike) else value))
        else:
            words += ["%s=%s" % (name, one) for one in value]
    return words


def _refusal(stderr: str, status: int) -> "PyrometerError":
    """The last line is the reason; warnings may stand before it."""
    lines = stderr.strip().splitlines()
    text = lines[-1] if lines else "the program 'pyrometer' ended with status %d" % status
    return PyrometerError(text[len("pyrometer: "):] if text.startswith("pyrometer: ") else text, status)


def _ask_text(words: "Sequence[Text]", binary: "Optional[str]" = None) -> str:
    """Runs the binary, the one that is found now unless another is given; what it prints."""
    import subprocess

    binary = binary or find()
    try:
        done = subprocess.run([binary, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise PyrometerError("cannot run %s: %s" % (binary, error.strerror)) from error
    if done.returncode != 0:
        raise _refusal(done.stderr.decode("utf-8", "replace"), done.returncode)
    return done.stdout.decode("utf-8", "replace")


def _ask_anything(words: "Sequence[Text]", binary: "Optional[str]" = None) -> "Any":
    """Runs the binary and reads the JSON it prints."""
    import json

    text = _ask_text(words, binary)
    try:
        return json.loads(text)
    except ValueError as error:
        raise PyrometerError("%s printed something else than JSON: %s" % (binary or find(), error)) from error


def _ask(words: "Sequence[Text]", binary: "Optional[str]" = None) -> "Dict[str, Any]":
    """The same for the commands that print one object."""
    answer = _ask_anything(words, binary)
    if not isinstance(answer, dict):
        raise PyrometerError("%s printed something else than a JSON object" % (binary or find()))
    return answer


class _Record:
    """Named values that stay as they are. Equal are those of one kind whose values are, `raw` aside."""

    def __init__(this, /, **values: "Any") -> None:  # `self` is a column
        this.__dict__.update(values)

    def _values(self) -> "Dict[str, Any]":
        """All of them, those that were left out too."""
        return {key: getattr(self, key) for key in type(self).__annotations__ if key != "raw"}

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, _Record) and type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % one for one in self._values().items()))

    def __setattr__(self, name: str, value: "Any") -> "NoReturn":
        raise AttributeError("%r of a %s stays as it is" % (name, type(self).__name__))

    def __delattr__(self, name: str) -> "NoReturn":
        raise AttributeError("%r of a %s stays as it is" % (name, type(self).__name__))


class Row(_Record):
    """A row of a report: a function, a line, a file, … as `by` says.

    `self` and `total` are in the report's unit (seconds for times), percentages 0–100. None is "not known" or
    "does not apply". `raw` is the row as the binary printed it, with every column it has."""

    name: str
    file: "Optional[str]"
    line: "Optional[int]"
    self: float
    self_percent: float
    total: float
    total_percent: float
    error_percent: "Optional[float]" = None
    total_error_percent: "Optional[float]" = None
    samples: "Optional[int]" = None
    total_samples: "Optional[int]" = None
    special: bool = False
    pid: "Optional[int]" = None
    tid: "Optional[int]" = None
    calls: "Optional[int]" = None
    primitive_calls: "Optional[int]" = None
    resumes: "Optional[int]" = None
    alive: "Optional[float]" = None
    hits: "Optional[int]" = None
    callers: "List[Row]"
    callees: "List[Row]"
    raw: "Mapping[str, Any]"

    @classmethod
    def from_json(cls, raw: "Mapping[str, Any]") -> "Row":
        known: "Dict[str, Any]" = {key: raw[key] for key in cls.__annotations__ if key in raw}
        for key in ("callers", "callees"):
            known[key] = [cls.from_json(one) for one in raw.get(key, ())]
        known["raw"] = raw
        return cls(**known)


class Report(_Record):
    """A table with what it rests on; `raw` is all of it as the binary printed it."""

    by: str
    metric: str
    unit: str
    total: float
    samples: int
    rows: "List[Row]"
    too_short: bool
    raw: "Mapping[str, Any]"

    @classmethod
    def from_json(cls, raw: "Mapping[str, Any]") -> "Report":
        return cls(
            by=raw["by"],
            metric=raw["metric"],
            unit=raw["unit"],
            total=raw["total"],
            samples=raw["samples"],
            rows=[Row.from_json(row) for row in raw["rows"]],
            too_short=raw.get("too_short", False),
            raw=raw,
        )


class Recording:
    """A recording, asked through the binary. It is not kept in memory: each question reads the file."""

    def __init__(self, run: "Text" = "@") -> None:
        self._run: "Dict[str, Any]" = _ask(["info", "--json", "--", run])["run"]
        # The path is kept, not the name: "@" is another run tomorrow, and the working directory may change.
        # A file's own name is better than the JSON's, which cannot tell bytes that are not UTF-8.
        given = os.fsdecode(run)
        is_file = not given.startswith("@") and os.path.isfile(given)
        self.path: str = os.path.abspath(given if is_file else self._run["path"])

    def __repr__(self) -> str:
        return "<%s %s>" % (type(self).__name__, self.path)

    @property
    def id(self) -> str:
        """The recording's id: 32 hexadecimal digits."""
        return str(self._run["id"])

    @property
    def command(self) -> "Optional[str]":
        """The recorded command, its arguments joined by blanks."""
        command: "Optional[str]" = self._run["command"]
        return command

    @property
    def total(self) -> float:
        """Seconds of wall time over all threads: the sum of every row's `self`."""
        return self.report(limit=1).total

    def info(self) -> "Dict[str, Any]":
        """What the recording holds: `pyrometer info --json`, see docs/json.md."""
        return _ask(["info", "--json", "--", self.path])

    def report(
        self, by: str = "function", metric: str = "wall", match: "Optional[str]" = None, **options: "Option"
    ) -> "Report":
        """The table with its totals. Any option of `pyrometer report` is an argument: sort="total", limit=10,
        min_percent=1, thread="MainThread", callers=True, …"""
        asked: "Dict[str, Option]" = {"by": by, "metric": metric, "match": match}
        asked.update(options)
        return Report.from_json(_ask(["report", "--json", *_options(asked), "--", self.path]))

    def rows(
        self, by: str = "function", metric: str = "wall", match: "Optional[str]" = None, **options: "Option"
    ) -> "List[Row]":
        """The rows of `report()`: all of them, unless `limit` is given."""
        return self.report(by, metric, match, **options).rows


class Run(Recording):
    """A recording that `run()` made. `returncode` is the command's exit status (128+N if signal N ended it);
    `stdout` and `stderr` are what it printed, if that was captured."""

    def __init__(self, path: "Text", returncode: int, stdout: "Optional[bytes]", stderr: "Optional[bytes]") -> None:
        super().__init__(path)
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr


def load(run: "Text" = "@") -> "Recording":
    """A recording by its file, its id or the beginning of it, "@" for the last one, "@~N" for the Nth before."""
    return Recording(run)


def run(
    args: "Sequence[Text]",
    *,
    output: "Union[None, str, os.PathLike[str]]" = None,
    quiet: bool = True,
    capture_output: bool = False,
    stdin: "Stream" = None,
    stdout: "Stream" = None,
    stderr: "Stream" = None,
    cwd: "Optional[Text]" = None,
    env: "Optional[Mapping[str, str]]" = None,
    **options: "Option",
) -> "Run":
    """Records a command to its end, as `pyrometer run` does, and returns the recording.

    Without `output` it goes to .pyrometer/runs. `cwd`, `env` and the streams are the command's, as in the
    subprocess module; with `capture_output` the result has `stdout` and `stderr` as bytes. Any other option of
    `pyrometer run` is an argument: sample=500, force=True, for_=10. The command's own failure is no error here:
    see `returncode`. Raises PyrometerError if the command could not be started or recorded.
    """
    import subprocess

    if isinstance(args, (str, bytes)):
        raise TypeError("args is a list of words: ['python', 'app.py']")
    if capture_output:
        stdout = stderr = subprocess.PIPE
    asked: "Dict[str, Option]" = {"output": None if output is None else os.fspath(output), "quiet": quiet}
    asked.update(options)
    binary = find()
    readable, writable = os.pipe()
    with open(readable, "rb") as told:
        try:
            words = [binary, "run", *_options(asked), "--path-fd=%d" % writable, "--", *args]
            process = subprocess.Popen(
                words, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env, pass_fds=[writable]
            )
        except OSError as error:
            what = os.fsdecode(error.filename or binary)
            raise PyrometerError("cannot run %s: %s" % (what, error.strerror)) from error
        finally:
            os.close(writable)
        # After Ctrl-C, which the command got as well, the recorder ends its file by itself: it is not killed.
        with process:
            out, err = process.communicate()
        path = told.read()
    if not path:
        text = err.decode("utf-8", "replace") if err else ""
        raise _refusal(text or "the command was not started; the line on the standard error says why", process.returncode)
    return Run(os.path.join(os.fsencode(cwd or os.curdir), path[:-1]), process.returncode, out, err)
