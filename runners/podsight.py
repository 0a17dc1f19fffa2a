"""What is seen of a machine of Kubernetes. Pure: the API's objects in, no calls."""

from datetime import datetime

from runners.pods import INDEX_ANNOTATION, UNSCHEDULABLE_S, Json
from runners.spec import Sighting, host_number

# a Job stands in its queue from its first moment on; one that is suspended later has been running
_QUEUED_AT_ONCE_S = 60.0
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


def order_of(thing: Json) -> str:
    """The name of the order that a Job or a pod belongs to."""
    return str(thing["metadata"]["labels"].get("benchbot-machine", ""))


def machines_of(job: Json | None, pods: list[Json]) -> list[str]:
    """The machines of a Job and its pods, one for each host. There is a Job or a pod."""
    name = order_of(job or pods[0])
    if job is not None:
        hosts = job["spec"].get("completions") or 1
        return [f"{name}-{host}" for host in range(hosts)] if hosts > 1 else [name]
    found = [_index(pod) for pod in pods]
    return sorted(name if index is None else f"{name}-{index}" for index in found)


def pods_of(machine: str, pods: list[Json]) -> list[Json]:
    """Those of one host."""
    number = host_number(machine)
    return pods if number is None else [pod for pod in pods if _index(pod) == str(number)]


def _index(pod: Json) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(INDEX_ANNOTATION)
    return found


def containers_of(pod: Json) -> list[Json]:
    """The states of its containers; there are none before it has a node."""
    return list(pod.get("status", {}).get("containerStatuses") or [])


def sighting_of(name: str, job: Json | None, pods: list[Json], events: list[Json], now: float) -> Sighting:
    """What a Job, the pods of one of its hosts and its events say together. There is a Job or a pod."""
    first = job or pods[0]
    meta = first["metadata"]
    state, code, evidence = _judged(job, pods, events, now)
    deadline = meta["labels"].get("benchbot-deadline", "")
    return Sighting(
        name=name,
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
        patience_s = float(job["metadata"].get("annotations", {}).get("benchbot-patience-s", UNSCHEDULABLE_S))
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
