"""What is particular to pods of a Kubernetes cluster; what every backend owes is in `test_backends`."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from runners.backends.base import BackendError
from runners.backends.kubernetes import ClusterAwayError, KubernetesBackend
from tests.contracts.clouds import NAME, first
from tests.harness.kubernetes import IMAGE, NAMESPACE, KubernetesApi, violations_of
from tests.harness.world import Clock

PAGE = (Path(__file__).parents[2] / "docs/backends/kubernetes.md").read_text()
L4 = {"image": IMAGE, "gpu": "nvidia-l4"}
PAIR = {**L4, "hosts": "2"}


@pytest.fixture
async def cloud() -> AsyncIterator[KubernetesApi]:
    api = KubernetesApi(Clock())
    await api.start()
    yield api
    await api.stop()
    assert api.violations == []


def later(cloud: KubernetesApi, seconds: float) -> None:
    cloud.clock.now += seconds  # type: ignore[attr-defined]


async def made(
    cloud: KubernetesApi, folder: Path, options: dict[str, str] = L4, **more: Any
) -> tuple[KubernetesBackend, dict[str, Any]]:
    """A backend that has ordered one machine, and what the Job asks of its pod."""
    backend = cloud.backend(folder)
    await backend.create(await first(backend, options, **more))
    spec: dict[str, Any] = cloud.objects["jobs"][NAME]["spec"]["template"]["spec"]
    return backend, spec


async def test_what_a_job_is_made_of(cloud: KubernetesApi, tmp_path: Path) -> None:
    """It ends itself, makes no second pod, has no token of the cluster, and keeps its own out of sight."""
    await made(cloud, tmp_path, {**L4, "provisioning": "spot", "cpu": "4", "memory": "16Gi", "node_selector": "a/b=c"})
    spec = cloud.objects["jobs"][NAME]["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (0, 4500, 3600)
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    assert pod["nodeSelector"] == {
        "a/b": "c",
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-spot": "true",
    }
    assert {each["key"] for each in pod["tolerations"]} == {"nvidia.com/gpu", "cloud.google.com/gke-spot"}
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    (secret,) = cloud.objects["secrets"].values()
    assert base64.b64decode(secret["data"]["token"]) == b"token-1"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == cloud.objects["jobs"][NAME]["metadata"]["uid"]
    assert "token-1" not in json.dumps([cloud.objects["jobs"], cloud.objects["pods"]])
    (policy,) = cloud.objects["networkpolicies"].values()
    assert policy["spec"]["egress"][0]["to"][0]["ipBlock"]["except"] == ["169.254.0.0/16"]


async def test_code_of_strangers_cannot_read_the_token(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Their code runs as a user of its own, below an agent that alone may read the mounted file."""
    _, pod = await made(cloud, tmp_path)
    mine, args = pod["containers"][0]["securityContext"], pod["containers"][0]["args"]
    assert pod["securityContext"]["runAsUser"] == 0
    assert "fsGroup" not in pod["securityContext"]
    assert mine["capabilities"]["drop"] == ["ALL"]
    assert "SETUID" in mine["capabilities"]["add"]
    assert mine["allowPrivilegeEscalation"] is False
    assert args[args.index("--uid") + 1] == "61200"
    assert "--trusted" not in args
    assert pod["volumes"][2]["secret"]["defaultMode"] == 0o400


async def test_a_restricted_namespace(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Trusted code fits into it; strangers' code is refused in the cluster's own words."""
    cloud.level = "restricted"
    backend, pod = await made(cloud, tmp_path, trusted=True)
    assert pod["securityContext"]["runAsUser"] == 61200
    assert (await backend.observe(NAME, NAMESPACE)).state == "running"
    await backend.delete(NAME, NAMESPACE)
    for _ in range(2):
        await backend.observe(NAME, NAMESPACE)
    await made(cloud, tmp_path)
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.code) == ("stopped", "config")
    assert 'violates PodSecurity "restricted' in seen.evidence


async def test_tpus(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The chips follow from the topology."""
    _, pod = await made(cloud, tmp_path, {"image": IMAGE, "tpu": "tpu-v5-lite-podslice", "topology": "2x4"})
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "8"}
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    assert pod["tolerations"][0]["key"] == "google.com/tpu"


