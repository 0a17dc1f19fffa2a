"""Pods of a Kubernetes cluster, such as GKE, through kubernetes_asyncio.

A machine is a Job with one pod, named after the lease, so that ordering it twice makes one. Several hosts are one
Indexed Job, ordered and deleted with the first of them. The token lies in a Secret that the Job owns. The Job ends
itself at its deadline and is removed some time after its end, whatever happens to the bot. Its pod has no token of the
cluster, and a network policy keeps it from the node's metadata server.

Options of `[backends.kubernetes]`: `kubeconfig` and `context` (without the first: the account of the pod that the bot
runs in), `namespace`.
Options of `[hardware.NAME]`, or there for all: `image`; `gpu` (the value of GKE's label) with `count`, or `tpu` with
`topology`, or `count` alone; `node_selector` (a list of "label=value"); `provisioning` (standard, spot or flex-start,
in order of preference); `queue` (a LocalQueue of Kueue); `cpu`, `memory`; `service_account_name`; `base_environment`
(where Python's packages lie in the image, such as /usr/local); `patience_s` (600: how long no node may be found).
"""

import asyncio
import importlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from runners.backends.base import Backend, BackendError, BackendSettings, Finding, finding_of
from runners.checks import kubernetes as checks
from runners.pods import (
    PROVISIONING,
    Json,
    job_of,
    meeting_of,
    needs_of,
    policy_of,
    secret_of,
    words_of,
)
from runners.podsight import containers_of, machines_of, order_of, pods_of, sighting_of
from runners.spec import MachineOrder, Offer, Sighting, host_number, order_name

_LAST_WORDS = 4000
_PATIENCE_S = 60.0
_ADVICE = "Try the same way in: kubectl --kubeconfig FILE get pods -n NAMESPACE, with what [backends.kubernetes] says."
# credentials of a kubeconfig are short-lived
_CREDENTIALS_KEPT_S = 300.0


class ClusterAwayError(OSError):
    """The cluster cannot be reached or asks to come again later; the bot does."""


