"""The one loader of templates: every word and every file that is filled in. Knows nothing of the bot."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

import jinja2

Finalize = Callable[[object], object]


def load(kind: str, name: str, *, finalize: Finalize | None = None) -> jinja2.Template:
    """The template `<kind>/<name>`, for example `load("comments", "results.md")`.

    A name that is used but not given is an error. `.html` templates escape what is put into them; for any other
    suffix `finalize` is asked what each value looks like in the text (and so escapes it).

    Raises: jinja2.TemplateNotFound
    """
    return _environment(finalize).get_template(f"{kind}/{name}")


def read_text(kind: str, name: str) -> str:
    """The text of a file as it stands, nothing filled in."""
    return files(__name__).joinpath(kind, name).read_text(encoding="utf-8")


@cache
def _environment(finalize: Finalize | None) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _source(path: str) -> str | None:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return None
    found = files(__name__).joinpath(*parts)
    return found.read_text(encoding="utf-8") if found.is_file() else None
