"""What each backend finds out for `benchbot doctor`, against clouds on loopback that are judged as always."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from runners.backends.base import Backend, BackendSettings, Finding
from runners.backends.local import LocalBackend
from runners.checks import clock
from runners.checks.kubernetes import RIGHTS
from tests.harness import gce, tpu
from tests.harness.gce import ComputeEngine
from tests.harness.google import PROJECT, GoogleService
from tests.harness.kubernetes import IMAGE, NAMESPACE, KubernetesApi, node_of, quota_of
from tests.harness.tpu import CloudTpu

A100 = {"gpu": "a100", "count": "2", "zones": "us-central1-a, us-east1-b"}
V5E = {"tpu": "v5e", "count": "8", "zones": "us-central1-a, us-west4-b"}
L4 = {"image": IMAGE, "gpu": "nvidia-l4"}
PAGE = (Path(__file__).parents[2] / "docs/backends/kubernetes.md").read_text()
SERVED = (ComputeEngine, CloudTpu)


@pytest.fixture
async def engine() -> AsyncIterator[ComputeEngine]:
    service = ComputeEngine(time.time)
    await service.start()
    yield service
    await service.stop()
    assert service.violations == []


@pytest.fixture
async def tpus() -> AsyncIterator[CloudTpu]:
    service = CloudTpu(time.time)
    await service.start()
    yield service
    await service.stop()
    assert service.violations == []


@pytest.fixture
async def cluster() -> AsyncIterator[KubernetesApi]:
    api = KubernetesApi(time.time)
    await api.start()
    yield api
    await api.stop()
    assert api.violations == []


async def bad(backend: Backend, **hardware: Mapping[str, str]) -> dict[str, Finding]:
    """What is no ok, by what it is about; each says what to do."""
    found = [finding for finding in await backend.check(hardware) if finding.level != "ok"]
    assert all(finding.sentence and finding.advice for finding in found), found
    assert len({finding.about for finding in found}) == len(found), found
    return {finding.about: finding for finding in found}


async def abouts(backend: Backend, **hardware: Mapping[str, str]) -> list[str]:
    return [finding.about for finding in await backend.check(hardware)]


# ---- Google Compute Engine -------------------------------------------------------------------------------------------


async def test_gce_when_all_is_well(engine: ComputeEngine, tmp_path: Path) -> None:
    """Every part is named, nothing is told twice, and nothing but reads was asked."""
    backend = engine.backend(tmp_path)
    assert await bad(backend, a100x2=A100, spot={**A100, "provisioning": "spot"}) == {}
    assert await abouts(backend, a100x2=A100) == [
        "hardware a100x2",
        "clock",
        "permissions",
        "project",
        f"image {gce.IMAGE.rpartition('-v')[0]}",
        "network",
        "zones of a100x2",
        "quota GPUS_ALL_REGIONS",
        "quota NVIDIA_A100_GPUS of us-central1",
        "quota NVIDIA_A100_GPUS of us-east1",
        "machines",
    ]
    assert not {"insert", "delete"} & set(engine.calls)
    assert (engine.instances, engine.operations) == ({}, [])


async def test_gpus_that_are_attached(engine: ComputeEngine, tmp_path: Path) -> None:
    backend = engine.backend(tmp_path)
    t4 = {"gpu": "t4", "zones": "us-central1-a"}
    assert await bad(backend, t4=t4) == {}
    engine.without.add(("us-central1-a", "nvidia-tesla-t4"))
    found = await bad(backend, t4=t4)
    assert found["zone us-central1-a"].sentence == "There is no nvidia-tesla-t4 in this zone."


@pytest.mark.parametrize(
    ("options", "about", "sentence", "advice"),
    [
        ({"gpu": "a1000"}, "hardware x", "Set `machine_type`, or `gpu`", "[hardware.x]"),
        ({"zones": ""}, "hardware x", "offers no machine", "`zones`"),
        ({"zones": "us-moon1-a"}, "zone us-moon1-a", "no such zone", "gcloud compute zones list"),
        ({"image_family": "nothing"}, "image nothing", "no such image family", "gcloud compute images list"),
        ({"network": "default"}, "network", "is no path", "global/networks/NAME"),
        ({"network": "global/networks/x"}, "network", f"no global/networks/x in {PROJECT}", "networks list"),
        ({"subnetwork": "regions/us-central1/subnetworks/default"}, "subnetwork", "us-east1-b", "own region"),
        ({"subnetwork": "projects/host/regions/us-east1/subnetworks/x"}, "subnetwork", "in host", "subnets list"),
        ({"machine_type": "a2-highgpu-4g", "count": "2"}, "hardware x", "has 4 GPUs", "count = 4"),
        ({"machine_type": "a9-highgpu-1g"}, "zone us-central1-a", "no a9-highgpu-1g", "machine-types list"),
    ],
)
async def test_gce_options_that_are_wrong(
    engine: ComputeEngine, tmp_path: Path, options: dict[str, str], about: str, sentence: str, advice: str
) -> None:
    """Each in its own words, with what to type or to set."""
    found = await bad(engine.backend(tmp_path), x={**A100, **options})
    assert found[about].level == "fault"
    assert sentence in found[about].sentence
    assert advice in found[about].advice
    assert set(found) <= {about, "zone us-east1-b"}


ALL, OURS, SPOT = "GPUS_ALL_REGIONS", "NVIDIA_A100_GPUS", "PREEMPTIBLE_NVIDIA_A100_GPUS"


@pytest.mark.parametrize(
    ("quotas", "kind", "about", "said"),
    [
        ({ALL: (0, 0)}, "standard", ALL, ("fault", "It is 0, and a machine takes 2.")),
        ({OURS: (1, 0)}, "standard", f"{OURS} of us-east1", ("fault", "It is 1, and a machine takes 2.")),
        ({OURS: (8, 7)}, "standard", f"{OURS} of us-east1", ("warning", "7 of 8 are in use, and a machine takes 2")),
        ({OURS: (0, 0), SPOT: (0, 0)}, "spot", f"{SPOT} of us-east1", ("fault", "It is 0")),
    ],
)
async def test_gce_quotas(
    engine: ComputeEngine, tmp_path: Path, quotas: dict[str, Any], kind: str, about: str, said: tuple[str, str]
) -> None:
    """Too small is a fault, used up is a warning, and both say where to ask for more."""
    engine.quotas |= quotas
    found = (await bad(engine.backend(tmp_path), x={**A100, "provisioning": kind}))[f"quota {about}"]
    assert (found.level, PROJECT in found.advice) == (said[0], True)
    assert said[1] in found.sentence


async def test_gpus_without_a_listed_quota(engine: ComputeEngine, tmp_path: Path) -> None:
    """Google lists none for H100 and newer: that is no fault, and is said."""
    engine.quotas["GPUS_ALL_REGIONS"] = (16, 0)
    found = await engine.backend(tmp_path).check({"h": {"gpu": "h100", "count": "8", "zones": "us-central1-a"}})
    (told,) = [finding for finding in found if finding.about == "quota of h"]
    assert told.level == "ok"
    assert "lists no quota of a3-highgpu-8g" in told.sentence
    assert "8 or more" in told.advice


async def test_gce_permissions(engine: ComputeEngine, tmp_path: Path) -> None:
    """The one that is missing, and the command that gives the role."""
    engine.lacking.add("compute.instances.create")
    (lack,) = (await bad(engine.backend(tmp_path), x=A100)).values()
    assert "lacks in bench-project: compute.instances.create." in lack.sentence
    assert lack.advice == (
        f"gcloud projects add-iam-policy-binding {PROJECT} --member serviceAccount:{engine.email} "
        "--role roles/compute.instanceAdmin.v1"
    )
    engine.manager_off = True
    (unseen,) = (await bad(engine.backend(tmp_path), x=A100)).values()
    assert (unseen.about, unseen.level) == ("permissions", "warning")
    assert "gcloud services enable cloudresourcemanager.googleapis.com" in unseen.advice


async def test_gce_projects(engine: ComputeEngine, tmp_path: Path) -> None:
    """Not named, not there, without the API; nothing else is asked then."""
    assert "Set `project`" in (await bad(engine.backend(tmp_path, project="")))["project"].sentence
    other = await bad(engine.backend(tmp_path, project="other"), x=A100)
    assert "There is no project other" in other["project"].sentence
    engine.compute_off = True
    off = await bad(engine.backend(tmp_path), x=A100)
    assert list(off) == ["project"]
    assert f"gcloud services enable compute.googleapis.com --project {PROJECT}" in off["project"].advice


@pytest.mark.parametrize("kind", SERVED)
async def test_keys_that_do_not_work(kind: type[ComputeEngine | CloudTpu], tmp_path: Path) -> None:
    """Said once, whichever it is: not known, not readable, the wrong kind of file; and a cloud that is away."""
    service: GoogleService = kind(time.time)
    await service.start()
    backend = service.backend(tmp_path)  # type: ignore[attr-defined]
    name, hardware = ("gce", A100) if kind is ComputeEngine else ("tpu", V5E)
    path = tmp_path / f"{name}-key.json"
    path.write_text(json.dumps(service.credentials(known=False)))
    found = await bad(backend, x=hardware)
    assert list(found) == ["project"]
    assert "authentication" in found["project"].sentence
    assert "keys create" in found["project"].advice
    path.write_text("{}")
    found = await bad(service.backend(tmp_path, credentials_file=str(path / "x")), x=hardware)  # type: ignore[attr-defined]
    assert "no readable key" in found["project"].sentence
    away = service.backend(tmp_path)  # type: ignore[attr-defined]
    await service.stop()
    found = await bad(away, x=hardware)
    assert "cannot be reached" in found["project"].sentence
    assert service.violations == []


# ---- Cloud TPU -------------------------------------------------------------------------------------------------------


async def test_tpu_when_all_is_well(tpus: CloudTpu, tmp_path: Path) -> None:
    backend = tpus.backend(tmp_path)
    assert await bad(backend, v5e=V5E, spot={**V5E, "provisioning": "spot"}) == {}
    assert await abouts(backend, v5e=V5E) == ["hardware v5e", "clock", "permissions", "zones of v5e", "machines"]
    assert tpus.orders_taken == []


@pytest.mark.parametrize(
    ("without", "options", "about", "sentence"),
    [
        ((), {"zones": "us-moon1-a"}, "zone us-moon1-a", "may not exist"),
        (("us-west4-b", "v5litepod-8"), {}, "zone us-west4-b", "no type v5litepod-8"),
        ((), {"runtime_version": "v9"}, "zone us-west4-b", "no version v9"),
        ((), {"service_account": ""}, "hardware x", "Set `service_account`"),
        ((), {"tpu": "v9"}, "hardware x", "Set `tpu` to one of"),
    ],
)
async def test_tpu_options_that_are_wrong(
    tpus: CloudTpu, tmp_path: Path, without: tuple[str, str], options: dict[str, str], about: str, sentence: str
) -> None:
    tpus.without |= {without} if without else set()
    found = await bad(tpus.backend(tmp_path, service_account=tpu.ACCOUNT), x={**V5E, **options})
    assert found[about].level == "fault"
    assert sentence in found[about].sentence


async def test_tpu_permissions(tpus: CloudTpu, tmp_path: Path) -> None:
    tpus.lacking.add("tpu.nodes.create")
    (lack,) = (await bad(tpus.backend(tmp_path), x=V5E)).values()
    assert "tpu.nodes.create" in lack.sentence
    assert "--role roles/tpu.admin" in lack.advice


# ---- Kubernetes ------------------------------------------------------------------------------------------------------


async def test_kubernetes_when_all_is_well(cluster: KubernetesApi, tmp_path: Path) -> None:
    cluster.resource_quotas = [quota_of("all", pods=("10", "2"), requests_gpu=("4", "1"))]
    backend = cluster.backend(tmp_path)
    assert await bad(backend, l4=L4) == {}
    assert await abouts(backend, l4=L4) == [
        "hardware l4",
        "rights",
        "pod security",
        "nodes of l4",
        "quota",
        "machines",
    ]
    assert cluster.made == []


def test_the_rights_are_those_of_the_docs() -> None:
    """The first Role is asked for, the second one is what is read beside it."""
    objects = list(YAML(typ="safe").load_all(PAGE.split("<<'END'\n")[1].split("END\n")[0]))
    (role,) = [thing for thing in objects if thing["kind"] == "Role"]
    rules = [(group, name, verb) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]
             for verb in rule["verbs"]]  # fmt: skip
    assert set(RIGHTS) == set(rules)
    more = list(YAML(typ="safe").load_all(PAGE.split("<<'END'\n")[2].split("END\n")[0]))
    seen = {(verb, name) for thing in more for rule in thing.get("rules", ()) for name in rule["resources"]
            for verb in rule["verbs"]}  # fmt: skip
    assert seen == {("get", "namespaces"), ("list", "nodes"), ("list", "resourcequotas")}


@pytest.mark.parametrize("lacking", ["create jobs", "get pods/log", "deletecollection pods"])
async def test_a_right_that_is_missing(cluster: KubernetesApi, tmp_path: Path, lacking: str) -> None:
    cluster.lacking.add(lacking)
    found = await bad(cluster.backend(tmp_path), l4=L4)
    assert found["rights"].sentence == f"The bot's account may not do in {NAMESPACE}: {lacking}."
    assert "Apply the Role" in found["rights"].advice


async def test_another_namespace(cluster: KubernetesApi, tmp_path: Path) -> None:
    found = await bad(cluster.backend(tmp_path, namespace="other"), l4=L4)
    assert "may do nothing in the namespace other" in found["rights"].sentence
    assert "Is `namespace` right?" in found["rights"].advice
    assert "Set `namespace`" in (await bad(cluster.backend(tmp_path, namespace=""), l4=L4))["cluster"].sentence


@pytest.mark.parametrize(("level", "expected"), [("", "warning"), ("privileged", "warning"), ("restricted", "ok")])
async def test_pod_security(cluster: KubernetesApi, tmp_path: Path, level: str, expected: str) -> None:
    cluster.level = level
    found = await cluster.backend(tmp_path).check({"l4": L4})
    assert [finding.level for finding in found if finding.about == "pod security"] == [expected]


async def test_nodes(cluster: KubernetesApi, tmp_path: Path) -> None:
    """None may be a cluster that makes them; one without devices has no device plugin."""
    backend = cluster.backend(tmp_path)
    found = await bad(backend, a={**L4, "gpu": "nvidia-a100"})
    assert found["nodes of a"].level == "warning"
    assert "kubectl get nodes -l cloud.google.com/gke-accelerator=nvidia-a100" in found["nodes of a"].advice
    cluster.nodes = [node_of("node-1", {"cloud.google.com/gke-accelerator": "nvidia-l4"}, gpus=0)]
    found = await bad(backend, a=L4)
    assert "none has 1 of nvidia.com/gpu" in found["nodes of a"].sentence
    cluster.nodes[0]["spec"] = {"unschedulable": True}
    assert (await bad(backend, a=L4))["nodes of a"].level == "warning"
    assert await bad(backend, cpu={"image": IMAGE}) != {}


@pytest.mark.parametrize(
    ("quota", "level", "sentence"),
    [
        ({"requests_gpu": ("0", "0")}, "fault", "allows 0 of requests.nvidia.com/gpu"),
        ({"requests_gpu": ("1", "1")}, "warning", "1 of 1 of requests.nvidia.com/gpu"),
        ({"limits_memory": ("64Gi", "0")}, "fault", "counts memory"),
    ],
)
async def test_resource_quotas(
    cluster: KubernetesApi, tmp_path: Path, quota: dict[str, tuple[str, str]], level: str, sentence: str
) -> None:
    cluster.resource_quotas = [quota_of("all", **quota)]
    (found,) = (await bad(cluster.backend(tmp_path), l4=L4)).values()
    assert (found.about, found.level) == ("quota", level)
    assert sentence in found.sentence


async def test_what_the_account_may_not_see(cluster: KubernetesApi, tmp_path: Path) -> None:
    """One warning for all of it, since orders do not need it."""
    cluster.lacking |= {"list nodes", "get namespaces", "list resourcequotas"}
    (found,) = (await bad(cluster.backend(tmp_path), l4=L4)).values()
    assert (found.about, found.level) == ("not seen", "warning")
    assert "namespaces, nodes and resourcequotas" in found.sentence


async def test_a_cluster_that_does_not_know_us(cluster: KubernetesApi, tmp_path: Path) -> None:
    backend = cluster.backend(tmp_path)
    cluster.token = "another"
    found = await bad(backend, l4=L4)
    assert list(found) == ["cluster"]
    assert "credentials" in found["cluster"].sentence


# ---- this host -------------------------------------------------------------------------------------------------------


def local(folder: Path, **options: str) -> LocalBackend:
    return LocalBackend(BackendSettings(deployment="main", folder=folder, clock=time.time, options=options))


async def test_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made, and each missing thing is told."""
    folder = tmp_path / "machines"
    assert await abouts(local(folder), local={}) == ["hardware local", "machines", "isolation", "git", "disk"]
    found = await bad(local(folder, base_environment=str(tmp_path / "none")), local={"simulate": "gpu"})
    assert {"hardware local", "base environment"} <= set(found)
    assert "python3 -m venv" in found["base environment"].advice
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed" in (await bad(local(folder), local={}))["git"].sentence
    assert not folder.exists()


async def test_whose_code_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = local(tmp_path, trust_all="true")
    monkeypatch.setattr(backend, "_root", False)
    assert "can read the bot's database" in (await bad(backend, local={}))["isolation"].sentence
    backend = local(tmp_path)
    monkeypatch.setattr(backend, "_root", False)
    assert "isolation" not in await bad(backend, local={})


# ---- clocks ----------------------------------------------------------------------------------------------------------

DATE = "Tue, 01 Dec 2026 12:00:00 GMT"
AT = 1_796_126_400.0


@pytest.mark.parametrize(
    ("came_at", "level", "said"),
    [
        (AT + 29, "ok", "agrees"),
        (AT - 29, "ok", "agrees"),
        (AT + 61, "fault", "60 s ahead of"),
        (AT - 59.5, "fault", "behind"),
    ],
)
def test_clocks(came_at: float, level: str, said: str) -> None:
    (found,) = clock("GitHub", (DATE, came_at))
    assert found.level == level
    assert said in found.sentence


def test_no_date() -> None:
    assert clock("GitHub", ("", AT)) == []
    assert clock("GitHub", ("yesterday", AT)) == []
