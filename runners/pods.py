"""What a machine of Kubernetes is made of, and what is seen of it. Pure: the API's objects in and out, no calls."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runners.backends.base import BackendError
from runners.protocol import PREFIX
from runners.spec import MachineOrder, Sighting
from templates import read_text

Json = dict[str, Any]

_DEADLINE_GRACE_S = 900
_KEPT_S = 3600
_CODE_UID = 61200
_UNSCHEDULABLE_S = 600
# a Job stands in its queue from its first moment on; one that is suspended later has been running
_QUEUED_AT_ONCE_S = 60.0
PROVISIONING: Mapping[str, Mapping[str, str]] = {
    "standard": {},
    "spot": {"cloud.google.com/gke-spot": "true"},
    "flex-start": {"cloud.google.com/gke-queued": "true"},
}
_GPU, _TPU = "nvidia.com/gpu", "google.com/tpu"
_TOKEN_FOLDER = "/run/benchbot"
# what an agent that is root needs to run the code as another user, to end it, and to read and remove what it wrote
KEEPER = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")

_TAKEN = ("Evicted", "Preempted", "NodeLost", "NodeShutdown", "Terminated")
_NO_START = (
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
)
# exit statuses before the agent: of templates/machines/pod.py, and of a container that could not be started
_NO_AGENT = (78, 126, 127, 128)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod asks of its node; `told` names it in one word."""

    selector: Mapping[str, str]
    resource: str
    count: int
    told: str

    @property
    def device(self) -> str:
        """As frameworks call it; empty without one."""
        return {_GPU: "cuda", _TPU: "tpu"}.get(self.resource, "")


def needs_of(options: Mapping[str, str]) -> Needs:
    """From the operator's options. Raises BackendError."""
    gpu, tpu, topology = (options.get(name, "") for name in ("gpu", "tpu", "topology"))
    if not options.get("image"):
        raise BackendError("config", "Set `image` to one with python3, git, bash and the framework.")
    if gpu and tpu:
        raise BackendError("config", "Set `gpu` or `tpu`, not both.")
    if tpu and not re.fullmatch(r"\d+x\d+(x\d+)?", topology):
        raise BackendError("config", f"`tpu` needs a `topology` such as 2x4, not {topology or 'none'}.")
    chips = math.prod(int(side) for side in topology.split("x")) if tpu else 0
    count = options.get("count", str(chips) if tpu else "1" if gpu else "0")
    if not count.isdigit() or (tpu and int(count) != chips):
        raise BackendError("config", f"count is a whole number, for a TPU {chips} (one host), not {count}.")
    number("patience_s", options, _UNSCHEDULABLE_S)
    selector = dict(_pair(text) for text in words_of(options.get("node_selector", "")))
    if gpu:
        selector["cloud.google.com/gke-accelerator"] = gpu
    if tpu:
        selector |= {"cloud.google.com/gke-tpu-accelerator": tpu, "cloud.google.com/gke-tpu-topology": topology}
    resource = _TPU if tpu else _GPU if int(count) else ""
    told = "-".join((*selector.values(), *([f"x{count}"] if resource else []), options.get("queue", ""))).strip("-")
    return Needs(selector, resource, int(count), told or "cpu")


def number(name: str, options: Mapping[str, str], default: int) -> int:
    """A whole number of the options. Raises BackendError."""
    text = options.get(name, str(default))
    if not text.isdigit():
        raise BackendError("config", f"{name} is a whole number, not {text}.")
    return int(text)


def words_of(text: str) -> list[str]:
    """A list that came as one text."""
    return [word for word in re.split(r"[\s,]+", text) if word]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise BackendError("config", f"node_selector is a list of label=value, not {text}.")
    return key, value


# ---- what it is made of ---------------------------------------------------------------------------------------------


def job_of(order: MachineOrder, options: Mapping[str, str], now: float) -> Json:
    """The Job of one machine. It never runs a second pod, and a pod that is taken away is told from one that failed."""
    labels = {
        "benchbot": order.deployment,
        "benchbot-machine": order.name,
        "benchbot-lease": order.lease_id,
        "benchbot-deadline": str(int(order.deadline_at)),
    }
    queue = options.get("queue", "")
    lives_s = max(120, int(order.deadline_at - now) + _DEADLINE_GRACE_S)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": order.name,
            "labels": {**labels, **({"kueue.x-k8s.io/queue-name": queue} if queue else {})},
            "annotations": {"benchbot-patience-s": str(number("patience_s", options, _UNSCHEDULABLE_S))},
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": lives_s,
            "ttlSecondsAfterFinished": _KEPT_S,
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            **({"suspend": True} if queue else {}),
            "template": {"metadata": {"labels": labels}, "spec": _pod(order, options)},
        },
    }


