"""What a machine of Kubernetes is made of. Pure: the API's objects out, no calls."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.backends.base import BackendError
from runners.protocol import PREFIX
from runners.spec import MachineOrder, order_name
from templates import read_text

Json = dict[str, Any]

_DEADLINE_GRACE_S = 900
_KEPT_S = 3600
_CODE_UID = 61200
UNSCHEDULABLE_S = 600
PROVISIONING: Mapping[str, Mapping[str, str]] = {
    "standard": {},
    "spot": {"cloud.google.com/gke-spot": "true"},
    "flex-start": {"cloud.google.com/gke-queued": "true"},
}
_GPU, _TPU = "nvidia.com/gpu", "google.com/tpu"
_TOKEN_FOLDER = "/run/benchbot"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
# which of the hosts of a Job a pod is
_INDEX = {
    "name": "BENCHBOT_MEMBER",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX_ANNOTATION}']"}},
}
# what an agent that is root needs to run the code as another user, to end it, and to read and remove what it wrote
KEEPER = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod asks of its node, and how many pods there are of it; `told` names it in one word."""

    selector: Mapping[str, str]
    resource: str
    count: int
    hosts: int
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
    hosts = number("hosts", options, 1)
    chips = math.prod(int(side) for side in topology.split("x")) if tpu else 0
    count = options.get("count", str(chips // hosts) if tpu else "1" if gpu else "0")
    if not count.isdigit() or (tpu and int(count) * hosts != chips):
        told = f"{chips / hosts:g} (those of {topology} on each of the hosts = {hosts})"
        raise BackendError("config", f"count is a whole number, for this TPU {told}, not {count}.")
    number("patience_s", options, UNSCHEDULABLE_S)
    selector = dict(_pair(text) for text in words_of(options.get("node_selector", "")))
    if gpu:
        selector["cloud.google.com/gke-accelerator"] = gpu
    if tpu:
        selector |= {"cloud.google.com/gke-tpu-accelerator": tpu, "cloud.google.com/gke-tpu-topology": topology}
    resource = _TPU if tpu else _GPU if int(count) else ""
    told = "-".join((*selector.values(), *([f"x{count}"] if resource else []), options.get("queue", ""))).strip("-")
    return Needs(selector, resource, int(count), hosts, told or "cpu")


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
    """The Job of one machine, or an Indexed one of several hosts, with a pod for each.

    It never runs a second pod, and a pod that is taken away is told from one that failed; either ends the whole Job.
    """
    name, hosts = order_name(order.name), needs_of(options).hosts
    labels = {
        "benchbot": order.deployment,
        "benchbot-machine": name,
        "benchbot-lease": order.lease_id,
        "benchbot-deadline": str(int(order.deadline_at)),
    }
    queue = options.get("queue", "")
    lives_s = max(120, int(order.deadline_at - now) + _DEADLINE_GRACE_S)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {**labels, **({"kueue.x-k8s.io/queue-name": queue} if queue else {})},
            "annotations": {"benchbot-patience-s": str(number("patience_s", options, UNSCHEDULABLE_S))},
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": lives_s,
            "ttlSecondsAfterFinished": _KEPT_S,
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            **({"suspend": True} if queue else {}),
            **({"completionMode": "Indexed", "completions": hosts, "parallelism": hosts} if hosts > 1 else {}),
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
        # under this name hosts find each other, and GKE writes down for each TPU host who the others are
        **({"subdomain": order_name(order.name)} if needs.hosts > 1 else {}),
        "nodeSelector": selector,
        "tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in tainted],
        "securityContext": {**_user(order.trusted), "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "agent",
                "image": options["image"],
                "command": ["python3", "-c", read_text("machines", "pod.py")],
                "args": _agent_words(order, options, needs.hosts),
                **({"env": [_INDEX]} if needs.hosts > 1 else {}),
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


def _agent_words(order: MachineOrder, options: Mapping[str, str], hosts: int) -> list[str]:
    words = [f"{order.server_url}{PREFIX}/agent.pyz", "--server", order.server_url, "--lease", order.lease_id]
    words += ["--token-file", f"{_TOKEN_FOLDER}/token", "--folder", "lease", "--cache", "cache"]
    words += ["--deadline", str(int(order.deadline_at))]
    words += ["--member", f"$({_INDEX['name']})" if hosts > 1 else "0"]
    words += ["--trusted"] if order.trusted else ["--uid", str(_CODE_UID)]
    words += ["--base-environment", options["base_environment"]] if options.get("base_environment") else []
    return words


def secret_name(order: MachineOrder) -> str:
    """Another one for each attempt: the last one's may still be on its way out."""
    return f"{order_name(order.name)}-{order.attempt}"


def _owned(order: MachineOrder, name: str, job_uid: str) -> Json:
    """The metadata of what goes with its Job."""
    job = order_name(order.name)
    return {
        "name": name,
        "labels": {"benchbot": order.deployment, "benchbot-machine": job},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job_uid}],
    }


def secret_of(order: MachineOrder, job_uid: str) -> Json:
    """The agent's token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _owned(order, secret_name(order), job_uid),
        "immutable": True,
        "stringData": {"token": order.token},
    }


def meeting_of(order: MachineOrder, job_uid: str) -> tuple[Json, Json]:
    """A headless Service and a network policy, by which the hosts of one Job find and call each other."""
    name = order_name(order.name)
    us = {"benchbot-machine": name}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _owned(order, name, job_uid),
        # the hosts wait for each other, so nobody is ready before the others are known
        "spec": {"clusterIP": "None", "selector": us, "publishNotReadyAddresses": True},
    }
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _owned(order, name, job_uid),
        "spec": {
            "podSelector": {"matchLabels": us},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": us}}]}],
        },
    }
    return service, policy


def policy_of(deployment: str) -> Json:
    """Nobody calls a machine but its other hosts; it calls everything but link-local addresses, where clouds hand out
    credentials.

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
