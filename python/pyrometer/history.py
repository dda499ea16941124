"""The history of runs, asked through the binary.

    history = pyrometer.history.open()                    # the nearest .pyrometer/history.db
    history.extract("python app.py", "peak_memory")       # one metric over all runs, oldest first
    for run in history.find("python app.py"):
        print(run["started"], run["elapsed_time_sec"])

A run is a dict, as `pyrometer history --json` prints it (docs/json.md).
"""

import os

from ._api import _ask_anything, _ask_text
from ._binary import PyrometerError

__all__ = ["History", "open"]

_ALIASES = {"peak_memory": "max_res_set_sz_kb"}
# columns of the table that are no metrics
_TEXTS = {"id", "uid", "started", "command", "key", "python_version", "git_commit", "git_branch", "git_dirty", "group", "warmup", "tags"}

TYPE_CHECKING = False  # typing's own would cost its import
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Union

    Path = Union[None, str, "os.PathLike[str]"]
    Run = Dict[str, Any]


def _filters(last: "Optional[int]", since: "Optional[str]", tag: "Optional[str]") -> "List[str]":
    words = ["--last=%d" % last] if last is not None else []
    words += ["--since=" + since] if since is not None else []
    words += ["--tag=" + tag] if tag is not None else []
    return words


def _number(text: str) -> "Optional[float]":
    """Whole numbers are whole."""
    if not text:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


class History:
    """A history. It is not kept in memory: each question asks the database."""

    def __init__(self, path: "Path" = None) -> None:
        self.path: "Optional[str]" = None if path is None else os.path.abspath(os.fspath(path))
        if self.path is None and "PYROMETER_DB" in os.environ:
            self.path = os.path.abspath(os.environ["PYROMETER_DB"])

    def __repr__(self) -> str:
        return "<History %s>" % (self.path or "of this folder")

    def _words(self, how: str, *words: str) -> "List[str]":
        where = [] if self.path is None else ["--db=" + self.path]
        return ["history", how, *where, *words]

    def commands(self) -> "List[Dict[str, Any]]":
        """Every command with the number of its runs (`command`, `key`, `runs`, `first`, `last`), the last one run first."""
        commands: "List[Dict[str, Any]]" = _ask_anything(self._words("--json"))["commands"]
        return commands

    def find(self, command: str, last: "Optional[int]" = None, since: "Optional[str]" = None, tag: "Optional[str]" = None) -> "List[Run]":
        """The runs of a command as it was typed, oldest first."""
        runs: "List[Run]" = _ask_anything(self._words("--json", *_filters(last, since, tag), "--", command))
        return runs

    def extract(
        self, command: str, metric: str, last: "Optional[int]" = None, since: "Optional[str]" = None, tag: "Optional[str]" = None
    ) -> "List[Optional[float]]":
        """One metric over the runs of a command, oldest first; None where it is not known."""
        import csv
        import io

        name = _ALIASES.get(metric, metric)
        # the table has all the numbers, and nothing of what the runs printed
        rows = csv.reader(io.StringIO(_ask_text(self._words("--csv", *_filters(last, since, tag), "--", command)), newline=""))
        heading, values = next(rows), list(rows)
        if not values:
            return []
        if name not in heading or name in _TEXTS:
            raise KeyError(metric)
        at = heading.index(name)
        return [_number(row[at]) for row in values]

    def runs(self) -> "Iterator[Run]":
        """Every run of every command."""
        for command in self.commands():
            for run in self.find(command["key"]):
                yield run

    def to_pandas(self, command: "Optional[str]" = None) -> "Any":
        """The runs of a command, or all, as a DataFrame: one row each, every metric a column. Needs pandas."""
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

        rows = []
        for run in self.runs() if command is None else self.find(command):
            row = {key: value for key, value in run.items() if key != "metrics"}
            row.update(run["metrics"])
            rows.append(row)
        return pandas.DataFrame(rows)


def open(path: "Path" = None) -> "History":  # noqa: A001
    """The history in a database file; without one, that of the working directory."""
    if path is not None and os.path.isdir(path):
        path = os.path.join(os.fspath(path), "history.db")
    history = History(path)
    if history.path is not None and not os.path.exists(history.path):
        raise PyrometerError("there is no history %s" % history.path)
    return history
