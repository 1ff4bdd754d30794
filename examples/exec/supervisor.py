"""One run from its start to its end: brings the work to the other side and home again, and answers for the town.

The other side is PLACE/RUN: work/ (a clone), home/, bin/gt (asks the town) and post/ (questions and answers). All that
happens there goes through `there`, with data on standard input and output only, as that user: with `ssh HOST` in front
it is another host. Nothing over there is opened, and no git is run in it, with the rights of the town's side. (What
`Run.family` does has to be done over there then, too.)
"""
import os
import pwd
import re
import subprocess
import sys
import tempfile
import threading

from runs import Refused

FORWARDED = {"done", "prime", "hook", "show", "escalate"}  # what an agent may ask of the town
LEFTOVER_GRACE = 1.0  # seconds that what an agent leaves behind has to end by itself
MAKE_PLACE = (
    'umask 077 && rm -rf "$1" && mkdir -p "$1/home" "$1/work" "$1/bin" "$1/post" && mkfifo "$1/post/bell" && '
    'cat > "$1/bin/gt" && chmod +x "$1/bin/gt"'
)


def supervise(options, run, say):
    """Says once how the start went, and stays until the end is noted."""
    lock, started, result = run.begin(), None, {"run": run.name}
    try:
        if lock:  # otherwise it was started before, and is not started again
            supervisor = Supervisor(options, run)
            started = supervisor.start()
    except (Refused, OSError, LookupError) as error:
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


def clear(options, run):
    there(options, "rm", "-rf", f"{options.place}/{run.name}")


def over_there(options, argv):
    """The command that runs `argv` on the other side. It holds no secrets: anybody can read command lines."""
    if not options.user or os.geteuid() != 0:
        return [*argv]
    user = pwd.getpwnam(options.user)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--", *argv]


def env_there(options):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": options.place}


def there(options, *argv, data=b"", timeout=None):
    """Runs something on the other side, and returns what it printed."""
    streams = {"input": data, "capture_output": True, "timeout": timeout}
    done = subprocess.run(over_there(options, argv), env=env_there(options), cwd=options.place, **streams)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise Refused("no-room", lines[-1] if lines else f"`{argv[0]}` failed on the other side")
    return done.stdout