def _pod(order: MachineOrder, options: Mapping[str, str]) -> Json:
    needs = needs_of(options)
    selector = {**needs.selector, **PROVISIONING[order.offer.provisioning]}
    # nodes of these kinds are tainted with the same words
    tainted = [*([needs.resource] if needs.resource else []), *PROVISIONING[order.offer.provisioning]]
    sizes = {name: options[name] for name in ("cpu", "memory") if options.get(name)}
    devices = {needs.resource: str(needs.count)} if needs.resource else {}
    account = options.get("service_account_name", "")
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"serviceAccountName": account} if account else {}),
        "nodeSelector": selector,
        "tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in tainted],
        "securityContext": {**_user(order.trusted), "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "agent",
                "image": options["image"],
                "command": ["python3", "-c", read_text("machines", "pod.py")],
                "args": _agent_words(order, options),
                "workingDir": "/work",
                "resources": {"requests": {**sizes, **devices}, "limits": {**sizes, **devices}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], **({} if order.trusted else {"add": list(KEEPER)})},
                },
                "volumeMounts": [
                    {"name": "work", "mountPath": "/work"},
                    {"name": "memory", "mountPath": "/dev/shm"},
                    {"name": "token", "mountPath": _TOKEN_FOLDER, "readOnly": True},
                ],
            }
        ],
        "volumes": [
            {"name": "work", "emptyDir": {}},
            # loaders of data need more than the 64 MB that a container has
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {
                "name": "token",
                "secret": {"secretName": secret_name(order), "defaultMode": 0o440 if order.trusted else 0o400},
            },
        ],
    }


def _user(trusted: bool) -> Json:
    """Trusted code and the agent are one user without rights. Else the agent is root with the least that it needs to
    run the code as a user of its own, from whom it keeps its token."""
    if trusted:
        return {"runAsNonRoot": True, "runAsUser": _CODE_UID, "runAsGroup": _CODE_UID, "fsGroup": _CODE_UID}
    return {"runAsUser": 0, "runAsGroup": 0}


def _agent_words(order: MachineOrder, options: Mapping[str, str]) -> list[str]:
    words = [f"{order.server_url}{PREFIX}/agent.pyz", "--server", order.server_url, "--lease", order.lease_id]
    words += ["--token-file", f"{_TOKEN_FOLDER}/token", "--folder", "lease", "--cache", "cache"]
    words += ["--deadline", str(int(order.deadline_at))]
    words += ["--member", str(order.member)]
    words += ["--trusted"] if order.trusted else ["--uid", str(_CODE_UID)]
    words += ["--base-environment", options["base_environment"]] if options.get("base_environment") else []
    return words


def secret_name(order: MachineOrder) -> str:
    """Another one for each attempt: the last one's may still be on its way out."""
    return f"{order.name}-{order.attempt}"


