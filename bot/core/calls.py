"""From a call to its plan: what the base has is compared, what only the head has is run alone."""

from dataclasses import replace

from bot.core.budget import over_budget
from bot.core.nouns import Call, Plan, Refusal, RepoConfig
from bot.core.planning import MOST_LEASES, PlanInputs, plan


def plan_of(call: Call) -> Plan | Refusal:
    """The leases of a call in the order of its configuration, or why there are none."""
    both = tuple(name for name in call.resolved if name not in call.head_only)
    inputs = PlanInputs(command=call.command, targets=both, config=call.config or RepoConfig(), hardware=call.hardware)
    compared = plan(inputs)
    alone = plan(replace(inputs, targets=call.head_only, head_only=True))
    if isinstance(compared, Refusal):
        return compared
    if isinstance(alone, Refusal):
        return alone
    place = {name: at for at, name in enumerate(call.resolved)}
    leases = sorted(compared.leases + alone.leases, key=lambda lease: place[lease.benchmark])
    if len(leases) > MOST_LEASES:
        return Refusal(
            code="too_many_leases",
            sentence=f"This would take {len(leases)} machines; one request may take {MOST_LEASES}.",
            hint="Name fewer benchmarks, or shorter lists in `on=`, `scenario=` and `init=`.",
        )
    planned = Plan(targets=call.resolved, leases=tuple(leases))
    return over_budget(planned, call) or planned
