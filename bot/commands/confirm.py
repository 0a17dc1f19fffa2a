"""`/benchmark confirm [targets]`: let a request begin that waits because of what it may cost."""

from fnmatch import fnmatchcase

from bot.commands.desk import Desk, Outcome
from bot.core.budget import usd
from bot.core.grammar import Spec
from bot.core.money import total_usd
from bot.core.nouns import Call, Refusal
from bot.core.wording import code
from bot.store.codec import load
from bot.store.facts import confirm_requests, requests_of
from bot.store.tables import Request

SPEC = Spec(
    verb="confirm",
    summary="start what waits because of its cost",
    usage="confirm [targets]",
    examples=("confirm", "confirm resnet50"),
    right="requester",
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """Give the word for the one request that waits, or for those that run one of the named benchmarks."""
    sender, words = call.sender, call.command.targets
    async with desk.database.read() as tx:
        all_of_pull = await requests_of(tx, call.pull.repository_id, call.pull.number)
    waiting = [request for request in all_of_pull if request.state == "waiting" and request.want != "cancel"]
    mine = [r for r in waiting if sender.may_write or (sender.may_run and r.requester_id == sender.id)]
    chosen = [r for r in mine if not words or _names(r, words)]
    # money is spent only by who says clearly on what
    if not chosen or (len(chosen) > 1 and not words):
        return Outcome(refusal=_refusal(waiting, mine, chosen, desk.prefix))
    named = ", ".join(code(request.command) for request in chosen)
    most = usd(total_usd(request.estimate_usd for request in chosen))
    given = confirm_requests(sender.login, [request.id for request in chosen])
    return Outcome(text=f"Starting {named}, as confirmed: up to {most}.", writes=(given,))


def _refusal(waiting: list[Request], mine: list[Request], chosen: list[Request], prefix: str) -> Refusal:
    if len(chosen) > 1:
        named = ", ".join(f"{code(request.command)} (up to {usd(request.estimate_usd)})" for request in chosen)
        return Refusal(
            code="which_one",
            sentence=f"Several requests wait here: {named}.",
            hint=f"Name the benchmark, or type `{prefix} confirm all`.",
        )
    if waiting and not mine:
        return Refusal(
            code="not_yours",
            sentence="What waits here was asked for by somebody else.",
            hint="Confirming it needs write right.",
        )
    sentence = "Nothing like that waits here." if mine else "Nothing here waits to be confirmed."
    return Refusal(code="nothing_to_confirm", sentence=sentence, hint=f"`{prefix} status` shows what there is.")


def _names(request: Request, words: tuple[str, ...]) -> bool:
    resolved = load(Call, request.call).resolved
    return "all" in words or any(fnmatchcase(name, word) for name in resolved for word in words)
