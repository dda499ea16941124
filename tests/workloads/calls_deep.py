"""deep() in deep(), 50,000 times, in a thread with room for it; then bottom()."""
import sys
import threading


def bottom():
    return 1


def deep(n):
    return deep(n - 1) if n else bottom()


sys.setrecursionlimit(60000)
threading.stack_size(512 << 20)
thread = threading.Thread(target=deep, args=(50000,))
thread.start()
thread.join()