async def test_offers_in_the_operators_order(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Spot before the full price, as it was asked for."""
    offers = await cloud.backend(tmp_path).offers({**L4, "provisioning": "spot, standard", "queue": "team"})
    assert [(offer.zone, offer.machine_type, offer.provisioning) for offer in offers] == [
        (NAMESPACE, "nvidia-l4-x1-team", "spot"),
        (NAMESPACE, "nvidia-l4-x1-team", "standard"),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpu": "nvidia-l4"}, "Set `image`"),
        ({**L4, "tpu": "tpu-v5-lite-podslice"}, "not both"),
        ({"image": IMAGE, "tpu": "tpu-v5-lite-podslice"}, "topology"),
        ({"image": IMAGE, "tpu": "tpu-v5-lite-podslice", "topology": "4x4", "count": "4"}, "for this TPU 16"),
        ({**L4, "count": "many"}, "not many"),
        ({**L4, "node_selector": "pool"}, "label=value"),
        ({**L4, "provisioning": "cheap"}, "not cheap"),
        ({**L4, "patience_s": "long"}, "patience_s"),
    ],
)
async def test_hardware_that_cannot_be_offered(
    cloud: KubernetesApi, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    """In words that say what to write."""
    with pytest.raises(BackendError) as refused:
        await cloud.backend(tmp_path).offers(options)
    assert refused.value.code == "config"
    assert said in refused.value.sentence


async def test_events_are_last_words(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Where no pod could be made, they are all there is."""
    cloud.faults.no_pod = 'pods "x" is forbidden: exceeded quota: gpus'
    backend, _ = await made(cloud, tmp_path)
    await backend.observe(NAME, NAMESPACE)
    assert "FailedCreate" in await backend.diagnose(NAME, NAMESPACE)


async def test_a_controller_with_a_passing_trouble(cloud: KubernetesApi, tmp_path: Path) -> None:
    """It tries again by itself."""
    cloud.faults.no_pod = "Internal error occurred: failed calling webhook"
    backend, _ = await made(cloud, tmp_path)
    assert (await backend.observe(NAME, NAMESPACE)).state == "starting"
    cloud.faults.no_pod = ""
    assert (await backend.observe(NAME, NAMESPACE)).state == "running"


async def test_a_job_in_a_queue(cloud: KubernetesApi, tmp_path: Path) -> None:
    """It waits for as long as the queue wants; the patience begins when it is let out."""
    cloud.queue_s, cloud.faults.unschedulable = 5000, True
    backend, _ = await made(cloud, tmp_path, {**L4, "queue": "team"})
    job = cloud.objects["jobs"][NAME]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    later(cloud, 4000)
    assert (await backend.observe(NAME, NAMESPACE)).state == "waiting"
    later(cloud, 1001)
    for _ in range(2):
        seen = await backend.observe(NAME, NAMESPACE)
    assert seen.state == "starting"
    cloud.faults.unschedulable = False
    assert (await backend.observe(NAME, NAMESPACE)).state == "running"


async def test_a_queue_takes_its_quota_back(cloud: KubernetesApi, tmp_path: Path) -> None:
    """A Job that is suspended when it has been running is not waiting: it would run a second time."""
    backend, _ = await made(cloud, tmp_path, {**L4, "queue": "team"})
    for _ in range(2):
        await backend.observe(NAME, NAMESPACE)
    later(cloud, 600)
    cloud.queue_s = 5000
    job = cloud.objects["jobs"][NAME]
    job["spec"]["suspend"] = True
    job["status"]["conditions"] = [cloud._condition("Suspended", "True", "JobSuspended")]
    cloud.objects["pods"].clear()
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.code) == ("stopped", "preempted")


