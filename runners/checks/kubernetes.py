"""What a cluster's answers say about the pods that it would have to run. Pure: objects in, findings out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.backends.base import Finding
from runners.pods import Needs

Json = dict[str, Any]
# group, resource and verb: the Role of docs/backends/kubernetes.md, which a test keeps equal
RIGHTS = (
    *(("batch", "jobs", verb) for verb in ("create", "get", "list", "delete")),
    ("", "secrets", "create"),
    ("", "services", "create"),
    ("", "pods", "list"),
    ("", "pods", "deletecollection"),
    ("", "pods/log", "get"),
    ("", "events", "list"),
    ("networking.k8s.io", "networkpolicies", "create"),
)
_LEVEL = "pod-security.kubernetes.io/enforce"
_PAGE = "docs/backends/kubernetes.md"


@dataclass(frozen=True, slots=True)
class Asked:
    """One hardware and kind of provisioning: the labels of its nodes, and what a pod takes of them."""

    name: str
    selector: Mapping[str, str]
    needs: Needs
    options: Mapping[str, str]

    @property
    def labels(self) -> str:
        """As a label selector."""
        return ",".join(f"{key}={value}" for key, value in self.selector.items())


def review_of(namespace: str, right: tuple[str, str, str]) -> Json:
    """The question whether we have a right; the API answers it, and keeps nothing."""
    group, resource, verb = right
    name, _, part = resource.partition("/")
    about = {"namespace": namespace, "group": group, "resource": name, "verb": verb}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**about, **({"subresource": part} if part else {})}},
    }


def rights(namespace: str, given: Mapping[tuple[str, str, str], bool]) -> Finding:
    """Of the answers to all reviews."""
    missing = [f"{verb} {resource}" for (_, resource, verb), allowed in given.items() if not allowed]
    if not missing:
        return Finding(about="rights", level="ok", sentence=f"All that orders need in {namespace}.")
    if len(missing) == len(given):
        told = f"The bot's account may do nothing in the namespace {namespace}."
        advice = f"Is `namespace` right? If it is, apply the Role and the RoleBinding of {_PAGE}."
        return Finding(about="rights", level="fault", sentence=told, advice=advice)
    told = f"The bot's account may not do in {namespace}: {', '.join(missing)}."
    return Finding(about="rights", level="fault", sentence=told, advice=f"Apply the Role of {_PAGE} again.")


def security(namespace: Json) -> Finding:
    """The namespace's level of pod security."""
    name = namespace["metadata"]["name"]
    level = (namespace["metadata"].get("labels") or {}).get(_LEVEL, "")
    if level == "baseline":
        return Finding(about="pod security", level="ok", sentence="baseline: everybody's code may run.")
    if level == "restricted":
        told = "restricted: code of people with write right may run, strangers' is refused."
        return Finding(about="pod security", level="ok", sentence=told)
    told = f"The namespace {name} enforces {level or 'no level'}, so nothing there is kept from its nodes."
    advice = f"kubectl label --overwrite namespace {name} {_LEVEL}=baseline"
    return Finding(about="pod security", level="warning", sentence=told, advice=advice)


def nodes(asked: Asked, found: Sequence[Json]) -> Finding:
    """Whether one of the nodes with the labels can hold the pod's devices."""
    about, resource, count = f"nodes of {asked.name}", asked.needs.resource, asked.needs.count
    labels = asked.labels or "any labels"
    open_ones = [node for node in found if not node.get("spec", {}).get("unschedulable")]
    show = f"kubectl get nodes{f' -l {asked.labels}' if asked.labels else ''}"
    if not open_ones:
        told = f"No node with {labels} takes pods now."
        advice = f"That is well if the cluster makes such nodes by itself; else {show}, and mend the options."
        return Finding(about=about, level="warning", sentence=told, advice=advice)
    fit = [node for node in open_ones if not resource or _amount(node, resource) >= count]
    if not fit:
        told = f"{len(open_ones)} nodes have {labels}, and none has {count} of {resource}."
        advice = f"Set a smaller `count`, or see whether the device plugin runs: {show} -o yaml"
        return Finding(about=about, level="fault", sentence=told, advice=advice)
    told = f"{len(fit)} with {labels}{f' and {count} of {resource}' if resource else ''}."
    return Finding(about=about, level="ok", sentence=told)


def _amount(node: Json, resource: str) -> int:
    text = str(node.get("status", {}).get("allocatable", {}).get(resource, "0"))
    return int(text) if text.isdigit() else 0


def quotas(asked: Iterable[Asked], found: Sequence[Json]) -> list[Finding]:
    """Whether the namespace's ResourceQuotas leave room for one machine of each hardware."""
    said: list[Finding] = []
    for quota in found:
        status, name = quota.get("status", {}), quota["metadata"]["name"]
        hard, used = status.get("hard", {}), status.get("used", {})
        for one in asked:
            said += _sizes(name, hard, one)
            takes = {"pods": 1, "count/pods": 1, "count/jobs.batch": 1, "secrets": 1, "count/secrets": 1}
            takes |= {f"requests.{one.needs.resource}": one.needs.count} if one.needs.resource else {}
            for key, count in takes.items():
                limit, taken = str(hard.get(key, "")), str(used.get(key, "0"))
                if limit.isdigit() and taken.isdigit():
                    said += _room(name, key, count, (int(taken), int(limit)))
    if not said:
        told = "Every ResourceQuota has room for a machine." if found else "The namespace has no ResourceQuota."
        return [Finding(about="quota", level="ok", sentence=told)]
    return list(dict.fromkeys(said))


def _sizes(quota: str, hard: Mapping[str, str], asked: Asked) -> list[Finding]:
    """A quota of cpu or memory refuses pods that do not say how much they take."""
    counted = {key.rpartition(".")[2] for key in hard} & {"cpu", "memory"}
    unsaid = sorted(name for name in counted if not asked.options.get(name))
    if not unsaid:
        return []
    told = f"{quota} counts {' and '.join(unsaid)}, and {asked.name} does not say how much it takes: pods are refused."
    advice = f"Set {' and '.join(f'`{name}`' for name in unsaid)} in [hardware.{asked.name}]."
    return [Finding(about="quota", level="fault", sentence=told, advice=advice)]


def _room(quota: str, key: str, count: int, of: tuple[int, int]) -> list[Finding]:
    taken, limit = of
    advice = f"Raise it: kubectl edit resourcequota {quota}"
    if limit < count:
        told = f"{quota} allows {limit} of {key}, and a machine takes {count}."
        return [Finding(about="quota", level="fault", sentence=told, advice=advice)]
    if limit - taken < count:
        told = f"{taken} of {limit} of {key} in {quota} are in use: orders wait."
        return [Finding(about="quota", level="warning", sentence=told, advice=advice)]
    return []


def unseen(namespace: str, things: Sequence[str]) -> list[Finding]:
    """What the bot's account may not read, and needs only for this."""
    if not things:
        return []
    told = " and ".join(part for part in (", ".join(things[:-1]), things[-1]) if part)
    advice = f"Give it the second Role of {_PAGE}, or look yourself: kubectl -n {namespace} get resourcequotas"
    return [Finding(about="not seen", level="warning", sentence=f"It may not read {told}.", advice=advice)]
