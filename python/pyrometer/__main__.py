"""`python -m pyrometer`: becomes the binary, so that both are the same."""

import os
import signal
import sys

from ._binary import PyrometerError, find


def main() -> None:
    try:
        binary = find()
    except PyrometerError as error:
        sys.stderr.write("pyrometer: %s\n" % error)
        sys.exit(1)
    # Python ignores these two, and a program inherits what is ignored.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(binary, ["pyrometer"] + sys.argv[1:])
    except OSError as error:
        sys.stderr.write("pyrometer: cannot run %s: %s\n" % (binary, error.strerror))
        sys.exit(1)


if __name__ == "__main__":
    main()
