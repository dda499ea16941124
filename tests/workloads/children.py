"""Children by every way there is, each busy in a function named for its way.

    children.py [SECONDS] [WAY…]

Prints the ways it really took, one a line.
"""
import multiprocessing
import os
import subprocess
import sys
import time

WAYS = ["fork", "mp_fork", "mp_spawn", "mp_forkserver", "subprocess", "shell", "posix_spawn", "empty_env", "exec"]


def spin(seconds):
    end = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < end:
        x += 1


# A child started afresh imports nothing of this file: its function comes with it.
TEXT = """
import time
def child_{way}():
    end = time.perf_counter() + {seconds}
    x = 0
    while time.perf_counter() < end:
        x += 1
child_{way}()
"""


def child_fork(seconds):
    spin(seconds)


def child_mp_fork(seconds):
    spin(seconds)


def child_mp_spawn(seconds):
    spin(seconds)


def child_mp_forkserver(seconds):
    spin(seconds)


def start_fork(seconds):
    pid = os.fork()
    if pid == 0:
        child_fork(seconds)
        os._exit(0)
    os.waitpid(pid, 0)


def start_mp(method, function, seconds):
    context = multiprocessing.get_context(method)
    process = context.Process(target=function, args=(seconds,))
    process.start()
    process.join()


def start(way, seconds):
    text = TEXT.format(way=way, seconds=seconds)
    if way == "fork":
        start_fork(seconds)
    elif way.startswith("mp_"):
        start_mp(way[3:], globals()["child_" + way], seconds)
    elif way == "subprocess":
        subprocess.run([sys.executable, "-c", text], check=True)
    elif way == "shell":
        subprocess.run('"$PY" -c "$TEXT"; true', shell=True, check=True,
                       env=dict(os.environ, PY=sys.executable, TEXT=text))
    elif way == "posix_spawn":
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", text], os.environ)
        os.waitpid(pid, 0)
    elif way == "empty_env":
        subprocess.run([sys.executable, "-I", "-c", text], env={}, check=True)
    elif way == "exec":
        pid = os.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", text])
        os.waitpid(pid, 0)
    else:
        sys.exit("no such way: " + way)


if __name__ == "__main__":
    for name in sys.argv[2:] or WAYS:
        start(name, float(sys.argv[1]) if len(sys.argv) > 1 else 0.3)
        print(name, flush=True)
