"""Whether the frameworks of a side see the machine's devices. One that does not would train on the CPU and say nothing.

`ASK` is run by a side's own Python, so it may import nothing of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.agent.work import DeviceWork

PATIENCE_S = 600.0
ASK = """
import importlib.util, json, sys

def torch_sees():
    import torch
    kind = sys.argv[1]
    if kind == "xpu":
        return {"built": hasattr(torch, "xpu") and torch.version.xpu is not None, "count": torch.xpu.device_count()}
    built = torch.version.hip if kind == "rocm" else torch.version.cuda
    return {"built": built is not None, "count": torch.cuda.device_count() if torch.cuda.is_available() else 0}

def jax_sees():
    import jax
    wanted = {"cuda": "gpu", "rocm": "gpu"}.get(sys.argv[1], sys.argv[1])
    platform = jax.default_backend()
    return {"built": True, "count": jax.local_device_count() if platform == wanted else 0, "said": platform}

found = {}
for name, sees in (("torch", torch_sees), ("jax", jax_sees)):
    # on a TPU plain torch is used beside torch_xla, whose devices jax sees as well
    if importlib.util.find_spec(name) and not (name == "torch" and sys.argv[1] == "tpu"):
        try:
            found[name] = sees()
        except Exception as error:
            found[name] = {"built": True, "count": 0, "said": f"{type(error).__name__}: {error}"}
print("\\n" + json.dumps(found))
"""


@dataclass(frozen=True)
class Blind:
    """A framework that does not see the devices; `unhealthy`: another machine might be better, else the code is why."""

    sentence: str
    unhealthy: bool


def judge(said: bytes, devices: DeviceWork) -> Blind | None:
    """What the answer to `ASK` means. No framework that we know is no fault, and neither is no answer."""
    try:
        found: Mapping[str, Mapping[str, Any]] = json.loads(said.decode("utf-8", "replace").splitlines()[-1])
    except (ValueError, IndexError):
        return None
    for name, sees in sorted(found.items()):
        if not sees["built"]:
            return Blind(f"{name} is installed without support for {devices.kind}: it would train on the CPU", False)
        if sees["count"] < devices.count:
            more = f" ({str(sees['said'])[:200]})" if sees.get("said") else ""
            return Blind(f"{name} sees {sees['count']} of {devices.count} {devices.kind} devices{more}", True)
    return None
