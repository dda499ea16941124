"""Where the binary is.

In this order, and the first that is there wins:

1. the environment variable PYROMETER_BINARY, which is not second-guessed;
2. where the wheel put it: its `bin` folder, seen from this package's place (a virtual environment, a prefix,
   `pip install --user`, `pip install --target`);
3. inside the zip file that this package is imported from (a zipapp): the kernel cannot execute what is in
   a zip file, so it is copied to a file in memory;
4. the `bin` folder of the running interpreter (an editable install);
5. PATH.

Python start-up counts here, so nothing is imported that the interpreter has not imported anyway.
"""

import os
import sys

NAME = "pyrometer"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional


class PyrometerError(Exception):
    """Something could not be done; the text says what and why, in one line.

    `status` is the exit status of the binary where it was the one to refuse: 1 could not, 2 wrong usage.
    """

    def __init__(self, message: str, status: "Optional[int]" = None) -> None:
        super().__init__(message)
        self.status = status


def _is_ours(path: str) -> bool:
    """A program that is not written in Python: a script of that name may lead back to this package."""
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        return False
    try:
        with open(path, "rb") as f:
            head = f.readline(256)
    except OSError:
        return True  # to be executed but not to be read
    return not (head.startswith(b"#!") and b"python" in head)


def _places(root: str) -> "Iterator[str]":
    """`root` is the folder that holds this package."""
    yield os.path.join(root, "bin")
    if os.path.basename(root) in ("site-packages", "dist-packages"):
        # lib/python3.X/site-packages
        yield os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(root))), "bin")
    yield os.path.join(sys.prefix, "bin")
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        yield folder or os.curdir


_in_memory = ("", 0)  # path of the copy, and the process it belongs to


def _from_zip(root: str) -> "Optional[str]":
    """The binary in the zip file `root`, as a file in memory; None if there is none."""
    global _in_memory
    get_data = getattr(getattr(__spec__, "loader", None), "get_data", None)
    if get_data is None or not os.path.isfile(root):
        return None
    if _in_memory[1] == os.getpid():
        return _in_memory[0]
    try:
        data = get_data(os.path.join(root, "bin", NAME))
        fd = os.memfd_create(NAME)  # closed at exec, when the program is loaded already
    except OSError:
        return None
    with open(fd, "wb", closefd=False) as f:
        f.write(data)
    _in_memory = ("/proc/%d/fd/%d" % (os.getpid(), fd), os.getpid())
    return _in_memory[0]


def find() -> str:
    """A path that can be executed. Raises PyrometerError if there is none."""
    chosen = os.environ.get("PYROMETER_BINARY", "")
    if chosen:
        return chosen
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = _from_zip(root)
    if found is not None:
        return found
    for place in _places(root):
        path = os.path.join(place, NAME)
        if _is_ours(path):
            return path
    raise PyrometerError(
        "the program 'pyrometer' is not installed beside this package, nor is it in PATH;"
        " reinstall the package, or name the program in PYROMETER_BINARY"
    )
