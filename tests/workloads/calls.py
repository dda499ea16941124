"""A program whose calls are known to the last one, in every kind of thread and child.

    calls.py

work() is called 8 times in this process and once in a forked child; it calls leaf() 1000 or 100 times, which
calls abs() once. So leaf: 1000 + 4*100 + 100 + 100 + 100 = 1700. See EXPECTED in tests/e2e/test_agent.py.
"""
import _thread
import ctypes
import os
import threading


def leaf(i):
    return abs(i)


def work(n):
    for i in range(n):
        leaf(i)


def generate(n):
    for i in range(n):
        yield i


def descend(n):
    return 0 if n == 0 else descend(n - 1)


def boom():
    raise ValueError


def catch():
    try:
        boom()
    except ValueError:
        pass


def by_name(f, x):
    """One call site, now of a Python function, now of a C function."""
    return f(x)


def threads():
    started = [threading.Thread(target=work, args=(100,)) for _ in range(4)]
    for t in started:
        t.start()
    for t in started:
        t.join()


def raw_thread():
    done = _thread.allocate_lock()
    done.acquire()

    def raw():
        work(100)
        done.release()
    _thread.start_new_thread(raw, ())
    done.acquire()


def c_thread():
    libc = ctypes.CDLL(None)
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]

    def entered(_):
        work(100)
        return 0
    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(entered)
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, callback, None)
    libc.pthread_join(thread.value, None)


def fork():
    pid = os.fork()
    if pid == 0:
        work(100)
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    work(1000)
    assert list(generate(5)) == [0, 1, 2, 3, 4]
    descend(50)
    for _ in range(10):
        catch()
    for i in range(20):
        by_name(leaf if i % 2 else hex, i)
    threads()
    raw_thread()
    c_thread()
    fork()


main()
