"""The other side: the file to change for ssh, a container or a batch system.

PLACE/RUN holds work/ (a clone), home/, bin/gt (asks the town) and post/ (questions and answers). Everything that
happens there is a command of the other user, with data on its standard input and output only: with `ssh HOST` in front
of it that is another host. Nothing over there is opened, and no git is run in it, with the rights of the town's side.
(`Run.family` in runs.py looks for processes; it has to look over there then, too.)
"""
import os
import pwd
import subprocess

from runs import Refused

MAKE = (
    'umask 077 && rm -rf "$1" && mkdir -p "$1/home" "$1/work" "$1/bin" "$1/post" && mkfifo "$1/post/bell" && '
    'cat > "$1/bin/gt" && chmod +x "$1/bin/gt"'
)


class Place:
    def __init__(self, options, run):
        self.root, self.user = options.place, options.user if os.geteuid() == 0 else None
        self.dir = f"{options.place}/{run.name}"
        self.home, self.work, self.post = f"{self.dir}/home", f"{self.dir}/work", f"{self.dir}/post"

    def command(self, argv):
        """The command that runs `argv` over there. It holds no secrets: anybody can read command lines."""
        if not self.user:
            return [*argv]
        user = pwd.getpwnam(self.user)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--", *argv]

    def env(self):
        """Nothing of the town's."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": self.home}

    def run(self, *argv, data=b"", timeout=None):
        """Runs something over there, and returns what it printed."""
        more = {"input": data, "capture_output": True, "timeout": timeout}
        done = subprocess.run(self.command(argv), env=self.env(), cwd="/", **more)
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise Refused("no-room", lines[-1] if lines else f"`{argv[0]}` failed on the other side")
        return done.stdout

    def write(self, path, data, timeout=None):
        self.run("sh", "-c", 'cat > "$1"', "-", path, data=data, timeout=timeout)

    def git(self, *argv):
        return self.run("git", "-C", self.work, *argv)

    def make(self):
        if self.user:
            user = pwd.getpwnam(self.user)
            os.makedirs(self.root, exist_ok=True)
            os.chown(self.root, user.pw_uid, user.pw_gid)
        with open(os.path.join(os.path.dirname(__file__), "gt-elsewhere"), "rb") as gt:
            self.run("sh", "-c", MAKE, "-", self.dir, data=gt.read())

    def clear(self):
        try:
            self.run("rm", "-rf", self.dir)
        except (Refused, OSError, LookupError):
            pass  # then it stays for somebody to look at
