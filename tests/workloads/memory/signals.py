"""Signal handlers, in C and in Python, that allocate: charged to the line that was interrupted, or to the handler's."""
import os
import signal

from truth import allocate_on_signal, free, malloc, raise_signal


def handler(number, frame):
    free(malloc(444))                           #: malloc=[444] * 3


def main():
    allocate_on_signal(signal.SIGUSR1, 555)
    raise_signal(signal.SIGUSR1)                #: malloc=[555]
    for _ in range(9):
        raise_signal(signal.SIGUSR1)            #: malloc=[555] * 9
    old = signal.signal(signal.SIGUSR2, handler)
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGUSR2)
        len("here it is handled at the latest")
    signal.signal(signal.SIGUSR2, old)


if __name__ == "__main__":
    main()
