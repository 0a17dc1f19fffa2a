"""What the forms of a pull request's page do. Each act answers the place on the page where it shows."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.sandbox.bare import GitFailedError
from bot.sandbox.hub import Hub
from bot.sandbox.state import Account, Problem, Pull, Repository, comment_of, not_found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A form that somebody sent: what is in it, who acts, on which pull request."""

    hub: Hub
    repository: Repository
    pull: Pull
    who: Account
    form: Mapping[str, str]

    def text(self, name: str) -> str:
        """A field, empty when it was not sent."""
        return self.form.get(name, "")


async def perform(asked: Asked) -> str:
    """Do what the form asks for. Raises Problem where GitHub would refuse, and for a form that no page has."""
    act = _ACTS.get(asked.text("act"))
    if act is None:
        raise not_found()
    return await act(asked)


async def _comment(asked: Asked) -> str:
    made = asked.hub.acts.comment(asked.repository, asked.pull.number, asked.who, asked.text("body"))
    return f"issuecomment-{made.id}"


async def _edit(asked: Asked) -> str:
    wanted = asked.text("comment")
    pull, comment = comment_of(asked.repository, int(wanted) if wanted.isdecimal() and len(wanted) < 20 else 0)
    if pull is not asked.pull:
        raise not_found()
    asked.hub.acts.edit(asked.repository, pull, comment, asked.who, asked.text("body"))
    return f"issuecomment-{comment.id}"


async def _review(asked: Asked) -> str:
    number = asked.pull.number
    made = asked.hub.acts.review(asked.repository, number, asked.who, asked.text("event"), asked.text("body"))
    return f"pullrequestreview-{made.id}"


async def _close(asked: Asked) -> str:
    pull, who = asked.pull, asked.who
    event = asked.text("event")
    if event not in ("close", "merge", "reopen"):
        raise not_found()
    if event == "merge" and not asked.repository.allows(who, "write"):
        raise Problem(403, f"{who.login} may not merge this: merging needs the right to write.")
    if pull.author is not who and not asked.repository.allows(who, "triage"):
        raise Problem(403, f"{who.login} may not {event} this.")
    if event == "reopen":
        await asked.hub.acts.reopen(asked.repository, pull.number, who)
        return "state"
    if not pull.open:
        raise Problem(422, f"This pull request is {'merged' if pull.merged else 'closed'} already.")
    try:
        await asked.hub.acts.close(asked.repository, pull.number, who, merge=event == "merge")
    except GitFailedError:
        raise Problem(405, f"{pull.head_ref} cannot be merged: it conflicts with {pull.base_ref}.") from None
    return "state"


async def _press(asked: Asked) -> str:
    """`press` is the check run's id, a slash, and the button's identifier; without one it is "re-run"."""
    wanted, _, button = asked.text("press").partition("/")
    for check in asked.repository.checks:
        if str(check.id) == wanted:
            if button:
                asked.hub.acts.press(asked.repository, check, asked.who, button)
            else:
                asked.hub.acts.rerequest(asked.repository, check, asked.who)
            return "checks"
    raise not_found()


_ACTS: dict[str, Callable[[Asked], Awaitable[str]]] = {
    "comment": _comment,
    "edit": _edit,
    "review": _review,
    "close": _close,
    "press": _press,
}
