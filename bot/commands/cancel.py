"""`/benchmark cancel [targets]`: stop what is running or waiting on this pull request."""

from bot.core.grammar import Spec

SPEC = Spec(
    verb="cancel",
    summary="stop what is running or waiting on this pull request",
    usage="cancel [targets]",
    examples=("cancel", "cancel resnet50"),
    right="requester",
)
