"""Which state may follow which: one table per noun, in the order of life. docs/lifecycle.md is drawn from it.

Every state that is not final has a deadline or a named poker, and says so here: `woken` tells what moves a row on.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """One state: what may follow, and what wakes a row in it (empty for a final state)."""

    after: tuple[str, ...]
    woken: str = ""

    @property
    def final(self) -> bool:
        """Nothing follows."""
        return not self.after


LIFECYCLES: Mapping[str, Mapping[str, State]] = {
    "delivery": {
        "new": State(("done",), "due at once; repeated with growing pauses while GitHub does not answer"),
        "done": State(()),
    },
    "request": {
        "accepted": State(("waiting", "running", "reporting"), "due at once"),
        "waiting": State(("accepted", "reporting"), "poked when somebody confirms its cost, and by cancel; lapses"),
        "running": State(("reporting",), "poked by every lease that moves on, by cancel, and looked at each minute"),
        "reporting": State(("done",), "due at once"),
        "done": State(("done",), "poked when the pull request moves on, and when a machine that is billed has gone"),
    },
    "lease": {
        "queued": State(("booting", "cancelled", "failed"), "poked when a slot is free, looked at each minute"),
        "booting": State(("running", "queued", "failed", "cancelled"), "poked by the agent's claim; boot deadline"),
        "running": State(
            ("measuring", "queued", "failed", "cancelled"), "poked by the agent's end; heartbeat and lease deadline"
        ),
        "measuring": State(("done",), "due at once"),
        "done": State(()),
        "failed": State(()),
        "cancelled": State(()),
    },
    "machine": {
        "wanted": State(("creating", "closing", "gone"), "due at once, or when the first cool-down of an offer ends"),
        "creating": State(
            ("starting", "clearing", "closing", "gone"), "due at once: the offer is written down, then ordered"
        ),
        "starting": State(
            ("up", "clearing", "closing", "gone"), "looked at every few seconds; the lease's boot deadline"
        ),
        "clearing": State(("wanted", "closing", "gone"), "deleted until it is absent; then the next offer"),
        "up": State(("closing", "gone"), "poked when nobody wants it; observed each minute; its own deadline"),
        "closing": State(("gone",), "deleted again and again until the cloud says it is absent"),
        "gone": State(()),
    },
    "object": {
        "spooled": State(("kept", "gone"), "due at once: the bot sends what lies on its disk to the bucket"),
        "uploading": State(
            ("kept", "gone"), "kept when a manifest finds it whole; looked at until its lease has ended"
        ),
        "kept": State(("gone",), "poked when nobody wants it: a newer one of its name, another try, retention"),
        "gone": State(()),
    },
    "branch": {
        "watched": State(("watched", "gone"), "poked by pushes to it, looked at each day"),
        "gone": State(("watched",), "poked by a push, when there is something again"),
    },
    "schedule": {
        "armed": State(("armed", "gone"), "due when it is time"),
        "gone": State(("armed",), "armed again by a configuration that names it"),
    },
    "alarm": {
        "open": State(
            ("open", "closed", "accepted"), "due at once; poked by what is measured later, and by a word of acceptance"
        ),
        "accepted": State(("closed",), "poked when the acceptance is taken back"),
        "closed": State(()),
    },
    "message": {
        "pending": State(("sent", "dropped"), "due at once; repeated with growing pauses while GitHub is away"),
        "sent": State(("pending", "sent", "dropped"), "set to pending when something else is to be shown"),
        "dropped": State(()),
    },
}


def legal(noun: str, before: str, after: str) -> bool:
    """True when a row may go from one state to another; staying is always legal."""
    return before == after or after in LIFECYCLES[noun][before].after


def living(noun: str) -> tuple[str, ...]:
    """The states that are not final, in the order of life."""
    return tuple(name for name, state in LIFECYCLES[noun].items() if not state.final)
