"""Pyrometer, a profiler for Python that measures without touching.

    import pyrometer

    run = pyrometer.run(["python", "app.py"])      # record a command
    for row in run.rows(by="line", limit=10):       # where its time went
        print(row.name, row.file, row.line, row.self)

    last = pyrometer.load("@")                      # or a file, or a run's id
    pyrometer.active()                              # is this code being recorded?

    pyrometer.metric("rows", 1000)                  # kept with this run in the history
    pyrometer.history.open().extract("python app.py", "peak_memory")

    pyrometer.mark("ready")                         # on the timeline of `pyrometer run --trace`
    pyrometer.counter("queue", 12)
    with pyrometer.span("load"):
        ...

    with pyrometer.memory() as m:                   # what a block does with memory
        ...
    print(m.peak, m.net, m.top)

The work is done by the binary `pyrometer`: this package starts it and reads its JSON (docs/json.md). It
needs nothing but the standard library, and importing it costs next to nothing: what of it `run` and `load`
need is imported when they are first used.
"""

# All names at once, the quickest first: a module with a __getattr__, which could wait for the others, is looked into without
# CPython's shortcuts from 3.11 to 3.14, and `pyrometer.span` is called where that counts. Nothing here imports what the
# interpreter has not imported anyway.
from ._marks import counter, mark, span

import os
import sys

from . import data, history
from ._api import Recording, Report, Row, Run, load, run
from ._binary import PyrometerError
from ._memory import memory
from ._metric import metric

__version__ = "0.1.0"  # meson.build has it too; a test compares

__all__ = ["PyrometerError", "Recording", "Report", "Row", "Run", "active", "counter", "data", "history", "load", "mark",
           "memory", "metric", "run", "span"]

if sys.version_info < (3, 11):
    TYPE_CHECKING = False  # to a checker of types it is always true
    if TYPE_CHECKING:
        from types import ModuleType
    else:
        ModuleType = type(sys)

    class module(ModuleType):
        """Looks its names up like any object, without the detour by way of a __getattr__ that it has not: a fifth of a span."""

        __slots__ = ()
        __getattribute__ = object.__getattribute__

    sys.modules[__name__].__class__ = module
    del module


def _is_ancestor(pid: int) -> bool:
    at = os.getppid()
    while at > 0 and at != pid:
        try:
            with open("/proc/%d/stat" % at, "rb") as f:
                at = int(f.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return at == pid


def active() -> bool:
    """Whether this code runs under `pyrometer run`.

    The recorder says so in the environment (PYROMETER_ACTIVE, its process id), and must be above this process:
    while it lives it is, for it adopts whatever loses its parent, and once it is gone nobody has its id there.
    A program that `pyrometer attach` looks at cannot know: nothing in it was touched. Neither can one whose
    environment was emptied on the way (`env -i`, `sudo`).
    """
    value = os.environ.get("PYROMETER_ACTIVE", "")
    if not (value.isascii() and value.isdigit() and len(value) <= 10):
        return False
    return int(value) > 0 and _is_ancestor(int(value))
