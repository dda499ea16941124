"""Runs a program and says what is resident when it has ended: {"private": bytes, "shared": bytes}, by the kernel's count.

    resident.py [PROGRAM ARGUMENT…]

Shared are mappings that another process may write to; everything else is private, files too.
"""
import json
import os
import re
import runpy
import sys

del sys.argv[0]
if sys.argv:
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    space = runpy.run_path(sys.argv[0], run_name="__main__")  # what it made stays until we have looked
found = {"private": 0, "shared": 0}
kind = None
with open("/proc/self/smaps") as smaps:
    for line in smaps:
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S{4}) ", line)
        if head:
            kind = "shared" if head.group(1)[3] == "s" and "w" in head.group(1) else "private"
        elif line.startswith("Rss:"):
            found[kind] += 1024 * int(line.split()[1])
print(json.dumps(found))
