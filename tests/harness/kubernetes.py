"""A Kubernetes API on loopback: Jobs and the pods that a controller makes of them, Secrets, events, network policies.

Every object that comes or goes is judged by Kubernetes' own schemas (strict); how things behave in time is our reading
of its documentation.
"""

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate.utils as judge
from aiohttp import web

from runners.backends.base import BackendSettings
from runners.backends.kubernetes import KubernetesBackend
from runners.spec import MachineOrder, Offer
from tests.harness.certificates import loopback

Json = dict[str, Any]
NAMESPACE = "bench"
IMAGE = "ghcr.io/acme/trainer:1"
VERSION = "1.37"
_GROUPS = {"jobs": "batch/v1", "networkpolicies": "networking.k8s.io/v1"}
_KINDS = {
    "jobs": "Job",
    "pods": "Pod",
    "secrets": "Secret",
    "services": "Service",
    "events": "Event",
    "networkpolicies": "NetworkPolicy",
}
# what may be read beside our namespace's own objects
_AROUND = ("namespaces", "nodes", "resourcequotas")
_VERBS = {
    "_post": "create",
    "_get": "get",
    "_list": "list",
    "_delete": "delete",
    "_delete_all": "deletecollection",
    "_log": "get",
}
_INDEX = "batch.kubernetes.io/job-completion-index"
_BASELINE = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "SYS_CHROOT", "MKNOD"}

_schema = judge.schema_contents


@cache
def _kept_schema(filename: str, version: str) -> Any:
    """The judge reads its megabyte of schemas anew for each object, and files errors under another name."""
    return _schema(filename.replace("/status-v1.json", "/status-meta-v1.json"), version)


judge.schema_contents = _kept_schema


@dataclass
class Faults:
    """What goes wrong. `refusals` answer orders of Jobs: a status and a sentence."""

    refusals: list[tuple[int, str]] = field(default_factory=list)
    no_pod: str = ""
    unschedulable: bool = False
    never_boots: bool = False
    lost_replies: int = 0
    failing_deletes: int = 0