@pytest.mark.parametrize("node_gone", [False, True])
async def test_what_is_said_of_an_eviction(cloud: KubernetesApi, tmp_path: Path, node_gone: bool) -> None:
    """The Job remembers it when the pod is gone with its node."""
    backend, _ = await made(cloud, tmp_path)
    cloud.evict(NAME, node_gone=node_gone)
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.code) == ("stopped", "preempted")
    assert ("DisruptionTarget" if node_gone else "low on resource") in seen.evidence


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ((137, "OOMKilled", ""), "", "more memory"),
        ((78, "Error", "The repository's code could reach the metadata server."), "config", "metadata server"),
        ((128, "StartError", 'exec: "python3": executable file not found'), "config", "python3"),
        ((3, "Error", ""), "", ""),
        ((0, "Completed", ""), "", ""),
    ],
)
async def test_how_a_pod_ends(
    cloud: KubernetesApi, tmp_path: Path, end: tuple[int, str, str], code: str, said: str
) -> None:
    """What is the operator's to mend is told apart from what the agent tells itself."""
    backend, _ = await made(cloud, tmp_path)
    cloud.end(NAME, *end)
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.code) == ("stopped", code)
    assert said in seen.evidence
    assert str(end[0]) in await backend.diagnose(NAME, NAMESPACE)


