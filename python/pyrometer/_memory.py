"""`with pyrometer.memory() as m:` what a block of code did with memory.

Another process, started for it, records what Python's allocators give out and take back inside of the block, as
`pyrometer run --memory=objects` does for a whole program; the numbers are read from its recording. What C code takes from
libc by itself (NumPy's arrays) can only be seen from a program's start, with `pyrometer run --memory`.
"""

import os

from ._api import load
from ._binary import PyrometerError, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any, List, Optional

    from ._api import Row

_library: "Any" = None


def _own() -> str:
    """What this file allocates is not the block's: a pattern for its own name, and nobody else's."""
    name = memory.__enter__.__code__.co_filename
    return "^" + "".join("[%s]" % c if c in ".*+?()|{}$" else "\\" + c if c in "[]^\\" else c for c in name) + ":"


def _agent(path: str) -> "Any":
    global _library
    if _library is None:
        import ctypes

        library = ctypes.PyDLL(path)  # it keeps the GIL
        library.pyrometer_agent_invite.argtypes = [ctypes.c_char_p]
        library.pyrometer_agent_invite.restype = ctypes.c_int
        library.pyrometer_agent_leave.argtypes = []
        library.pyrometer_agent_leave.restype = None
        _library = library
    return _library


class memory:
    """A block whose memory is watched.

    After it: `peak` is the most that was alive of what the block allocated, `net` what of that is alive still, `allocated` and
    `count` all that it allocated, in bytes and blocks; `top` are the lines that hold most (rows of a report: `name`, `file`,
    `line`, `self`, …), `top_at_peak` those that held most at the peak. All threads count. Blocks cannot be nested, and a program
    that is recorded already cannot have any: its recording says all that, and more.

    `limit` is the number of rows; with `keep` the recording goes to that file."""

    def __init__(self, *, limit: int = 10, keep: "Optional[str]" = None) -> None:
        self.peak: "Optional[int]" = None
        self.net: "Optional[int]" = None
        self.allocated: "Optional[int]" = None
        self.count: "Optional[int]" = None
        self.top: "List[Row]" = []
        self.top_at_peak: "List[Row]" = []
        self._limit, self._keep = limit, keep
        self._folder: "Optional[str]" = None
        self._recorder: "Optional[subprocess.Popen[str]]" = None

    def __enter__(self) -> "memory":
        if "PYROMETER_AGENT" in os.environ:
            raise PyrometerError("this program is recorded from inside already: its recording tells of memory, with "
                                 "'pyrometer run --memory'")
        if self._recorder is not None:
            raise PyrometerError("this block was used already: make another pyrometer.memory()")
        import shutil
        import subprocess
        import tempfile

        binary = find()
        self._folder = tempfile.mkdtemp(prefix="pyrometer-")
        path = self._keep or os.path.join(self._folder, "memory.pyro")
        self._recorder = subprocess.Popen(
            [binary, "attach", "--memory=objects", "--invite-fd=1", "--quiet", "--force", "-o", path, str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
            start_new_session=True)  # Ctrl-C is for the program: what it does with it is the block's affair
        self._pid = os.getpid()
        self._path = path
        assert self._recorder.stdout is not None
        invitation, library = self._recorder.stdout.readline().strip(), self._recorder.stdout.readline().strip()
        agent = _agent(library) if invitation and library else None
        if agent is None or agent.pyrometer_agent_invite(invitation.encode()) != 0:
            self._end()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise PyrometerError("memory cannot be watched here: %s"
                                 % (self._said or "another block is being watched, or this Python is not supported"))
        return self

    def __exit__(self, kind: "Any", value: "Any", traceback: "Any") -> None:
        _library.pyrometer_agent_leave()
        if os.getpid() != self._pid:
            return  # a forked child goes out by its parent's door: the block goes on there
        import shutil

        try:
            early = self._recorder is not None and self._recorder.poll() is not None
            self._end()
            if early and kind is None:
                raise PyrometerError("memory was not watched to the end of the block: its recorder was ended%s"
                                     % (": " + self._said if self._said else ""))
            if kind is None:
                self._read()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)

    _said = ""

    def _end(self) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        recorder.terminate()
        self._said = recorder.communicate()[1].strip()

    def _read(self) -> None:
        run, own = load(self._path), _own()
        peak = run.report(by="line", metric="peak", exclude=own, limit=0)
        held = run.report(by="line", metric="leaked", exclude=own, limit=0)
        allocated = run.report(by="line", metric="allocated", exclude=own, limit=0)
        self.peak, self.net, self.allocated = int(peak.total), int(held.total), int(allocated.total)
        self.count = int(run.report(metric="count", exclude=own, limit=1).total)

        def largest(rows: "List[Row]") -> "List[Row]":
            return sorted((r for r in rows if r.self), key=lambda r: -r.self)[:self._limit]

        self.top, self.top_at_peak = largest(list(held.rows)), largest(list(peak.rows))
