"""Why things end: each code with its sentence, whose fault it is, and whether another machine is worth a try."""

from dataclasses import dataclass, replace
from typing import Literal

Fault = Literal["user", "infra", "us"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a run, lease or request ended: a code of REASONS, a sentence, whose fault it is, whether to try again."""

    code: str
    sentence: str
    fault: Fault
    retry: bool = False


def _reason(code: str, fault: Fault, sentence: str, *, retry: bool = False) -> Reason:
    return Reason(code=code, sentence=sentence, fault=fault, retry=retry)


REASONS = {
    reason.code: reason
    for reason in (
        _reason("user_error", "user", "The training command ended with an error."),
        _reason("oom", "user", "The training command ran out of memory."),
        _reason("timeout", "user", "The training command took longer than the benchmark's timeout."),
        _reason("setup_failed", "user", "The setup line failed."),
        _reason("input_failed", "user", "An input could not be fetched, or is not the file that was declared."),
        _reason("checkout_failed", "user", "The commit is not available any more."),
        _reason("no_metrics", "user", "The run wrote no readable value for any of its metrics."),
        _reason("cancelled", "user", "Cancelled."),
        _reason("closed", "user", "Cancelled, because the pull request was closed."),
        _reason("dismissed", "user", "Cancelled, because the approving review was dismissed."),
        _reason("superseded", "user", "Cancelled, because the pull request has a new head."),
        _reason("removed", "user", "The benchmark does not exist at this commit."),
        _reason("budget", "user", "The estimated cost is over the budget."),
        _reason("lapsed", "user", "Nobody confirmed within a day what it may cost."),
        _reason("no_capacity", "infra", "No machine could be had in time.", retry=True),
        _reason("quota", "infra", "The cloud refused the machine for lack of quota."),
        _reason("config", "infra", "The machine could not be ordered as the operator configured it."),
        _reason("untrusted", "infra", "This hardware does not keep strangers' code apart from the bot."),
        _reason("boot_timeout", "infra", "The machine did not report for work in time.", retry=True),
        _reason("device_unhealthy", "infra", "The machine's devices do not work.", retry=True),
        _reason("preempted", "infra", "The cloud took the machine back.", retry=True),
        _reason("agent_lost", "infra", "The machine stopped answering.", retry=True),
        _reason("second_claim", "infra", "Two agents claimed the same machine.", retry=True),
        _reason("lease_timeout", "infra", "The lease reached its deadline."),
        _reason("agent_error", "us", "The agent on the machine failed.", retry=True),
        _reason("bug", "us", "benchbot itself failed here."),
    )
}


def reason(code: str, sentence: str = "") -> Reason:
    """The reason of a code, with a more exact sentence where there is one. An unknown code is our own bug."""
    known = REASONS.get(code, REASONS["bug"])
    return replace(known, sentence=sentence) if sentence else known
