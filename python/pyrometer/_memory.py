"""`with pyrometer.memory() as m:` what a block of code did with memory.

Another process, started for it, records what Python's allocators give out and take back inside of the block, as
`pyrometer run --memory=objects` does for a whole program; the numbers are read from its recording. What C code takes from
libc by itself (NumPy's arrays) can only be seen from a program's start, with `pyrometer run --memory`.
"""

import _thread
import os

from ._api import Report, _ask, _options
from ._binary import PyrometerError, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any, Dict, List, Optional

    from ._api import Option, Row

_library: "Any" = None
_turn = _thread.allocate_lock()  # held by the block that is watched: there is one at a time, whichever thread it is of
# That block: set after the agent has come in and taken back before it is asked to leave, so that no child asks it twice.
_watched: "Optional[memory]" = None


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


def _is_recorded() -> bool:
    """Is there a recorder's agent in this process that no block has brought?"""
    if "PYROMETER_AGENT" in os.environ:
        return True
    if _library is not None:
        return False
    try:  # the program may have emptied its environment
        with open("/proc/self/maps", "rb") as maps:
            return b"/libpyrometer-agent" in maps.read()
    except OSError:
        return False


def _forked() -> None:
    """A child holds none of its parent's blocks: their numbers are the parent's, and it may have one of its own."""
    global _turn, _watched
    _turn = _thread.allocate_lock()
    if _watched is not None:
        _watched = None
        _library.pyrometer_agent_leave()


_hears_of_forks = False


def _hear_of_forks() -> None:
    """From the first block on: what is registered keeps this module alive to the interpreter's very end."""
    global _hears_of_forks
    if not _hears_of_forks:
        os.register_at_fork(after_in_child=_forked)
    _hears_of_forks = True


class memory:
    """A block whose memory is watched.

    After it: `peak` is the most that was alive of what the block allocated, `net` what of that is alive still, `allocated` and
    `count` all that it allocated, in bytes and blocks; `top` are the lines that hold most (rows of a report: `name`, `file`,
    `line`, `self`, …), `top_at_peak` those that held most at the peak. All threads count, forked children do not. If the block
    ends by an exception, the numbers are those until then, or None if they could not be had.

    Of a process one block is watched at a time, whichever thread it is of: another that begins meanwhile, inside of it or beside it,
    raises PyrometerError and changes nothing. A program that is recorded already cannot have any: its recording says all that, and more.

    `limit` is the number of rows; with `keep` the recording goes to that file."""

    def __init__(self, *, limit: int = 10, keep: "Optional[str]" = None) -> None:
        if not isinstance(limit, int):
            raise TypeError("limit is a number of rows, not %r" % (limit,))
        if limit < 0:
            raise ValueError("limit is a number of rows, 0 or more, not %d" % limit)
        self.peak: "Optional[int]" = None
        self.net: "Optional[int]" = None
        self.allocated: "Optional[int]" = None
        self.count: "Optional[int]" = None
        self.top: "List[Row]" = []
        self.top_at_peak: "List[Row]" = []
        self._limit, self._keep = limit, keep
        self._folder: "Optional[str]" = None
        self._recorder: "Optional[subprocess.Popen[str]]" = None
        self._pid = 0  # of the process that began it

    def __enter__(self) -> "memory":
        if _is_recorded():
            raise PyrometerError("this program is recorded from inside already, by 'pyrometer run': its recording tells of memory, "
                                 "with --memory")
        if self._recorder is not None:
            raise PyrometerError("this block was used already: make another pyrometer.memory()")
        _hear_of_forks()
        turn = _turn
        if not turn.acquire(False):
            raise PyrometerError("another block of pyrometer.memory() is being watched in this process: there can be one at a time, "
                                 "of all threads")
        try:
            self._begin()
        except BaseException:
            turn.release()
            raise
        return self

    def _begin(self) -> None:
        import shutil
        import subprocess
        import tempfile

        global _watched
        # The block may change the working directory and the environment: what is asked for after it is what was found before.
        binary = find()
        there = shutil.which(binary)
        self._binary = os.path.abspath(there) if there else binary
        self._folder = os.path.abspath(tempfile.mkdtemp(prefix="pyrometer-"))
        self._path = os.path.abspath(self._keep or os.path.join(self._folder, "memory.pyro"))
        self._recorder = subprocess.Popen(
            [self._binary, "attach", "--memory=objects", "--invite-fd=1", "--quiet", "--force", "-o", self._path, str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
            start_new_session=True)  # Ctrl-C is for the program: what it does with it is the block's affair
        self._pid = os.getpid()
        assert self._recorder.stdout is not None
        invitation, library = self._recorder.stdout.readline().strip(), self._recorder.stdout.readline().strip()
        agent = _agent(library) if invitation and library else None
        if agent is None or agent.pyrometer_agent_invite(invitation.encode()) != 0:
            self._end()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise PyrometerError("memory cannot be watched here: %s" % (self._said or "this Python is not supported"))
        _watched = self

    def __exit__(self, kind: "Any", value: "Any", traceback: "Any") -> None:
        global _watched
        is_own = os.getpid() == self._pid
        if _watched is not self:
            if self._pid and not is_own:  # a forked child goes out by its parent's door: the block goes on there
                return
            raise PyrometerError("this block of pyrometer.memory() cannot end: %s"
                                 % ("it has ended already" if self._pid else "it was not begun"))
        turn = _turn
        _watched = None  # before it leaves: another thread may fork at any time
        try:
            _library.pyrometer_agent_leave()
            if is_own:  # else C code has forked, which Python was not told
                self._finish(kind is not None)
        finally:
            turn.release()

    def _finish(self, has_failed: bool) -> None:
        import shutil

        try:
            early = self._recorder is not None and self._recorder.poll() is not None
            self._end()
            if early:
                raise PyrometerError("memory was not watched to the end of the block: its recorder was ended%s"
                                     % (": " + self._said if self._said else ""))
            self._read()
        except Exception:
            if not has_failed:  # what went wrong in the block itself is not to be hidden
                raise
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

    def _process(self) -> "Optional[int]":
        """This process as the recording calls it: beside it there may be children, which C code forked or which had not left yet."""
        pids = [int(one["pid"]) for one in _ask(["info", "--json", "--", self._path], self._binary)["processes"]]
        if self._pid in pids:
            return self._pid
        return pids[0] if pids else None  # in a pid namespace it may have another number there, but it comes first

    def _read(self) -> None:
        own, process = _own(), self._process()

        def report(metric: str, by: str = "line", limit: int = 0) -> "Report":
            asked: "Dict[str, Option]" = {"by": by, "metric": metric, "exclude": own, "limit": limit, "process": process}
            return Report.from_json(_ask(["report", "--json", *_options(asked), "--", self._path], self._binary))

        peak, held, allocated = report("peak"), report("leaked"), report("allocated")
        self.peak, self.net, self.allocated = int(peak.total), int(held.total), int(allocated.total)
        self.count = int(report("count", by="function", limit=1).total)

        def largest(rows: "List[Row]") -> "List[Row]":
            return sorted((r for r in rows if r.self), key=lambda r: -r.self)[:self._limit]

        self.top, self.top_at_peak = largest(list(held.rows)), largest(list(peak.rows))
