"""hyperfine, as Debian has it: runs commands and times them. It profiles nothing: only `history` asks it."""
import glob
import os
import shutil

from common import BUILD, run
from peers import Peer


class Hyperfine(Peer):
    name = label = "hyperfine"
    requirement = "hyperfine of Debian"
    records = False
    attaches = None

    def __init__(self, bench):
        super().__init__(bench)
        self.root = os.path.join(BUILD, "bench-hyperfine")
        self.path = shutil.which("hyperfine") or os.path.join(self.root, "usr", "bin", "hyperfine")

    def install(self):
        """Unpacked, not installed: it needs no root, and the machine stays as it is. Kept between runs."""
        if os.access(self.path, os.X_OK):
            return
        os.makedirs(self.root, exist_ok=True)
        run(["apt-get", "download", "--quiet", "hyperfine"], cwd=self.root).expect()
        run(["dpkg", "-x", *glob.glob(os.path.join(self.root, "hyperfine_*.deb")), self.root]).expect()

    def meter(self, command):
        """The command that runs another once, without a shell."""
        return [self.path, "-N", "--runs", "1", "--style", "none", " ".join(command)]


PEERS = [Hyperfine]