async def test_a_wrong_image(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The operator reads its name."""
    backend, _ = await made(cloud, tmp_path, {**L4, "image": "ghcr.io/acme/trainr:1"})
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.code) == ("stopped", "config")
    assert "ImagePullBackOff" in seen.evidence
    assert "acme/trainr:1" in seen.evidence
    assert "waiting to start" in await backend.diagnose(NAME, NAMESPACE)


async def test_an_order_while_its_name_is_being_deleted(cloud: KubernetesApi, tmp_path: Path) -> None:
    """It comes again later, and has a token of its own."""
    cloud.delete_s = 30
    backend, _ = await made(cloud, tmp_path)
    await backend.observe(NAME, NAMESPACE)
    await backend.delete(NAME, NAMESPACE)
    second = await first(backend, L4, attempt=2)
    with pytest.raises(ClusterAwayError, match="still being deleted"):
        await backend.create(second)
    later(cloud, 31)
    await backend.observe(NAME, NAMESPACE)
    await backend.create(second)
    assert (await backend.observe(NAME, NAMESPACE)).state == "running"


async def test_a_pod_that_its_job_has_left_behind(cloud: KubernetesApi, tmp_path: Path) -> None:
    """It is listed, it is not called absent, and it is deleted."""
    backend, _ = await made(cloud, tmp_path)
    await backend.observe(NAME, NAMESPACE)
    del cloud.objects["jobs"][NAME]
    assert [seen.name for seen in await backend.list_owned()] == [NAME]
    assert (await backend.observe(NAME, NAMESPACE)).state == "stopped"
    await backend.delete(NAME, NAMESPACE)
    assert (await backend.observe(NAME, NAMESPACE)).state == "absent"


async def test_the_rights_that_the_docs_give(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Every right that is used stands there, and no other one."""
    objects = list(YAML(typ="safe").load_all(PAGE.split("<<'END'\n")[1].split("END\n")[0]))
    assert [said for thing in objects for said in violations_of(thing)] == []
    (role,) = [thing for thing in objects if thing["kind"] == "Role"]
    given = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    backend, _ = await made(cloud, tmp_path, PAIR)
    for verb in (backend.observe, backend.diagnose, backend.delete, backend.observe, backend.observe, backend.delete):
        await verb(NAME, NAMESPACE)
    await backend.list_owned()
    assert cloud.needed == given


async def test_past_its_deadline(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The Job ends itself and says so, for as long as the cluster keeps it."""
    backend, _ = await made(cloud, tmp_path)
    await backend.observe(NAME, NAMESPACE)
    later(cloud, 4501)
    seen = await backend.observe(NAME, NAMESPACE)
    assert (seen.state, seen.evidence) == ("stopped", "Job was active too long")


async def test_a_namespace_without_rights(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The cluster's sentence says which right is missing."""
    with pytest.raises(BackendError, match='in the namespace "other"'):
        await cloud.backend(tmp_path, namespace="other").list_owned()


async def test_a_certificate_that_is_not_trusted(cloud: KubernetesApi, tmp_path: Path) -> None:
    """No second try makes it better."""
    backend = cloud.backend(tmp_path)
    kubeconfig = json.loads((tmp_path / "kubeconfig").read_text())
    del kubeconfig["clusters"][0]["cluster"]["certificate-authority"]
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    with pytest.raises(BackendError, match="certificate is not trusted"):
        await backend.list_owned()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"namespace": ""}, "Set `namespace`"),
        ({"kubeconfig": ""}, "Set `kubeconfig`"),
        ({"kubeconfig": "/nowhere/config"}, "cannot be used"),
        ({"context": "elsewhere"}, "elsewhere"),
    ],
)
async def test_options_that_an_operator_forgets(
    cloud: KubernetesApi, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    """Each is told with what to write."""
    with pytest.raises(BackendError, match=said) as refused:
        await cloud.backend(tmp_path, **options).list_owned()
    assert refused.value.code == "config"


# ---- several hosts --------------------------------------------------------------------------------------------------


async def test_several_hosts_are_one_indexed_job(cloud: KubernetesApi, tmp_path: Path) -> None:
    """Ordered with the first, each with its own pod, free to call each other, and gone with the first."""
    backend = cloud.backend(tmp_path)
    order = replace(await first(backend, PAIR), name=f"{NAME}-0")
    assert order.offer.one_order
    await backend.create(order)
    await backend.create(replace(order, name=f"{NAME}-1", member=1))
    spec = cloud.objects["jobs"][NAME]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert list(cloud.orders("https://bench.example.org")) == [f"{NAME}-0", f"{NAME}-1"]
    service, policy = cloud.objects["services"][NAME], cloud.objects["networkpolicies"][NAME]
    assert (service["spec"]["clusterIP"], spec["template"]["spec"]["subdomain"]) == ("None", NAME)
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": {"benchbot-machine": NAME}}}]}]
    owned = await backend.list_owned()
    assert [(seen.name, seen.state) for seen in owned] == [(f"{NAME}-0", "running"), (f"{NAME}-1", "running")]
    await backend.delete(f"{NAME}-1", NAMESPACE)
    assert (await backend.observe(f"{NAME}-1", NAMESPACE)).state == "running"
    await backend.delete(f"{NAME}-0", NAMESPACE)
    for _ in range(2):
        await backend.observe(f"{NAME}-0", NAMESPACE)
    for host in (0, 1):
        assert (await backend.observe(f"{NAME}-{host}", NAMESPACE)).state == "absent"
    assert (cloud.objects["services"], list(cloud.objects["networkpolicies"])) == ({}, ["benchbot-main"])


async def test_one_of_several_pods_is_taken_away(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The Job is over for all, and both say that the cluster took it."""
    backend = cloud.backend(tmp_path)
    await backend.create(replace(await first(backend, PAIR), name=f"{NAME}-0"))
    cloud.evict(NAME, index="1")
    for host in (0, 1):
        seen = await backend.observe(f"{NAME}-{host}", NAMESPACE)
        assert (seen.state, seen.code) == ("stopped", "preempted")


async def test_a_slice_of_tpus(cloud: KubernetesApi, tmp_path: Path) -> None:
    """The topology is that of all hosts, and each pod asks for its share."""
    slice_ = {"image": IMAGE, "tpu": "tpu-v5-lite-podslice", "topology": "4x4", "hosts": "4"}
    backend = cloud.backend(tmp_path)
    await backend.create(replace(await first(backend, slice_), name=f"{NAME}-0"))
    pod = cloud.objects["jobs"][NAME]["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "4"}
    with pytest.raises(BackendError, match="hosts = 3"):
        await backend.offers({**slice_, "hosts": "3"})