class KubernetesApi:
    """One namespace. `clock` is the world's; pods boot `boot_s` after their Job and go `delete_s` after their deletion.

    `level` is the namespace's pod security, `queue_s` how long Kueue keeps a Job.
    """

    def __init__(
        self, clock: Callable[[], float], *, boot_s: float = 0.0, delete_s: float = 0.0, queue_s: float = 0.0
    ) -> None:
        self.clock, self.boot_s, self.delete_s, self.queue_s = clock, boot_s, delete_s, queue_s
        self.faults, self.level = Faults(), "baseline"
        # rights that the account does not have: "list pods", "list nodes" ...
        self.lacking: set[str] = set()
        self.nodes: list[Json] = [node_of("node-1", {"cloud.google.com/gke-accelerator": "nvidia-l4"}, gpus=1)]
        self.resource_quotas: list[Json] = []
        self.objects: dict[str, dict[str, Json]] = {plural: {} for plural in _KINDS}
        self.violations: list[str] = []
        self.made: list[str] = []
        # rights that were needed: group, resource, verb
        self.needed: set[tuple[str, str, str]] = set()
        self.logs: dict[str, str] = {}
        self.token = secrets.token_hex(8)
        self._numbers = iter(range(1, 1_000_000))
        self._runner: web.AppRunner | None = None
        self.url = ""

    # ---- the server -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen on a port of loopback."""
        app = web.Application(middlewares=[self._judged, self._known])
        app.router.add_get("/api/v1/namespaces/{namespace}/{plural:resourcequotas}", self._quotas)
        for base in ("/api/v1", "/apis/batch/v1", "/apis/networking.k8s.io/v1"):
            place = f"{base}/namespaces/{{namespace}}/{{plural}}"
            app.router.add_post(place, self._post)
            app.router.add_get(place, self._list)
            app.router.add_delete(place, self._delete_all)
            app.router.add_get(f"{place}/{{name}}", self._get)
            app.router.add_delete(f"{place}/{{name}}", self._delete)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}/log", self._log)
        app.router.add_post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._review)
        app.router.add_get("/api/v1/{plural:nodes}", self._nodes)
        app.router.add_get("/api/v1/{plural:namespaces}/{namespace}", self._namespace)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=loopback()[0]).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner:
            await self._runner.cleanup()

    @web.middleware
    async def _judged(self, request: web.Request, handler: Any) -> web.StreamResponse:
        raw = await request.read()
        if raw and request.method == "POST":
            said = violations_of(json.loads(raw))
            if said:
                self.violations += said
                return _status(422, "Invalid", said[0])
        response: web.StreamResponse = await handler(request)
        if isinstance(response, web.Response) and response.content_type == "application/json":
            self.violations += violations_of(json.loads(response.text or "{}"))
        return response

    @web.middleware
    async def _known(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized", "Unauthorized")
        plural, namespace = request.match_info.get("plural", "pods"), NAMESPACE
        if plural in _AROUND or request.path.endswith("/selfsubjectaccessreviews"):
            seen: web.StreamResponse = await handler(request)
            return seen
        group = "/api/v1" if plural not in _GROUPS else f"/apis/{_GROUPS[plural]}"
        if plural not in _KINDS or not request.path.startswith(f"{group}/namespaces/"):
            return _status(404, "NotFound", "the server could not find the requested resource")
        if request.match_info["namespace"] != namespace:
            said = (
                f'{plural} is forbidden: User "bot" cannot use it in the namespace "{request.match_info["namespace"]}"'
            )
            return _status(403, "Forbidden", said)
        right = _VERBS[request.match_info.handler.__name__]
        group = _GROUPS.get(plural, "").partition("/")[0]
        self.needed.add((group, "pods/log" if request.path.endswith("/log") else plural, right))
        self._move()
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _post(self, request: web.Request) -> web.Response:
        plural, body = request.match_info["plural"], await request.json()
        name = body["metadata"]["name"]
        if plural == "jobs" and self.faults.refusals:
            return _status(*_reasoned(self.faults.refusals.pop(0)))
        if name in self.objects[plural]:
            being = "object is being deleted: " if "deletionTimestamp" in self.objects[plural][name]["metadata"] else ""
            return _status(409, "AlreadyExists", f'{being}{plural} "{name}" already exists')
        made = self._add(plural, body)
        if plural == "jobs":
            self.made.append(name)
            made["status"] = {}
            if body["spec"].get("suspend"):
                made["status"]["conditions"] = [self._condition("Suspended", "True", "JobSuspended")]
            if self.faults.lost_replies > 0:
                self.faults.lost_replies -= 1
                assert request.transport
                request.transport.close()
        if plural == "secrets":
            texts = made.pop("stringData")
            made["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return web.json_response(made, status=201)

    async def _get(self, request: web.Request) -> web.Response:
        plural, name = request.match_info["plural"], request.match_info["name"]
        found = self.objects[plural].get(name)
        return web.json_response(found) if found else _status(404, "NotFound", f'{plural} "{name}" not found')

    async def _list(self, request: web.Request) -> web.Response:
        plural = request.match_info["plural"]
        items = list(self._selected(request, plural))
        kind, group = f"{_KINDS[plural]}List", _GROUPS.get(plural, "v1")
        return web.json_response({"kind": kind, "apiVersion": group, "metadata": {}, "items": items})

    async def _delete(self, request: web.Request) -> web.Response:
        plural, name = request.match_info["plural"], request.match_info["name"]
        found = self.objects[plural].get(name)
        if found is None:
            return _status(404, "NotFound", f'{plural} "{name}" not found')
        if self.faults.failing_deletes > 0:
            self.faults.failing_deletes -= 1
            return _status(503, "ServiceUnavailable", "etcdserver: request timed out")
        assert request.query["propagationPolicy"] == "Foreground"
        found["metadata"].setdefault("deletionTimestamp", self._stamp())
        found["metadata"]["finalizers"] = ["foregroundDeletion"]
        for pod in self._pods_of(found):
            pod["metadata"].setdefault("deletionTimestamp", self._stamp())
        return web.json_response(found)

    async def _delete_all(self, request: web.Request) -> web.Response:
        plural = request.match_info["plural"]
        items = list(self._selected(request, plural))
        for item in items:
            item["metadata"].setdefault("deletionTimestamp", self._stamp())
        kind, group = f"{_KINDS[plural]}List", _GROUPS.get(plural, "v1")
        return web.json_response({"kind": kind, "apiVersion": group, "metadata": {}, "items": items})

    async def _log(self, request: web.Request) -> web.Response:
        pod = self.objects["pods"].get(request.match_info["name"])
        if pod is None:
            return _status(404, "NotFound", f'pods "{request.match_info["name"]}" not found')
        if pod["status"]["phase"] == "Pending":
            return _status(400, "BadRequest", 'container "agent" in pod is waiting to start: ContainerCreating')
        return web.Response(text=self.logs.get(_machine(pod), "benchbot: agent started\n"))

    async def _review(self, request: web.Request) -> web.Response:
        """Whether the account has a right; kept nowhere."""
        body = await request.json()
        asked = body["spec"]["resourceAttributes"]
        name = "/".join(word for word in (asked["resource"], asked.get("subresource", "")) if word)
        allowed = asked["namespace"] == NAMESPACE and f"{asked['verb']} {name}" not in self.lacking
        return web.json_response({**body, "metadata": {}, "status": {"allowed": allowed}}, status=201)

    async def _nodes(self, request: web.Request) -> web.Response:
        wanted = [pair.split("=") for pair in request.query.get("labelSelector", "").split(",") if pair]
        found = [
            node for node in self.nodes if all(node["metadata"]["labels"].get(key) == value for key, value in wanted)
        ]
        return self._around("list nodes", {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": found})

    async def _namespace(self, request: web.Request) -> web.Response:
        labels = {"pod-security.kubernetes.io/enforce": self.level} if self.level else {}
        meta = {"name": request.match_info["namespace"], "labels": labels}
        return self._around("get namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": meta})

    async def _quotas(self, request: web.Request) -> web.Response:
        items = {"kind": "ResourceQuotaList", "apiVersion": "v1", "metadata": {}, "items": self.resource_quotas}
        return self._around("list resourcequotas", items)

    def _around(self, right: str, answer: Json) -> web.Response:
        if right in self.lacking:
            return _status(403, "Forbidden", f'{right.split()[1]} is forbidden: User "bot" cannot {right}')
        return web.json_response(answer)

    def _selected(self, request: web.Request, plural: str) -> Iterator[Json]:
        assert set(request.query) <= {"labelSelector", "fieldSelector"}, request.query_string
        label, _, value = request.query.get("labelSelector", "").partition("=")
        path, _, wanted = request.query.get("fieldSelector", "").partition("=")
        assert not path or path == "involvedObject.uid"
        for item in list(self.objects[plural].values()):
            if label and item["metadata"].get("labels", {}).get(label) != value:
                continue
            if not path or item["involvedObject"]["uid"] == wanted:
                yield item

    # ---- for stories ------------------------------------------------------------------------------------------------

    def backend(self, folder: Path, **options: str) -> KubernetesBackend:
        """Our backend before this cluster, with a kubeconfig that it accepts."""
        path = folder / "kubeconfig"
        user, cluster = {"token": self.token}, {"server": self.url, "certificate-authority": str(loopback()[1])}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "bot"}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "bot", "user": user}],
        }
        path.write_text(json.dumps(config))
        chosen = {"kubeconfig": str(path), "namespace": NAMESPACE, **options}
        return KubernetesBackend(BackendSettings(deployment="main", folder=folder, clock=self.clock, options=chosen))

    def orders(self, server_url: str) -> dict[str, MachineOrder]:
        """What each running pod knows: its words, and the Secret that is mounted."""
        self._move()
        found = {}
        for pod in self.objects["pods"].values():
            if pod["status"]["phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
                continue
            words = pod["spec"]["containers"][0]["args"]
            said = dict(zip(words[1::2], words[2::2], strict=False))
            assert said["--server"] == server_url
            member = _index(pod)
            name = _machine(pod) if member is None else f"{_machine(pod)}-{member}"
            if member is not None:
                (index,) = pod["spec"]["containers"][0]["env"]
                assert said["--member"] == f"$({index['name']})"
            found[name] = MachineOrder(
                name=name,
                member=int(member or 0),
                deployment=pod["metadata"]["labels"]["benchbot"],
                lease_id=said["--lease"],
                server_url=server_url,
                token=base64.b64decode(self._secret_of(pod)["data"]["token"]).decode(),
                deadline_at=float(said["--deadline"]),
                offer=Offer(backend="kubernetes", zone=NAMESPACE),
            )
        return found

    def pod(self, name: str, index: str | None = None) -> Json:
        """The one pod of a machine, or of one of its hosts."""
        self._move()
        (found,) = [pod for pod in self.objects["pods"].values() if (_machine(pod), _index(pod)) == (name, index)]
        return found

    def evict(self, name: str, *, node_gone: bool = False, index: str | None = None) -> None:
        """The cluster takes the pod away; with its node, the pod's object goes, too."""
        pod, job = self.pod(name, index), self.objects["jobs"][name]
        told = "The node was low on resource: ephemeral-storage."
        pod["status"] |= {"phase": "Failed", "reason": "Evicted", "message": told, "containerStatuses": []}
        pod["status"]["conditions"].append(self._condition("DisruptionTarget", "True", "TerminationByKubelet"))
        said = (
            f"Pod {NAMESPACE}/{pod['metadata']['name']} has condition DisruptionTarget matching FailJob rule at index 0"
        )
        assert "podFailurePolicy" in job["spec"]
        job["status"]["conditions"] = [self._condition("Failed", "True", "PodFailurePolicy", said)]
        if node_gone:
            del self.objects["pods"][pod["metadata"]["name"]]

    def end(self, name: str, exit_code: int, reason: str = "Error", message: str = "") -> None:
        """The pod's container ends."""
        pod, job = self.pod(name), self.objects["jobs"][name]
        ended = {"exitCode": exit_code, "reason": reason, "message": message}
        pod["status"] |= {"phase": "Failed" if exit_code else "Succeeded"}
        pod["status"]["containerStatuses"] = [_container(pod, {"terminated": ended})]
        kind, why = ("Failed", "BackoffLimitExceeded") if exit_code else ("Complete", "CompletionsReached")
        job["status"]["conditions"] = [self._condition(kind, "True", why, "Job has reached its end")]

    # ---- what happens by itself -------------------------------------------------------------------------------------

    def _move(self) -> None:
        now = self.clock()
        for job in list(self.objects["jobs"].values()):
            self._control(job, now)
        for pod in list(self.objects["pods"].values()):
            self._run(pod, now)

    def _control(self, job: Json, now: float) -> None:
        meta, spec, status = job["metadata"], job["spec"], job["status"]
        ended = [each for each in status.get("conditions", []) if each["type"] in ("Failed", "Complete")]
        deleted = "deletionTimestamp" in meta and not self._pods_of(job)
        if deleted or (ended and now >= _epoch(ended[0]["lastTransitionTime"]) + spec["ttlSecondsAfterFinished"]):
            self._remove(job)
        elif "deletionTimestamp" in meta or ended:
            return
        elif spec.get("suspend"):
            if now >= _epoch(meta["creationTimestamp"]) + self.queue_s:
                spec["suspend"] = False
                status["conditions"] = [self._condition("Suspended", "False", "JobResumed")]
        elif "startTime" in status and now >= _epoch(status["startTime"]) + spec["activeDeadlineSeconds"]:
            status["conditions"] = [self._condition("Failed", "True", "DeadlineExceeded", "Job was active too long")]
            for pod in self._pods_of(job):
                del self.objects["pods"][pod["metadata"]["name"]]
        elif not self._pods_of(job):
            status.setdefault("startTime", self._stamp())
            indexed = spec.get("completionMode") == "Indexed"
            for index in range(spec.get("completions", 1)):
                self._make_pod(job, {_INDEX: str(index)} if indexed else {})

    def _make_pod(self, job: Json, annotations: Mapping[str, str]) -> None:
        template, name = job["spec"]["template"], job["metadata"]["name"]
        wrong = _insecure(template["spec"], self.level)
        if wrong:
            wrong = f'pods "{name}-" is forbidden: violates PodSecurity "{self.level}:latest": {wrong}'
        if self.faults.no_pod or wrong:
            self._tell(job, "FailedCreate", f"Error creating: {self.faults.no_pod or wrong}")
            return
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{next(self._numbers):05d}",
                "labels": labels,
                "annotations": dict(annotations),
                "ownerReferences": [owner],
            },
            "spec": json.loads(json.dumps(template["spec"])),
        }
        self._add("pods", pod)["status"] = {"phase": "Pending", "conditions": []}

    def _run(self, pod: Json, now: float) -> None:
        meta, status = pod["metadata"], pod["status"]
        if "deletionTimestamp" in meta:
            if now >= _epoch(meta["deletionTimestamp"]) + self.delete_s:
                del self.objects["pods"][meta["name"]]
            return
        if status["phase"] != "Pending":
            return
        if self.faults.unschedulable:
            told = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
            status["conditions"] = [self._condition("PodScheduled", "False", "Unschedulable", told)]
            return
        status["conditions"] = [self._condition("PodScheduled", "True", "Scheduled")]
        if not self._secret_of(pod):
            return
        if pod["spec"]["containers"][0]["image"] != IMAGE:
            told = f'Back-off pulling image "{pod["spec"]["containers"][0]["image"]}"'
            state = {"waiting": {"reason": "ImagePullBackOff", "message": told}}
        elif now >= _epoch(meta["creationTimestamp"]) + self.boot_s and not self.faults.never_boots:
            state, status["phase"] = {"running": {"startedAt": self._stamp()}}, "Running"
        else:
            state = {"waiting": {"reason": "ContainerCreating"}}
        status["containerStatuses"] = [_container(pod, state)]

    def _remove(self, job: Json) -> None:
        """With all that it owns."""
        uid = job["metadata"]["uid"]
        del self.objects["jobs"][job["metadata"]["name"]]
        for plural in ("pods", "secrets", "services", "networkpolicies"):
            for name, thing in list(self.objects[plural].items()):
                if any(owner["uid"] == uid for owner in thing["metadata"].get("ownerReferences", [])):
                    del self.objects[plural][name]

    def _pods_of(self, job: Json) -> list[Json]:
        uid = job["metadata"]["uid"]
        return [pod for pod in self.objects["pods"].values() if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def _secret_of(self, pod: Json) -> Json:
        (name,) = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        return self.objects["secrets"].get(name, {})

    def _tell(self, thing: Json, reason: str, message: str) -> None:
        meta = thing["metadata"]
        told = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.{next(self._numbers)}"},
            "involvedObject": {"kind": thing["kind"], "name": meta["name"], "uid": meta["uid"], "namespace": NAMESPACE},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": self._stamp(),
            "lastTimestamp": self._stamp(),
        }
        self._add("events", told)

    def _add(self, plural: str, body: Json) -> Json:
        stamped = {"uid": f"uid-{next(self._numbers)}", "creationTimestamp": self._stamp(), "namespace": NAMESPACE}
        body["metadata"] |= stamped
        self.objects[plural][body["metadata"]["name"]] = body
        return body

    def _condition(self, kind: str, status: str, reason: str, message: str = "") -> Json:
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        return {**said, "lastTransitionTime": self._stamp()}

    def _stamp(self) -> str:
        return datetime.fromtimestamp(int(self.clock()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node_of(name: str, labels: Mapping[str, str], *, gpus: int) -> Json:
    """A node that takes pods."""
    has = {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}, "status": has}


def quota_of(name: str, **amounts: tuple[str, str]) -> Json:
    """A ResourceQuota with what it allows and what is used; `requests_gpu` is requests.nvidia.com/gpu."""
    named = {
        key.replace("requests_gpu", "requests.nvidia.com/gpu").replace("_", "."): of for key, of in amounts.items()
    }
    status = {
        "hard": {key: hard for key, (hard, _) in named.items()},
        "used": {key: used for key, (_, used) in named.items()},
    }
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "status": status}


