"""A real terminal for the tests: a tmux server of its own, with a shell in it, that can be typed to, looked at and resized.

Nothing here sleeps for luck: what is expected is waited for, and PATIENCE turns waiting into a failure.
"""
import os
import shutil
import subprocess
import time

from harness import HANG

PROMPT = "ready>"
PATIENCE = 25  # seconds until something on the screen counts as missing
HAS_TMUX = shutil.which("tmux") is not None


class Terminal:
    """with Terminal(folder) as t: t.run("pyrometer tree"); t.wait("main"); t.keys("q")"""

    def __init__(self, folder, width=100, height=24, **env):
        self.socket = os.path.join(str(folder), "tmux.sock")
        self.folder = str(folder)
        kept = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "TERM", "LC_ALL", "LANG")}
        kept.update({"ENV": "", "TERM": "xterm-256color", "HOME": self.folder})
        self.env = dict(kept, **env)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "-c", folder, "sh")
        self.tmux("set-option", "-g", "status", "off")
        self.run("PS1='%s '; clear" % PROMPT)  # a shell of root does not take it from the environment
        self.until(lambda text: text.split() == [PROMPT], "the shell")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *[str(a) for a in args]], env=self.env, check=True, timeout=HANG,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8").stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, stderr=subprocess.DEVNULL)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.text().rstrip("\n").split("\n")

    def attributes(self):
        """The screen with its escape sequences."""
        return self.tmux("capture-pane", "-p", "-e")

    def keys(self, *keys):
        """Names of keys as tmux has them (Down, Enter, C-c), or characters."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def run(self, command):
        self.type(command)
        self.keys("Enter")

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.text()
            if condition(text):
                return text
            assert time.monotonic() < deadline, "waited for %s, saw:\n%s" % (what, text)
            time.sleep(0.02)

    def wait(self, *words):
        return self.until(lambda text: all(w in text for w in words), " and ".join(words))

    def wait_gone(self, word):
        return self.until(lambda text: word not in text, "no " + word)

    def wait_prompt(self, *gone):
        return self.until(lambda text: text.rstrip().endswith(PROMPT) and not any(w in text for w in gone), "the prompt")
