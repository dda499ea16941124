"""What a program says of itself on its timeline: marks, counters and spans.

Without a recorder inside the program (`pyrometer run --trace` or `--calls`) all of them do nothing, at about the
price of a call or two; which of the two it is, is decided when this is imported. Arguments go by position only: what
does nothing quickest knows no names.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ContextManager, Optional, Tuple

    _NOTHING: ContextManager[Any]
else:

    class _Nothing:
        """A span where nobody listens. What `with` calls is C's own, which takes nothing or whatever comes, changes nothing, and
        returns something false, so that exceptions pass. No method is bound on the way: these are none."""

        __slots__ = ()
        __enter__ = [].reverse
        __exit__ = type.__prepare__  # a new empty dict, whatever it is given

        def method(self):
            """Only to have its type."""

    _NOTHING = _Nothing()


def mark(name: str, /) -> None:
    """A named moment on this thread's timeline."""


def counter(name: str, value: float, /) -> None:
    """From now on `name` has this value."""


def span(name: str, /) -> "ContextManager[Any]":
    """A named stretch of time: `with pyrometer.span("load"): ...`."""
    return _NOTHING


if sys.version_info < (3, 11):
    # Where a call of a Python function costs more than one of C: next(repeat(x), whatever) is x for ever. A method
    # of `next` on it is the quickest way to say so, and itertools is no file.
    from itertools import repeat

    globals()["span"] = type(getattr(_NOTHING, "method"))(next, repeat(_NOTHING))
else:
    # Where `with` ends in an ordinary call, and one of a Python function is the quickest.
    setattr(type(_NOTHING), "__exit__", staticmethod(lambda kind, value, traceback: None))


def _agent() -> "Optional[Any]":
    """The library that `pyrometer run` has loaded into this process, or None."""
    if "PYROMETER_AGENT" not in os.environ:
        return None
    try:
        import ctypes

        library = ctypes.PyDLL(None)  # it keeps the GIL: the call is short
        library.pyrometer_agent_mark.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        library.pyrometer_agent_counter.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_double]
        library.pyrometer_agent_span_begin.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        library.pyrometer_agent_span_begin.restype = ctypes.c_uint64
        library.pyrometer_agent_span_end.argtypes = [ctypes.c_uint64]
        for name in ("mark", "counter", "span_end"):
            getattr(library, "pyrometer_agent_" + name).restype = None
        return library
    except (ImportError, OSError, AttributeError):
        return None


def _listened(library: "Any") -> "Tuple[Any, Any, Any]":
    """The three functions, for a process with a listener."""
    import ctypes

    mark_c, counter_c = library.pyrometer_agent_mark, library.pyrometer_agent_counter
    begin_c, end_c = library.pyrometer_agent_span_begin, library.pyrometer_agent_span_end

    class Span:
        __slots__ = ("_name", "_number")

        def __init__(self, name: str, /) -> None:
            self._name = str(name).encode("utf-8", "replace")
            self._number = 0

        def __enter__(self) -> "Any":
            self._number = begin_c(self._name, len(self._name))
            return self

        def __exit__(self, kind: "Any", value: "Any", traceback: "Any") -> None:
            end_c(self._number)

    def mark(name: str, /) -> None:
        text = str(name).encode("utf-8", "replace")
        mark_c(text, len(text))

    def counter(name: str, value: float, /) -> None:
        text = str(name).encode("utf-8", "replace")
        try:
            counter_c(text, len(text), value)
        except ctypes.ArgumentError:  # no number: where nobody listens nobody minds
            pass

    return mark, counter, Span


_library = _agent()
if _library is not None:
    globals().update(zip(("mark", "counter", "span"), _listened(_library)))
