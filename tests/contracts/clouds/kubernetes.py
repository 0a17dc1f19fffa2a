"""Pods of a cluster."""

from typing import Any, ClassVar

from tests.contracts.clouds import NAME, Loopback, Refusal
from tests.harness.kubernetes import IMAGE, NAMESPACE, KubernetesApi

QUOTA = 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: 4, limited: 4'
NO_NODE = "Insufficient nvidia.com/gpu"


def _refusal(status: int, said: str, code: str, scope: str = "") -> Refusal:
    return Refusal((status, said), code, scope, said)


class Kubernetes(Loopback):
    """One GPU, for which a node must be found within five minutes."""

    name = "kubernetes"
    options: ClassVar = {"image": IMAGE, "gpu": "nvidia-l4", "patience_s": "300"}
    zone = NAMESPACE
    ends_itself = True
    last_words = "agent started"
    early = (
        _refusal(
            403, 'jobs.batch "x" is forbidden: exceeded quota: jobs, limited: count/jobs.batch=2', "quota", NAMESPACE
        ),
        _refusal(403, 'jobs.batch is forbidden: User "bot" cannot create resource "jobs"', "config"),
        _refusal(422, "Job.batch is invalid: spec.template.spec.containers[0].image", "config"),
    )
    late = (
        Refusal({"no_pod": QUOTA}, "quota", NAMESPACE, "exceeded quota"),
        Refusal({"unschedulable": True}, "no_capacity", "", NO_NODE),
    )
    late_s = 301.0
    busy = tuple((status, "too many requests, please try again later") for status in (429, 500, 503))

    def build(self) -> KubernetesApi:
        return KubernetesApi(self.clock)

    def made(self) -> int:
        return len(self.service.made)

    async def is_empty(self) -> bool:
        return {plural for plural, things in self.service.objects.items() if things} <= {"networkpolicies", "events"}

    def refuse(self, answer: Any) -> None:
        self.service.faults.refusals.append(answer)

    def accept(self) -> None:
        self.service.faults.refusals.clear()

    def refuse_late(self, answer: Any) -> None:
        vars(self.service.faults).update(answer)

    def preempt(self) -> None:
        self.service.evict(NAME)

    def disown(self) -> None:
        for thing in (self.service.objects["jobs"][NAME], self.service.pod(NAME)):
            thing["metadata"]["labels"]["benchbot"] = "other"

    def distrust(self) -> None:
        self.service.token = "another"
