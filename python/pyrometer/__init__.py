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
needs nothing but the standard library, and importing it costs next to nothing: what `run` and `load`
need is imported when they are first used.
"""

import os

__version__ = "0.1.0"  # meson.build has it too; a test compares

__all__ = ["PyrometerError", "Recording", "Report", "Row", "Run", "active", "counter", "data", "history", "load", "mark",
           "memory", "metric", "run", "span"]

from ._marks import counter, mark, span  # noqa: E402  small, and wanted without a detour

TYPE_CHECKING = False  # typing's own would cost its import
if TYPE_CHECKING:
    from ._api import Recording, Report, Row, Run, load, run
    from . import data, history
    from ._binary import PyrometerError
    from ._memory import memory
    from ._metric import metric
else:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        if name in ("data", "history"):
            from importlib import import_module

            return import_module("." + name, __name__)
        if name == "PyrometerError":
            from . import _binary as home
        elif name == "metric":
            from . import _metric as home
        elif name == "memory":
            from . import _memory as home
        else:
            from . import _api as home
        value = globals()[name] = getattr(home, name)
        return value

    def __dir__():
        return sorted(set(globals()) | set(__all__))


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
