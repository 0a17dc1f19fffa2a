"""What goes to TensorBoard's application and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to TensorBoard: `root` is the address of the application itself, `path` what follows it.

    Of the visitor's headers only these come along: no cookie, and no name of an experiment.
    """

    method: str
    root: str
    path: str
    query: str
    experiment: str
    accept_encoding: str = ""
    content_type: str = ""
    body: bytes = b""

    @property
    def wants_data(self) -> bool:
        """Whether this is about what runs wrote, and not a part of the pages themselves."""
        return self.path.startswith("/data/")


@dataclass(frozen=True, slots=True)
class Answer:
    """Ready to be sent, with the headers that keep a browser from running what runs wrote."""

    status: int
    headers: Mapping[str, str]
    body: bytes