def _machine(thing: Json) -> str:
    return str(thing["metadata"]["labels"]["benchbot-machine"])


def _index(pod: Json) -> str | None:
    found: str | None = pod["metadata"]["annotations"].get(_INDEX)
    return found


def _epoch(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _container(pod: Json, state: Json) -> Json:
    image = pod["spec"]["containers"][0]["image"]
    said = {"name": "agent", "image": image, "imageID": "", "ready": "running" in state, "restartCount": 0}
    return {**said, "state": state}


def _insecure(spec: Json, level: str) -> str:
    """What the namespace's pod security refuses."""
    mine, pods = spec["containers"][0]["securityContext"], spec["securityContext"]
    added = set(mine["capabilities"].get("add", []))
    if any(key in spec for key in ("hostNetwork", "hostPID", "hostIPC")) or added - _BASELINE or mine.get("privileged"):
        return "host namespaces, privileged or capabilities"
    if level == "restricted":
        if added or mine["capabilities"]["drop"] != ["ALL"]:
            return "unrestricted capabilities"
        if not pods.get("runAsNonRoot") or not pods.get("runAsUser"):
            return "runAsNonRoot != true"
        if mine["allowPrivilegeEscalation"] is not False or pods["seccompProfile"]["type"] != "RuntimeDefault":
            return "allowPrivilegeEscalation != false or seccompProfile"
    return ""


def violations_of(thing: Json) -> list[str]:
    """What Kubernetes' schemas say against an object; the items of a list are judged with it."""
    try:
        judge.validate(thing, VERSION, strict=True)
    except judge.ValidationError as error:
        return [f"{thing['kind']} {'/'.join(map(str, error.absolute_path))}: {error.message}"[:300]]
    return []


def _reasoned(refusal: tuple[int, str]) -> tuple[int, str, str]:
    status, sentence = refusal
    return status, {403: "Forbidden", 422: "Invalid", 429: "TooManyRequests"}.get(status, "InternalError"), sentence


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return web.json_response({**body, "message": message, "reason": reason, "code": code}, status=code)
