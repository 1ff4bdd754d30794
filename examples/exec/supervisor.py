"""One run from its start to its end: brings the work to the other side and home again, and answers for the town."""
import os
import re
import subprocess
import sys
import tempfile
import threading

from place import Place
from runs import Refused

FORWARDED = {"done", "prime", "hook", "show", "escalate"}  # what an agent may ask of the town
LEFTOVER_GRACE = 1.0  # seconds that what an agent leaves behind has to end by itself


def supervise(options, run, say):
    """Says once how the start went, and stays until the end is noted."""
    lock, started, result = run.begin(), None, {"run": run.name}
    try:
        if lock:  # otherwise it was started before, and is not started again
            supervisor = Supervisor(options, run)
            started = supervisor.start()
    except (Refused, OSError, LookupError) as error:
        Place(options, run).clear()
        run.forget()  # so that it never began
        refused = error if isinstance(error, Refused) else Refused("no-room", str(error))
        result["error"] = refused.as_json()
    try:
        say(result)
    except BrokenPipeError:
        pass  # whoever called was killed; the run goes on
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)  # whoever called has its answer, and need not wait for the end
    if started:
        supervisor.stay(*started)


class Supervisor:
    def __init__(self, options, run):
        self.run, self.place, self.keep = run, Place(options, run), options.keep
        self.launch = run.read("launch.json")
        self.env = self.launch["env"]
        self.at_home = None  # the commit that both sides have

    def start(self):
        self.place.make()
        self.bring_there()
        env = self.env_of_agent()
        self.find_program(env)
        return self.start_ears(env), self.start_agent(env)

    def stay(self, ears, agent):
        if self.run.has("stop"):  # it was told to while it was being started
            self.run.end(LEFTOVER_GRACE)
        code = agent.wait()
        ears.kill()
        ears.wait()
        leftover = len(self.run.family())
        self.run.end(LEFTOVER_GRACE)
        how = {"code": code} if code >= 0 else {"signal": -code}
        self.run.note_end(**how, leftover=leftover, kept=self.bring_home() or self.unsaved())
        self.tell_the_town()

    # The work, there and back.

    def git(self, *argv):
        """git in the worktree, here."""
        return subprocess.run(["git", "-C", self.launch["dir"], *argv], env=self.env, capture_output=True)

    def bring_there(self):
        head = self.git("rev-parse", "--verify", "--quiet", "HEAD")
        if head.returncode != 0:
            return  # no repository: the agent works in an empty directory
        self.at_home = head.stdout.decode().strip()
        base = "refs/heads/" + self.env.get("GT_BASE_BRANCH", "")
        has_base = self.git("rev-parse", "--verify", "--quiet", base).returncode == 0
        bundle = f"{self.place.dir}/bundle"
        self.place.write(bundle, self.git("bundle", "create", "-", "HEAD", *([base] if has_base else [])).stdout)
        self.place.git("init", "--quiet")
        self.place.git("fetch", "--quiet", bundle, "HEAD", "+refs/heads/*:refs/remotes/origin/*")
        self.place.git("checkout", "--quiet", "-B", self.env.get("GT_BRANCH") or "work", "FETCH_HEAD")
        for key in ["user.name", "user.email"]:
            if value := self.git("config", key).stdout.strip():
                self.place.git("config", key, value)

    def bring_home(self):
        """Puts what was committed over there on the branch of the worktree here; returns why it could not."""
        try:
            head = self.at_home and self.place.git("rev-parse", "HEAD").decode().strip()
            if head == self.at_home:
                return None
            bundle = self.place.git("bundle", "create", "-", f"{self.at_home}..HEAD")
        except Refused as refused:
            return refused.args[1]
        with tempfile.NamedTemporaryFile(dir=self.run.state) as file:
            file.write(bundle)
            file.flush()
            for step in [["fetch", "--quiet", file.name, "HEAD"], ["merge", "--quiet", "--ff-only", "FETCH_HEAD"]]:
                done = self.git(*step)
                if done.returncode != 0:
                    return done.stderr.decode(errors="replace").strip() or "git failed"
        self.at_home = head

    def unsaved(self):
        try:
            return "it has uncommitted changes" if self.at_home and self.place.git("status", "--porcelain") else None
        except Refused as refused:
            return refused.args[1]

    # The agent.

    def env_of_agent(self):
        """Clean: what the run has to know, and what was asked to go along."""
        names = ["BD_ACTOR", "GIT_TERMINAL_PROMPT", *self.keep]
        env = {name: value for name, value in self.env.items() if name.startswith("GT_") or name in names}
        env |= self.place.env() | {"GT_POST": self.place.post}
        env["PATH"] = f"{self.place.dir}/bin:{env['PATH']}"
        return env | dict([self.run.mark.split("=", 1)])

    def find_program(self, env):
        """What is missing over there is the agent's fault, not the bead's."""
        look = self.place.command(["sh", "-c", 'command -v -- "$1"', "-", *self.launch["argv"][:1]])
        if subprocess.run(look, env=env, cwd=self.place.work, capture_output=True).returncode != 0:
            raise Refused("no-program", "it is not there on the other side")

    def start_agent(self, env):
        def own(path):
            return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb")

        paths = [self.launch["log"], self.launch.get("errors") or self.launch["log"]]
        with tempfile.TemporaryFile() as text, own(paths[0]) as log, own(paths[1]) as errors:
            text.write((self.launch["stdin"] or "").encode())
            text.seek(0)
            more = {"stdin": text, "stdout": log, "stderr": errors, "cwd": self.place.work, "start_new_session": True}
            return subprocess.Popen(self.place.command(self.launch["argv"]), env=env, **more)

    # The town, for the agent.

    def start_ears(self, env):
        """Prints the name of each question that is put into the post."""
        listen = self.place.command(["sh", "-c", 'exec cat <> "$1"', "-", f"{self.place.post}/bell"])
        ears = subprocess.Popen(listen, env=env, cwd="/", stdout=subprocess.PIPE)
        threading.Thread(target=self.serve, args=[ears.stdout], daemon=True).start()
        return ears

    def serve(self, bell):
        """Answers what the agent asks. Nothing of what it says is trusted."""
        for line in bell:
            if not re.fullmatch(rb"[A-Za-z0-9]+\n", line):
                continue
            ask = f"{self.place.post}/{line.decode().strip()}"
            try:
                words = self.place.run("cat", f"{ask}/words", timeout=10).decode(errors="replace").split("\0")[:-1]
                code, out, err = self.answer(words)
                for name, data in [("out", out), ("err", err), ("code", f"{code}\n".encode())]:
                    self.place.write(f"{ask}/{name}", data, timeout=10)
            except (Refused, OSError, subprocess.TimeoutExpired) as error:
                print(f"{ask}: {error}", file=sys.stderr, flush=True)

    def answer(self, words):
        if not words or words[0] not in FORWARDED:
            return 2, b"", f"gt: from here one can only ask: {', '.join(sorted(FORWARDED))}\n".encode()
        if words[0] == "done" and (why := self.bring_home()):
            return 1, b"", f"gt: the work could not be brought home: {why}\n".encode()
        done = subprocess.run(["gt", *words], env=self.env, cwd=self.launch["dir"], capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def tell_the_town(self):
        """Without a daemon nobody watches: then this records the end, and starts what it made possible."""
        env = {name: value for name, value in self.env.items() if name not in ["GT_RUN", "GT_BEAD"]}
        gt = ["gt", "--town", self.run.town]
        try:
            if subprocess.run([*gt, "daemon", "status"], env=env, capture_output=True).returncode != 0:
                subprocess.run([*gt, "scheduler", "run", "--after-exit"], env=env, capture_output=True)
        except OSError:
            pass  # there is no gt, so nobody waits for it