class KubernetesBackend(Backend):
    """Jobs in one namespace."""

    name = "kubernetes"
    billed = False

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        self._configuration: Any = None
        self._read_at = 0.0

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """One for each kind of provisioning."""
        merged, namespace = {**self.settings.options, **options}, self._namespace()
        needs = needs_of(merged)
        kinds = words_of(merged.get("provisioning", "standard"))
        for kind in kinds:
            if kind not in PROVISIONING:
                raise BackendError("config", f"provisioning is {', '.join(PROVISIONING)}, not {kind}.")
        return tuple(
            Offer(
                backend=self.name,
                zone=namespace,
                machine_type=needs.told,
                provisioning=kind,
                scopes=(namespace,),
                device=needs.device,
                devices=needs.count,
                one_order=needs.hosts > 1,
            )
            for kind in kinds
        )

    async def create(self, order: MachineOrder) -> None:
        """The network policy if it is not there yet, then the Job, then the token that its pods wait for."""
        if order.member:
            return
        options, name = {**self.settings.options, **order.options}, order_name(order.name)
        job = job_of(order, options, self.settings.clock())
        async with self._cluster(order.offer.zone) as cluster:
            await cluster.add("NetworkingV1Api", "network_policy", policy_of(order.deployment))
            made = await cluster.add("BatchV1Api", "job", job) or await cluster.job(name)
            if made is None or "deletionTimestamp" in made["metadata"]:
                raise ClusterAwayError(f"an earlier Job {name} is still being deleted")
            uid = made["metadata"]["uid"]
            if needs_of(options).hosts > 1:
                service, policy = meeting_of(order, uid)
                await cluster.add("CoreV1Api", "service", service)
                await cluster.add("NetworkingV1Api", "network_policy", policy)
            await cluster.add("CoreV1Api", "secret", secret_of(order, uid))

    async def observe(self, name: str, zone: str) -> Sighting:
        """What the Job, its pod and, while there is none, the Job's events say."""
        async with self._cluster(zone) as cluster:
            job, pods = await cluster.machine(name)
            if job is None and not pods:
                return Sighting(name=name, state="absent", zone=zone)
            said = [] if job is None or pods else await cluster.events(job)
        return sighting_of(name, job, pods, said, self.settings.clock())

    async def delete(self, name: str, zone: str) -> None:
        """The Job with all that it owns; pods that it has left behind, too."""
        if host_number(name):
            return
        job = order_name(name)
        async with self._cluster(zone) as cluster:
            try:
                await cluster.call("BatchV1Api", "delete_namespaced_job", job, zone, propagation_policy="Foreground")
            except _Refused as refused:
                if refused.status != 404:
                    raise
                mine = f"benchbot-machine={job}"
                await cluster.call("CoreV1Api", "delete_collection_namespaced_pod", zone, label_selector=mine)

    async def list_owned(self) -> tuple[Sighting, ...]:
        """By label, Jobs, and pods whose Job is gone."""
        mine = f"benchbot={self.settings.deployment}"
        async with self._cluster(self._namespace()) as cluster:
            jobs, pods = await cluster.jobs(mine), await cluster.pods(mine)
        found: dict[str, tuple[Json | None, list[Json]]] = {order_of(job): (job, []) for job in jobs}
        for pod in pods:
            found.setdefault(order_of(pod), (None, []))[1].append(pod)
        now = self.settings.clock()
        return tuple(
            sighting_of(name, job, pods_of(name, its), [], now)
            for job, its in found.values()
            for name in machines_of(job, its)
        )

    async def diagnose(self, name: str, zone: str) -> str:
        """The last events, the states of the container, and the end of the pod's log."""
        words: list[str] = []
        async with self._cluster(zone) as cluster:
            job, pods = await cluster.machine(name)
            for thing in (*([job] if job else []), *pods):
                events = await cluster.events(thing)
                words += [f"{event.get('reason', '')}: {event.get('message', '')}" for event in events[-10:]]
            for pod in pods:
                words += [
                    f"{key}: {told}" for each in containers_of(pod) for key, told in each.get("state", {}).items()
                ]
                try:
                    pod_name = pod["metadata"]["name"]
                    log = await cluster.call("CoreV1Api", "read_namespaced_pod_log", pod_name, zone, tail_lines=100)
                    words.append(str(log)[-_LAST_WORDS:])
                except _Refused as refused:
                    words.append(refused.sentence)
        return "\n".join(words)

    async def check(self, hardware: Mapping[str, Mapping[str, str]]) -> tuple[Finding, ...]:
        """Also rights, pod security, nodes and quotas, as far as the bot's account may see them."""
        found, offers = await self.check_offers(hardware)
        asked = []
        for name, offered in offers.items():
            options = {**self.settings.options, **hardware[name]}
            needs = needs_of(options)
            for offer in offered:
                selector = {**needs.selector, **PROVISIONING[offer.provisioning]}
                asked.append(checks.Asked(name, selector, needs, options))
        try:
            namespace = self._namespace()
            async with self._cluster(namespace) as cluster:
                reviewed = await asyncio.gather(*(cluster.allows(right) for right in checks.RIGHTS))
                found.append(checks.rights(namespace, dict(zip(checks.RIGHTS, reviewed, strict=True))))
                if any(reviewed):
                    found += await self._surroundings(cluster, asked)
        except (BackendError, OSError) as error:
            return (*found, finding_of("cluster", error, _ADVICE))
        return (*found, await self.check_machines())

    async def _surroundings(self, cluster: "_Cluster", asked: Sequence[checks.Asked]) -> list[Finding]:
        """What is not ours: the namespace, the nodes, and the quotas."""
        namespace = self._namespace()
        found: list[Finding] = []
        around = await cluster.look("read_namespace", namespace)
        if around is not None:
            found.append(checks.security(around))
        nodes = [await cluster.look("list_node", label_selector=one.labels) for one in asked]
        found += [checks.nodes(one, seen["items"]) for one, seen in zip(asked, nodes, strict=True) if seen is not None]
        quotas = await cluster.look("list_namespaced_resource_quota", namespace)
        if quotas is not None:
            found += checks.quotas(asked, quotas["items"])
        hidden = {"namespaces": around is None, "nodes": None in nodes, "resourcequotas": quotas is None}
        return found + checks.unseen(namespace, [name for name, is_hidden in hidden.items() if is_hidden])

    @asynccontextmanager
    async def _cluster(self, namespace: str) -> AsyncIterator["_Cluster"]:
        """A connection for a few calls; what the cluster refuses is told in our words."""
        client = await _library("client")
        configuration = await self._credentials(client)
        try:
            async with client.ApiClient(configuration) as connection:
                yield _Cluster(client, connection, namespace)
        except _Refused as refused:
            raise refused.told(namespace) from None
        except ClusterAwayError:
            raise
        except aiohttp.ClientConnectorCertificateError as error:
            raise BackendError("config", f"The cluster's certificate is not trusted: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterAwayError(f"the Kubernetes API cannot be reached: {error}") from error

    async def _credentials(self, client: Any) -> Any:
        """Where the cluster is and who we are there, read anew from time to time."""
        if self._configuration is not None and time.monotonic() < self._read_at + _CREDENTIALS_KEPT_S:
            return self._configuration
        config, fresh = await _library("config"), client.Configuration()
        path, context = self.settings.options.get("kubeconfig", ""), self.settings.options.get("context")
        try:
            if path:
                await config.load_kube_config(path, context, fresh, persist_config=False)
            else:
                config.load_incluster_config(fresh)
        except Exception as error:
            # the library raises whatever a broken file or a failed plug-in brings about
            where = f"The kubeconfig {path} cannot be used" if path else "Set `kubeconfig` in [backends.kubernetes]"
            raise BackendError("config", f"{where}: {error}") from error
        self._configuration, self._read_at = fresh, time.monotonic()
        return fresh

    def _namespace(self) -> str:
        namespace = self.settings.options.get("namespace", "")
        if not namespace:
            raise BackendError("config", "Set `namespace` in [backends.kubernetes].")
        return namespace


class _Cluster:
    """Calls within one namespace. The library tries nothing again: the bot does."""

    def __init__(self, client: Any, connection: Any, namespace: str) -> None:
        self._client, self._connection, self._namespace = client, connection, namespace

    async def add(self, api: str, noun: str, body: Json) -> Json | None:
        """Create an object; None when there is one of its name already."""
        try:
            made: Json = await self.call(api, f"create_namespaced_{noun}", self._namespace, body)
        except _Refused as refused:
            if refused.status != 409:
                raise
            return None
        return made

    async def job(self, name: str) -> Json | None:
        """The Job; None when it is not there."""
        try:
            found: Json = await self.call("BatchV1Api", "read_namespaced_job", name, self._namespace)
        except _Refused as refused:
            if refused.status != 404:
                raise
            return None
        return found

    async def machine(self, name: str) -> tuple[Json | None, list[Json]]:
        """The Job that a machine is of, and the pods of this machine."""
        job, pods = await self.job(order_name(name)), await self.pods(f"benchbot-machine={order_name(name)}")
        return job, pods_of(name, pods)

    async def jobs(self, labels: str) -> list[Json]:
        """Jobs by their labels."""
        found = await self.call("BatchV1Api", "list_namespaced_job", self._namespace, label_selector=labels)
        return list(found["items"])

    async def pods(self, labels: str) -> list[Json]:
        """Pods by their labels."""
        found = await self.call("CoreV1Api", "list_namespaced_pod", self._namespace, label_selector=labels)
        return list(found["items"])

    async def events(self, thing: Json) -> list[Json]:
        """What was told of a Job or a pod, oldest first."""
        about = f"involvedObject.uid={thing['metadata']['uid']}"
        found = await self.call("CoreV1Api", "list_namespaced_event", self._namespace, field_selector=about)
        return sorted(found["items"], key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))

    async def allows(self, right: tuple[str, str, str]) -> bool:
        """Whether we have a right in the namespace."""
        review = checks.review_of(self._namespace, right)
        answer = await self.call("AuthorizationV1Api", "create_self_subject_access_review", review)
        return bool(answer["status"]["allowed"])

    async def look(self, method: str, *words: str, **options: str) -> Json | None:
        """Something that we read only if we may; None when we may not."""
        try:
            found: Json = await self.call("CoreV1Api", method, *words, **options)
        except _Refused as refused:
            if refused.status != 403:
                raise
            return None
        return found

    async def call(self, api: str, method: str, *words: Any, **options: Any) -> Any:
        """One call; its answer as the API wrote it."""
        ask = getattr(getattr(self._client, api)(self._connection), method)
        try:
            answer = await ask(*words, **options, _request_timeout=_PATIENCE_S)
        except self._client.ApiException as error:
            raise _Refused(int(error.status or 0), _message(error)) from None
        return self._connection.sanitize_for_serialization(answer)


async def _library(part: str) -> Any:
    try:
        return await asyncio.to_thread(importlib.import_module, f"kubernetes_asyncio.{part}")
    except ImportError:
        raise BackendError("config", "kubernetes_asyncio is missing: pip install 'benchbot[kubernetes]'.") from None


class _Refused(Exception):
    """What the API answered: HTTP status and its sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence

    def told(self, namespace: str) -> BackendError | ClusterAwayError:
        """The error in our words."""
        if "exceeded quota" in self.sentence:
            return BackendError("quota", self.sentence, namespace)
        if self.status in (408, 409, 429) or self.status >= 500:
            return ClusterAwayError(f"the Kubernetes API asks to come again later: {self.sentence[:200]}")
        if self.status == 401:
            return BackendError("config", "The credentials for Kubernetes do not work.")
        return BackendError("config", f"Kubernetes refused: {self.sentence}")


def _message(error: Any) -> str:
    try:
        status = json.loads(error.body)
        return str(status["message"])
    except (ValueError, TypeError, KeyError):
        return str(error.reason)
