"""The example's supervisor for a place that is here: no work is carried, and agents call the real `gt` themselves."""
import carrier
from runs import Refused


class Supervisor(carrier.Supervisor):
    def start(self):
        env = self.env | dict([self.run.mark.split("=", 1)])
        try:
            return Ears(), self.start_agent(env)
        except OSError as error:
            raise Refused("no-program", f"{error.strerror} (os error {error.errno})")


class Ears:
    """Nobody listens: there are no questions."""

    def kill(self):
        pass

    wait = kill


carrier.Supervisor = Supervisor
supervise = carrier.supervise
