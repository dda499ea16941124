"""The run database as users of the SOMA profiler know it, over Pyrometer's history:

    from pyrometer import data

    db = data.FileBasedProfileDB()
    db.extract("python tests/objects.py", "peak_memory")

`pyrometer history import profiling_runs` brings old runs in.
"""

from .history import History, open as _open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from .history import Path

__all__ = ["FileBasedProfileDB", "ProfileDB"]


class ProfileDB:
    """What is asked of such a database."""

    def __init__(self, path: "Path" = None) -> None:
        self._history: "History" = _open(path)

    def __str__(self) -> str:
        import hashlib

        lines = []
        for command in self._history.commands():
            digest = hashlib.md5(command["command"].encode("utf-8", "replace")).hexdigest()
            lines.append('[%s] "%s": %d runs' % (digest, command["command"], command["runs"]))
        return "\n".join(lines)

    def find(self, command: str) -> "List[Dict[str, Any]]":
        return self._history.find(command)

    def extract(self, command: str, metric: str) -> "List[Optional[float]]":
        """One metric over all runs of the command, oldest first."""
        return self._history.extract(command, metric)

    def close(self) -> None:
        """Nothing is held open."""


class FileBasedProfileDB(ProfileDB):
    """`path` is a database file, or a folder that has a history.db; without it, that of the working directory."""