class Supervisor:
    def __init__(self, options, run):
        self.options, self.run = options, run
        self.place, self.work = f"{options.place}/{run.name}", f"{options.place}/{run.name}/work"
        self.launch = run.read("launch.json")
        self.env = self.launch["env"]
        self.at_home = None  # the commit that both sides have

    def start(self):
        self.make_place()
        self.bring_there()
        return self.start_agent()

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

    def make_place(self):
        if os.geteuid() == 0 and self.options.user:
            user = pwd.getpwnam(self.options.user)
            os.makedirs(self.options.place, exist_ok=True)
            os.chown(self.options.place, user.pw_uid, user.pw_gid)
        with open(os.path.join(os.path.dirname(__file__), "gt-elsewhere"), "rb") as gt:
            there(self.options, "sh", "-c", MAKE_PLACE, "-", self.place, data=gt.read())

    def git(self, *argv):
        """git in the worktree, here."""
        return subprocess.run(["git", "-C", self.launch["dir"], *argv], env=self.env, capture_output=True)

    def git_there(self, *argv, **more):
        return there(self.options, "git", "-C", self.work, *argv, **more)

    def bring_there(self):
        head = self.git("rev-parse", "--verify", "--quiet", "HEAD")
        if head.returncode != 0:
            return  # no repository: the agent works in an empty directory
        self.at_home = head.stdout.decode().strip()
        base = "refs/heads/" + self.env.get("GT_BASE_BRANCH", "")
        has_base = self.git("rev-parse", "--verify", "--quiet", base).returncode == 0
        bundle = self.git("bundle", "create", "-", "HEAD", *([base] if has_base else [])).stdout
        there(self.options, "sh", "-c", 'cat > "$1"', "-", f"{self.place}/bundle", data=bundle)
        self.git_there("init", "--quiet")
        self.git_there("fetch", "--quiet", f"{self.place}/bundle", "HEAD", "+refs/heads/*:refs/remotes/origin/*")
        self.git_there("checkout", "--quiet", "-B", self.env.get("GT_BRANCH") or "work", "FETCH_HEAD")
        for key in ["user.name", "user.email"]:
            if value := self.git("config", key).stdout.strip():
                self.git_there("config", key, value)

    def bring_home(self):
        """Puts what was committed over there on the branch of the worktree here; returns why it could not."""
        try:
            head = self.at_home and self.git_there("rev-parse", "HEAD").decode().strip()
            if head == self.at_home:
                return None
            bundle = self.git_there("bundle", "create", "-", f"{self.at_home}..HEAD")
        except Refused as refused:
            return refused.args[1]
        with tempfile.NamedTemporaryFile(dir=self.run.state) as file:
            file.write(bundle)
            file.flush()
            for step in [["fetch", "--quiet", file.name, "HEAD"], ["merge", "--quiet", "--ff-only", "FETCH_HEAD"]]:
                done = self.git(*step)
                if done.returncode != 0:
                    return done.stderr.decode(errors="replace").strip()
        self.at_home = head

    def unsaved(self):
        return "it has uncommitted changes" if self.at_home and self.git_there("status", "--porcelain") else None

    def start_agent(self):
        kept = ["BD_ACTOR", "GIT_TERMINAL_PROMPT", *self.options.keep]
        env = {name: value for name, value in self.env.items() if name.startswith("GT_") or name in kept}
        env |= env_there(self.options) | {"HOME": f"{self.place}/home", "GT_POST": f"{self.place}/post"}
        env["PATH"] = f"{self.place}/bin:{env['PATH']}"
        env.update([self.run.mark.split("=", 1)])
        self.find_program(env)
        listen = ["sh", "-c", 'exec cat <> "$1"', "-", f"{self.place}/post/bell"]
        ears = subprocess.Popen(over_there(self.options, listen), env=env, cwd="/", stdout=subprocess.PIPE)
        threading.Thread(target=self.serve, args=[ears.stdout], daemon=True).start()
        log = os.open(self.launch["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with tempfile.TemporaryFile() as text, open(log, "wb") as log:
            text.write((self.launch["stdin"] or "").encode())
            text.seek(0)
            streams = {"stdin": text, "stdout": log, "stderr": log}
            argv = over_there(self.options, self.launch["argv"])
            return ears, subprocess.Popen(argv, env=env, cwd=self.work, start_new_session=True, **streams)

    def find_program(self, env):
        """What is missing over there is the agent's fault, not the bead's."""
        look = ["sh", "-c", 'command -v -- "$1"', "-", *self.launch["argv"][:1]]
        found = subprocess.run(over_there(self.options, look), env=env, cwd=self.work, capture_output=True)
        if found.returncode != 0:
            raise Refused("no-program", "it is not there on the other side")

    def serve(self, bell):
        """Answers what the agent asks. Nothing of what it says is trusted."""
        for line in bell:
            ask = f"{self.place}/post/{line.decode(errors='replace').strip()}"
            try:
                if re.fullmatch(rb"[A-Za-z0-9]+\n", line):
                    words = there(self.options, "cat", f"{ask}/words").decode(errors="replace").split("\0")[:-1]
                    code, out, err = self.answer(words)
                    for name, data in [("out", out), ("err", err), ("code", f"{code}\n".encode())]:
                        there(self.options, "sh", "-c", 'cat > "$1"', "-", f"{ask}/{name}", data=data, timeout=10)
            except (Refused, OSError, subprocess.TimeoutExpired) as error:
                print(f"{ask}: {error}", file=sys.stderr, flush=True)

    def answer(self, words):
        if not words or words[0] not in FORWARDED:
            return 2, b"", f"gt: from here one can only ask: {', '.join(sorted(FORWARDED))}\n".encode()
        if words[0] == "done" and (why := self.bring_home()):
            return 1, b"", f"gt: the work could not be brought home: {why}\n".encode()
        streams = {"stdin": subprocess.DEVNULL, "capture_output": True}
        done = subprocess.run(["gt", *words], env=self.env, cwd=self.launch["dir"], **streams)
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
