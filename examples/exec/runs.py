"""What the town's side knows of a run: a directory TOWN/.gt/other-host/RUN, and the processes that carry its mark.

    launch.json   what to start; only its owner may read it, for the environment may hold secrets
    begun/        made once, by the supervisor that starts the run: whoever comes second does not start it again
    lock          held by the supervisor for as long as it lives
    stop          somebody wants it to end
    ended.json    how it ended, until that is acknowledged
"""
import fcntl
import json
import os
import re
import shutil
import signal
import tempfile
import time


class Refused(Exception):
    """Why a run was not started, in the protocol's words."""

    def as_json(self):
        kind, cause = self.args
        return {"kind": kind, "cause": cause}


class Run:
    def __init__(self, town, name):
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", name):
            raise Refused("failed", f"{name!r} cannot be the name of a run")
        self.town, self.name = town, name
        self.state = f"{town}/.gt/other-host/{name}"
        # Runs of two towns may have the same name; their directories do not.
        self.mark = f"OTHER_HOST_RUN={self.state}"

    def has(self, file):
        return os.path.exists(f"{self.state}/{file}")

    def read(self, file):
        with open(f"{self.state}/{file}") as opened:
            return json.load(opened)

    def write(self, file, value):
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        draft = tempfile.NamedTemporaryFile("w", dir=self.state, delete=False)
        with draft:
            json.dump(value, draft)
        os.replace(draft.name, f"{self.state}/{file}")  # whole or not at all

    def begin(self):
        """For its supervisor: the lock, or None when the run was begun before."""
        lock = open(f"{self.state}/lock", "a")
        while not taken(lock):  # by another supervisor, or for a moment by somebody who looks
            if self.has("begun"):
                return None
            time.sleep(0.01)
        try:
            os.mkdir(f"{self.state}/begun")
            return lock
        except FileExistsError:
            return None

    def look(self):
        """What there is to say of it; None: it was never started, or is forgotten."""
        try:
            return self.look_closely()
        except FileNotFoundError:
            return None  # somebody else has acknowledged it meanwhile

    def look_closely(self):
        if not self.has("ended.json") and self.has("begun"):
            with open(f"{self.state}/lock", "a") as lock:
                if not taken(lock):
                    return {"state": "running"}
                if not self.has("ended.json"):
                    # Its supervisor was killed. Nobody saw how it ended, but end it must.
                    self.end(grace=0)
                    self.note_end(kept="its supervisor was killed")
        return self.read("ended.json") if self.has("ended.json") else None

    def note_end(self, code=None, signal=None, leftover=0, kept=None):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        end = {"state": "ended", "code": code, "signal": signal, "at": at, "leftover": leftover, "kept": kept}
        self.write("ended.json", end)

    def forget(self):
        gone = f"{os.path.dirname(self.state)}/.{self.name}.{os.getpid()}"
        os.rename(self.state, gone)  # at once, so that nobody sees half of it
        shutil.rmtree(gone, ignore_errors=True)

    def family(self):
        """Its processes, wherever they have wandered: all have its mark in their environment."""
        found, unclear = set(), [pid for pid in os.listdir("/proc") if pid.isdigit()]
        for pause in (0.002, 0.004, 0.008, None):
            environs = {pid: environ_of(pid) for pid in unclear}
            found |= {int(pid) for pid, text in environs.items() if text and self.mark.encode() in text.split(b"\0")}
            # One that is just becoming another program seems to have none for a moment: look again.
            unclear = [pid for pid, text in environs.items() if text == b""]
            if not unclear or not pause:
                return found
            time.sleep(pause)

    def interrupt(self):
        for pid in self.family():
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                pass

    def end(self, grace):
        """Ends its processes: asks first where there is a grace, and kills what does not listen."""
        deadline, asked = time.monotonic() + grace, set()
        while family := self.family():
            is_late = time.monotonic() >= deadline
            for pid in family if is_late else family - asked:
                try:
                    os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
                except ProcessLookupError:
                    pass
            asked |= family
            time.sleep(0.02)


def all_runs(town):
    try:
        names = sorted(os.listdir(f"{town}/.gt/other-host"))
        return [Run(town, name) for name in names if not name.startswith(".")]
    except FileNotFoundError:
        return []


def environ_of(pid):
    """Its environment; None: it is dead, part of the kernel, or none of ours."""
    try:
        os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read()
    except OSError:
        return None


def taken(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