def secret_of(order: MachineOrder, job_uid: str) -> Json:
    """The agent's token, which goes with its Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": order.name, "uid": job_uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(order),
            "labels": {"benchbot": order.deployment, "benchbot-machine": order.name},
            "ownerReferences": [owner],
        },
        "immutable": True,
        "stringData": {"token": order.token},
    }


def policy_of(deployment: str) -> Json:
    """Nobody calls a machine; a machine calls everything but link-local addresses, where clouds hand out credentials.

    Name servers may be link-local. One policy serves all machines of a deployment.
    """
    open_v4 = {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}
    open_v6 = {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"]}}
    name_servers = {
        "to": [{"ipBlock": {"cidr": "169.254.0.0/16"}}],
        "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"benchbot-{deployment}", "labels": {"benchbot": deployment}},
        "spec": {
            "podSelector": {"matchLabels": {"benchbot": deployment}},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"to": [open_v4, open_v6, {"namespaceSelector": {}}]}, name_servers],
        },
    }


# ---- what is seen of it ---------------------------------------------------------------------------------------------


def machine_of(thing: Json) -> str:
    """The machine that a Job or a pod belongs to."""
    return str(thing["metadata"]["labels"].get("benchbot-machine", ""))


def containers_of(pod: Json) -> list[Json]:
    """The states of its containers; there are none before it has a node."""
    return list(pod.get("status", {}).get("containerStatuses") or [])


def sighting_of(job: Json | None, pods: list[Json], events: list[Json], now: float) -> Sighting:
    """What a Job, its pods and its events say together. There is a Job or a pod."""
    first = job or pods[0]
    meta = first["metadata"]
    state, code, evidence = _judged(job, pods, events, now)
    deadline = meta["labels"].get("benchbot-deadline", "")
    return Sighting(
        name=machine_of(first),
        state=state,
        zone=meta["namespace"],
        lease_id=meta["labels"].get("benchbot-lease", ""),
        deadline_at=float(deadline) if deadline.isdigit() else None,
        evidence=evidence,
        code=code,
        scope=meta["namespace"] if code == "quota" else "",
    )


def _judged(job: Json | None, pods: list[Json], events: list[Json], now: float) -> tuple[str, str, str]:
    """State, code and evidence."""
    if job is None or "deletionTimestamp" in job["metadata"]:
        return "stopped", "", "it is being deleted"
    pod = max(pods, key=lambda one: str(one["metadata"]["creationTimestamp"]), default=None)
    conditions = _conditions(job)
    end = conditions.get("Failed") or conditions.get("FailureTarget") or conditions.get("Complete")
    if end and end.get("reason") == "PodFailurePolicy":
        return "stopped", "preempted", _taken(pod) or str(end.get("message", ""))
    if pod and (ended := _ended(pod)):
        return ended
    if end:
        return "stopped", "", str(end.get("message", ""))
    if job["spec"].get("suspend"):
        since = conditions.get("Suspended", {}).get("lastTransitionTime", job["metadata"]["creationTimestamp"])
        if _seconds(since) - _seconds(job["metadata"]["creationTimestamp"]) > _QUEUED_AT_ONCE_S:
            return "stopped", "preempted", "the queue has taken back what it had given"
        return "waiting", "", ""
    if pod is None:
        return _refused(events)
    return _begun(job, pod, now)


def _refused(events: list[Json]) -> tuple[str, str, str]:
    """Why there is no pod yet: the Job's controller may not make one."""
    said = [str(event.get("message", "")) for event in events if event.get("reason") == "FailedCreate"]
    if not said:
        return "starting", "", ""
    if "exceeded quota" in said[-1]:
        return "stopped", "quota", said[-1]
    return ("stopped", "config", said[-1]) if "forbidden" in said[-1] else ("starting", "", said[-1])


def _begun(job: Json, pod: Json, now: float) -> tuple[str, str, str]:
    if pod["status"].get("phase") != "Pending":
        return "running", "", ""
    for waiting in (each.get("state", {}).get("waiting") or {} for each in containers_of(pod)):
        if waiting.get("reason") in _NO_START:
            return "stopped", "config", f"{waiting['reason']}: {waiting.get('message', '')}"
    unscheduled = _conditions(pod, "False").get("PodScheduled", {})
    if unscheduled.get("reason") == "Unschedulable":
        # one that stood in a queue began when it was let out of it
        began = job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"]
        patience_s = float(job["metadata"].get("annotations", {}).get("benchbot-patience-s", _UNSCHEDULABLE_S))
        told = str(unscheduled.get("message", ""))
        return ("stopped", "no_capacity", told) if now - _seconds(began) >= patience_s else ("starting", "", told)
    return "starting", "", ""


def _taken(pod: Json | None) -> str:
    """Why the cluster took the pod away; empty when it did not."""
    if pod is None:
        return ""
    status, condition = pod["status"], _conditions(pod).get("DisruptionTarget")
    if condition is None and status.get("reason") not in _TAKEN:
        return ""
    words = (status.get("reason"), status.get("message") or (condition or {}).get("message"))
    return ": ".join(str(word) for word in words if word) or "the cluster took the pod away"


def _ended(pod: Json) -> tuple[str, str, str] | None:
    """How the pod ended; None when it has not."""
    taken = _taken(pod)
    if taken:
        return "stopped", "preempted", taken
    if pod["status"].get("phase") not in ("Failed", "Succeeded"):
        return None
    for end in (each.get("state", {}).get("terminated") or {} for each in containers_of(pod)):
        if end.get("reason") == "OOMKilled":
            return "stopped", "", "OOMKilled: the pod needed more memory than its limit or its node has"
        if end.get("exitCode") in _NO_AGENT:
            return "stopped", "config", str(end.get("message") or end.get("reason") or "the agent did not start")
    # the log says more than the Job
    return "stopped", "", ""


def _conditions(thing: Json, wanted: str = "True") -> dict[str, Json]:
    found = thing.get("status", {}).get("conditions") or []
    return {condition["type"]: condition for condition in found if condition["status"] == wanted}


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
