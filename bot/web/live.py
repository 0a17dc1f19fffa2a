"""What pages ask for while they are open: the log as text from an offset on, and everything that is new as it comes."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from aiohttp import web

from bot.measure.curves import downsample
from bot.measure.reading import Curve
from bot.web.access import run_of
from bot.web.keys import SERVICES
from bot.web.watching import ENDED, Curves, TooManyError, Watch, Watches, masked_log
from runners.protocol import LOG_FILE

WATCHES = web.AppKey("watches", Watches)
MOST_POINTS = 400
MOST_CURVES = 60
_PIECE = 256 * 1024
_SILENCE_S = 15.0
# the browser opens the stream again, and is asked again who it is
_LIFETIME_S = 600.0


def add_routes(app: web.Application) -> None:
    """Below the page of a run."""
    app.router.add_get("/runs/{run}/log", log)
    app.router.add_get("/runs/{run}/events", events)
    app.cleanup_ctx.append(_watches)
    app.on_shutdown.append(_end)


async def _watches(app: web.Application) -> AsyncIterator[None]:
    app[WATCHES] = Watches(app[SERVICES])
    yield


async def _end(app: web.Application) -> None:
    await app[WATCHES].close()


async def log(request: web.Request) -> web.Response:
    """Text of the log from byte `offset` on, without secrets; X-Offset says where to go on, X-State how the run is."""
    run = await run_of(request)
    folder = await request.app[SERVICES].logs_of(run.id)
    shown = await asyncio.to_thread(masked_log, folder / LOG_FILE, ended=run.state in ENDED)
    offset = _offset(request.query.get("offset", "0"))
    headers = {"X-Offset": str(max(offset, len(shown))), "X-State": run.state, "Cache-Control": "no-store"}
    return web.Response(body=shown[offset:], headers=headers, content_type="text/plain", charset="utf-8")


async def events(request: web.Request) -> web.StreamResponse:
    """Server-sent events until the run has ended: `log` {offset, text}, `curves` [{run, tag, points, anew}], `state`
    {state} and `end`.

    The id of each event is how far the log has been told, so that a stream that was cut goes on there. `points` are
    [step, value] with null for what is no finite number; `anew` says that they replace what was told of the curve.
    """
    run = await run_of(request)
    told = _Told(_offset(request.headers.get("Last-Event-ID", request.query.get("offset", "0"))))
    response = web.StreamResponse(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
    response.content_type = "text/event-stream"
    try:
        async with request.app[WATCHES].of(run) as watch:
            await response.prepare(request)
            await _stream(response, watch, told)
    except TooManyError:
        raise web.HTTPServiceUnavailable(
            text="Too many runs are being watched now. Try again in a minute.", headers={"Retry-After": "60"}
        ) from None
    except (ConnectionResetError, ConnectionError):
        # the page was closed
        pass
    return response


async def _stream(response: web.StreamResponse, watch: Watch, told: "_Told") -> None:
    until = asyncio.get_running_loop().time() + _LIFETIME_S
    await response.write(b"retry: 2000\n\n")
    while asyncio.get_running_loop().time() < until:
        version, ended = watch.version, watch.ended
        found = list(told.news(watch))
        for name, data in found:
            await response.write(f"id: {told.offset}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())
        if found:
            continue
        if ended:
            if watch.state in ENDED:
                await response.write(b"event: end\ndata: {}\n\n")
            return
        await watch.after(version, _SILENCE_S)
        if watch.version == version:
            await response.write(b": nothing new\n\n")


@dataclass(slots=True)
class _Told:
    """What one viewer knows: bytes of the log, points of each curve, the state."""

    offset: int
    state: str = ""
    curves: dict[tuple[str, str], "_Known"] = field(default_factory=dict)

    def news(self, watch: Watch) -> Iterator[tuple[str, Any]]:
        """Names and data of the events that bring the viewer up to date; the log comes in pieces."""
        if watch.state != self.state:
            self.state = watch.state
            yield "state", {"state": watch.state}
        end = _whole(watch.log, min(len(watch.log), self.offset + _PIECE))
        if end > self.offset:
            text = watch.log[self.offset : end].decode("utf-8", "replace")
            self.offset = end
            yield "log", {"offset": end, "text": text}
        curves = list(self._curves(watch.curves))
        if curves:
            yield "curves", curves

    def _curves(self, curves: Curves) -> Iterator[dict[str, Any]]:
        for (run, tag), curve in list(curves.items())[:MOST_CURVES]:
            known = self.curves.setdefault((run, tag), _Known())
            points, anew = known.take(curve)
            if points or anew:
                yield {"run": run, "tag": tag, "points": points, "anew": anew}


@dataclass(slots=True)
class _Known:
    """How much of one curve a viewer has, and how many points since it was last thinned."""

    curve: Curve | None = None
    added: int = 0

    def take(self, curve: Curve) -> tuple[list[list[float | int | None]], bool]:
        """Points to be added, or to replace the others where those have changed or became too many."""
        before, self.curve = self.curve, curve
        if before is curve:
            return [], False
        had = 0 if before is None else len(before)
        goes_on = before is not None and _begins_with(curve, before)
        if goes_on and self.added + len(curve) - had <= MOST_POINTS:
            self.added += len(curve) - had
            return _points(curve, had), False
        thin = downsample(curve, MOST_POINTS)
        self.added = 0
        return _points(thin, 0), True


def _begins_with(curve: Curve, before: Curve) -> bool:
    """Whether points were only added; a training that was resumed drops some."""
    last = len(before) - 1
    if len(curve) <= last:
        return False
    ends = zip((curve.steps, curve.wall_times), (before.steps, before.wall_times), strict=True)
    # wall times that are not known are NaN
    return last < 0 or all(np.array_equal(now[last], then[last], equal_nan=True) for now, then in ends)


def _points(curve: Curve, start: int) -> list[list[float | int | None]]:
    return [
        [int(step), float(value) if math.isfinite(value) else None]
        for step, value in zip(curve.steps[start:], curve.values[start:], strict=True)
    ]


def _whole(text: bytearray, end: int) -> int:
    """The last place up to `end` that is not within a character."""
    while 0 < end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _offset(text: str) -> int:
    try:
        return max(0, int(text))
    except ValueError:
        raise web.HTTPBadRequest(text="offset is a number of bytes") from None
