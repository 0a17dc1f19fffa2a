"""One call of TensorBoard's application: its environment, its answer, and what may leave this house."""

import traceback
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any

from werkzeug.wrappers import Response

from bot.web.tensorboard import provider, stock
from bot.web.tensorboard.calls import Answer, Call
from bot.web.tensorboard.contents import RunContents

PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline' data:; "
    "img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
DATA_POLICY = "sandbox; default-src 'none'"
KEPT = ("Content-Type", "Content-Encoding", "Content-Disposition", "Cache-Control", "Expires")


@cache
def _application() -> stock.Wsgi:
    return stock.build()


def answer(call: Call, shown: Mapping[str, RunContents]) -> Answer:
    """Run the application over the runs that this call may see. Blocks; runs in a thread."""
    kept = provider.SHOWN.set(shown)
    try:
        response = Response.from_app(_application(), _environment(call), buffered=True)
        body = response.get_data()
    except Exception as error:
        if any(frame.f_globals["__name__"] == provider.__name__ for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise
        # TensorBoard does not check what it is sent
        return Answer(400, _safe({"Content-Type": "text/plain; charset=utf-8"}, call), b"This cannot be answered.")
    finally:
        provider.SHOWN.reset(kept)
    headers = {name: response.headers[name] for name in KEPT if name in response.headers}
    if "Location" in response.headers:
        target = response.headers["Location"]
        headers["Location"] = f"{call.root}{target}" if target.startswith("/") else target
    return Answer(response.status_code, _safe(headers, call), body)


def _safe(headers: dict[str, str], call: Call) -> dict[str, str]:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = DATA_POLICY if call.wants_data else PAGE_POLICY
    if call.wants_data:
        headers["Cache-Control"] = "no-store"
    return headers


def _environment(call: Call) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": call.method,
        "SCRIPT_NAME": _as_wsgi(call.root),
        "PATH_INFO": _as_wsgi(call.path),
        "QUERY_STRING": call.query,
        "CONTENT_TYPE": call.content_type,
        "CONTENT_LENGTH": str(len(call.body)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_ACCEPT_ENCODING": call.accept_encoding,
        "HTTP_TENSORBOARD_EXPERIMENT_ID": call.experiment,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(call.body),
        "wsgi.errors": BytesIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def _as_wsgi(text: str) -> str:
    return text.encode().decode("latin-1")
