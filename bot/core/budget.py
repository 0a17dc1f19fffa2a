"""Whether a plan costs more than it may: the operator's limit for one request, or a smaller one that was typed."""

from bot.core.nouns import Call, Plan, Refusal
from bot.core.quantities import dollars
from bot.core.wording import code


def over_budget(plan: Plan, call: Call) -> Refusal | None:
    """Why the plan cannot be paid for, None when it can. A command may only lower the operator's limit."""
    typed = call.command.options.get("budget")
    asked = None if typed is None else dollars(str(typed))
    limit = call.budget_usd
    if asked is not None and limit is not None and asked > limit:
        return Refusal(
            code="budget",
            sentence=f"{code(f'budget={typed}')} is more than the {limit:.2f} USD that one request may cost here.",
            hint="A command may only lower it.",
            line=call.command.line,
        )
    limit = limit if asked is None else asked
    if limit is None or plan.estimate_usd <= limit:
        return None
    return Refusal(
        code="budget",
        sentence=f"This may cost up to {plan.estimate_usd:.2f} USD; one request may cost {limit:.2f} USD.",
        hint="Name fewer benchmarks, fewer `pairs=` or a shorter `timeout=`, or ask the operator for a larger budget.",
        line=call.command.line,
    )
