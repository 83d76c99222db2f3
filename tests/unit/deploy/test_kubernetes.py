"""The Kubernetes manifests: valid, restricted, and true to osbench's options."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from helpers.kustomization import Manifest, containers, render
from helpers.readme import REPOSITORY
from osbench.common.config.config import load
from osbench.common.config.options import OPTIONS
from osbench.common.network.listen_address import parse_listen_address
from osbench.coordinator.front.cli import main as coord
from osbench.worker.main import main as worker
from osbench.worker.process.worker_metrics import GAUGES

DEPLOY = REPOSITORY / "deploy"
VERSIONS = ("1.28", "1.31", "1.34")
FOLDERS = ("base", "autoscaled", "autoscaled-by-users", "run")
#: Kinds of others than Kubernetes, whose schemas are not among its own.
FOREIGN = ("ScaledObject",)

#: Seconds that the supervisor waits beyond drain_timeout_s before it kills.
SUPERVISOR_S = 5


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests with the secrets that an operator makes."""
    copy = tmp_path_factory.mktemp("deploy") / "kubernetes"
    shutil.copytree(DEPLOY / "kubernetes", copy, ignore=shutil.ignore_patterns("secrets"))
    subprocess.run([DEPLOY / "new-secrets", copy / "base" / "secrets"], check=True)
    (copy / "run" / "secrets").mkdir()
    sample = DEPLOY.parent / "samples" / "deployments" / "webservice.json"
    shutil.copy(sample, copy / "run" / "secrets" / "deployment.json")
    return copy


@pytest.fixture(params=FOLDERS)
def manifests(request: pytest.FixtureRequest, kubernetes: Path) -> list[Manifest]:
    return render(kubernetes / request.param)


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = [one for one in manifests if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def pods(manifests: list[Manifest]) -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in manifests if containers(one)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_follows_the_schema_of_its_kind(
    manifests: list[Manifest], version: str
) -> None:
    for manifest in manifests:
        if manifest["kind"] not in FOREIGN:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schemas_refuse_what_is_misspelt(kubernetes: Path) -> None:
    manifest = named(render(kubernetes / "base"), "Deployment", "osbench-worker")
    manifest["spec"]["template"]["spec"]["terminationGracePeriod"] = 45

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_resolves_to_what_these_tests_read(kubernetes: Path, folder: str) -> None:
    tool = shutil.which("kubectl")
    if tool is None:
        pytest.skip("no kubectl, which has kustomize")

    built = subprocess.run(
        [tool, "kustomize", kubernetes / folder], capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr
    assert _plain(yaml.safe_load_all(built.stdout)) == _plain(render(kubernetes / folder))


def _plain(manifests: Iterable[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Manifests by kind and name; names without what kustomize hangs to them, secrets decoded."""
    found = {}
    for manifest in manifests:
        text = re.sub(r"(osbench-(?:task|deployment))-[a-z0-9]{10}", r"\1", json.dumps(manifest))
        plain = json.loads(text)
        if plain["kind"] == "Secret":
            plain["data"] = {name: base64.b64decode(one) for name, one in plain["data"].items()}
        found[plain["kind"], plain["metadata"]["name"]] = plain
    return found


def test_pods_may_run_in_a_restricted_namespace(kubernetes: Path) -> None:
    base = render(kubernetes / "base")
    level = named(base, "Namespace", "osbench")["metadata"]["labels"]
    allowed = {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}

    for pod in pods([*base, *render(kubernetes / "run")]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            assert "cpu" not in container["resources"]["limits"]
        for volume in pod["volumes"]:
            assert set(volume) - {"name"} <= allowed
    assert level["pod-security.kubernetes.io/enforce"] == "restricted"


def test_what_pods_mount_is_there(kubernetes: Path) -> None:
    both = [*render(kubernetes / "base"), *render(kubernetes / "run")]
    for pod in pods(both):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        for volume in volumes.values():
            if "secret" in volume:
                named(both, "Secret", volume["secret"]["secretName"])
            if "configMap" in volume:
                named(both, "ConfigMap", volume["configMap"]["name"])
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                named(both, "PersistentVolumeClaim", claim)


def test_services_select_their_pods(kubernetes: Path) -> None:
    base = render(kubernetes / "base")
    service = named(base, "Service", "osbench-redis")
    redis = named(base, "StatefulSet", "osbench-redis")
    worker_set = named(base, "Deployment", "osbench-worker")

    labels = redis["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert redis["spec"]["serviceName"] == "osbench-redis"
    (container,) = redis["spec"]["template"]["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert {"name": port["targetPort"], "containerPort": port["port"]} in container["ports"]
    for one in (redis, worker_set):
        assert (
            one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
        )


def test_the_configuration_names_the_service_the_keys_and_a_writable_folder(
    kubernetes: Path, tmp_path: Path
) -> None:
    base = render(kubernetes / "base")
    for role in ("worker", "coordinator"):
        data = named(base, "Secret", f"osbench-{role}")["data"]
        assert set(data) == {"osbench.conf", "keys", "ca.pem", f"{role}.pem", f"{role}-key.pem"}
        for name, code in data.items():
            text = base64.b64decode(code).decode()
            # where an init container puts them
            text = re.sub("(?<=_file = )/etc/osbench/(?=.*pem)", f"{tmp_path}/", text)
            (tmp_path / name).write_text(text)
        conf = load([str(tmp_path / "osbench.conf")])
        (port,) = named(base, "Service", "osbench-redis")["spec"]["ports"]
        assert f"@osbench-redis:{port['port']}/0?" in conf.messaging.redis_url
    (pod,) = [one for one in pods(base) if one["containers"][0]["name"] == "worker"]
    mounted = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert conf.security.key_file == "/etc/osbench/keys"
    assert "/etc/osbench" in mounted
    assert "readOnly" not in mounted[conf.data_dir]
    assert pod["terminationGracePeriodSeconds"] >= conf.worker.drain_timeout_s + SUPERVISOR_S + 5


def test_commands_of_containers_are_commands_of_osbench(kubernetes: Path) -> None:
    both = [*render(kubernetes / "base"), *render(kubernetes / "run")]
    commands = {"osbench-worker": worker, "osbench-coord": coord}
    tried = 0
    for manifest in both:
        for container in containers(manifest):
            probes = [one["exec"]["command"] for key, one in container.items()
                      if key.endswith("Probe") and "exec" in one]  # fmt: skip
            lines = [[*container["command"], *container.get("args", [])], *probes]
            for line in lines:
                words = " ".join(line).partition(";")[0].split()
                if found := set(words) & set(commands):
                    (name,) = found
                    given = words[words.index(name) + 1 :]
                    done = CliRunner().invoke(commands[name], [*given, "--help"])
                    assert done.exit_code == 0, (line, done.output)
                    tried += 1
    assert tried == 6


def test_a_worker_is_restarted_for_what_a_restart_cures_and_ready_where_it_takes_work(
    kubernetes: Path,
) -> None:
    manifest = named(render(kubernetes / "base"), "Deployment", "osbench-worker")
    (container,) = manifest["spec"]["template"]["spec"]["containers"]

    asked = {
        name: container[name]["exec"]["command"][3:]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    # an answer of Redis is no reason to restart
    assert asked["livenessProbe"] == asked["startupProbe"] == ["osbench-worker", "--check", "alive"]
    assert asked["readinessProbe"] == ["osbench-worker", "--check", "--processes", "1"]
    for probe in asked:
        assert container[probe]["exec"]["command"][:3] == ["nice", "-n", "19"]


def test_for_openshift_one_line_takes_users_and_groups_from_all_pods(kubernetes: Path) -> None:
    settings = kubernetes / "settings" / "kustomization.yaml"
    before = settings.read_text()
    assert before.count("# components: [../openshift]") == 1
    settings.write_text(before.replace("# components:", "components:"))
    tool = shutil.which("kubectl")
    try:
        rendered = {folder: render(kubernetes / folder) for folder in FOLDERS}
        if tool:
            for folder, found in rendered.items():
                built = subprocess.run(
                    [tool, "kustomize", kubernetes / folder],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert _plain(yaml.safe_load_all(built.stdout)) == _plain(found)
    finally:
        settings.write_text(before)

    for found in rendered.values():
        for pod in pods(found):
            # restricted-v2 refuses users and groups outside of the namespace's range
            assert pod["securityContext"] == {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            for container in [*pod.get("initContainers", []), *pod["containers"]]:
                assert set(container["securityContext"]) == {
                    "allowPrivilegeEscalation",
                    "readOnlyRootFilesystem",
                    "capabilities",
                }


def test_every_kind_of_pod_has_the_time_to_drain(kubernetes: Path) -> None:
    (drain_s,) = [one.default for one in OPTIONS["worker"] if one.dest == "drain_timeout_s"]
    made = (kubernetes / "base" / "secrets" / "worker.conf").read_text()

    assert drain_s == 30
    assert f"drain_timeout_s = {drain_s:g}\n" in made
    for folder in ("base", "autoscaled", "autoscaled-by-users"):
        manifest = named(render(kubernetes / folder), "Deployment", "osbench-worker")
        pod = manifest["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] >= drain_s + SUPERVISOR_S + 10
        # SIGTERM drains: nothing has to run before it
        assert "lifecycle" not in pod["containers"][0]


def test_the_sample_task_is_one(kubernetes: Path) -> None:
    done = CliRunner().invoke(coord, ["validate", str(kubernetes / "run" / "task.yaml")])

    assert done.exit_code == 0, done.output


def test_the_autoscaler_scales_the_workers_and_nothing_else_sets_their_number(
    kubernetes: Path,
) -> None:
    manifests = render(kubernetes / "autoscaled")
    scaler = named(manifests, "HorizontalPodAutoscaler", "osbench-worker")["spec"]

    target = scaler["scaleTargetRef"]
    scaled = named(manifests, target["kind"], target["name"])
    assert "replicas" not in scaled["spec"]
    assert scaler["minReplicas"] >= 1


def test_workers_are_evicted_one_by_one_and_a_coordinator_not_in_a_run(kubernetes: Path) -> None:
    base, run = render(kubernetes / "base"), render(kubernetes / "run")
    budgets = {
        name: named(base, "PodDisruptionBudget", f"osbench-{name}")["spec"]
        for name in ("worker", "coordinator")
    }

    assert budgets["worker"]["maxUnavailable"] == 1
    assert budgets["coordinator"]["minAvailable"] == 1
    selected = {name: budget["selector"]["matchLabels"] for name, budget in budgets.items()}
    assert selected["worker"].items() <= labels(named(base, "Deployment", "osbench-worker")).items()
    assert selected["coordinator"].items() <= labels(named(run, "Job", "osbench-run")).items()


def labels(manifest: Manifest) -> dict[str, str]:
    """Those of its pods."""
    return dict(manifest["spec"]["template"]["metadata"]["labels"])


def selects(selector: dict[str, Any], of: dict[str, str]) -> bool:
    """Whether a label selector takes a pod."""
    rules = selector.get("matchExpressions", [])
    assert all(rule["operator"] == "In" for rule in rules)
    return selector.get("matchLabels", {}).items() <= of.items() and all(
        of.get(rule["key"]) in rule["values"] for rule in rules
    )


def may_connect(
    manifests: list[Manifest], source: dict[str, str] | None, target: Manifest, port: str
) -> bool:
    """Whether policies let a pod connect; a source without labels is in another namespace."""
    policies = [one["spec"] for one in manifests if one["kind"] == "NetworkPolicy"]
    of_target = [one for one in policies if selects(one["podSelector"], labels(target))
                 and "Ingress" in one["policyTypes"]]  # fmt: skip
    for policy in of_target:
        for rule in policy.get("ingress", []):
            if port not in [one["port"] for one in rule["ports"]]:
                continue
            for peer in rule["from"]:
                assert set(peer) in ({"podSelector"}, {"namespaceSelector"})
                if peer.get("namespaceSelector") == {} or (
                    source is not None
                    and selects(peer.get("podSelector", {"matchLabels": {"": ""}}), source)
                ):
                    return True
    return not of_target


@pytest.mark.parametrize("folder", ["base", "autoscaled", "autoscaled-by-users"])
def test_only_workers_and_coordinators_reach_redis_and_nobody_reaches_them(
    kubernetes: Path, folder: str
) -> None:
    found = [*render(kubernetes / folder), *render(kubernetes / "run")]
    redis = named(found, "StatefulSet", "osbench-redis")
    workers, run = named(found, "Deployment", "osbench-worker"), named(found, "Job", "osbench-run")
    (port,) = redis["spec"]["template"]["spec"]["containers"][0]["ports"]
    strangers: list[dict[str, str] | None] = [
        None,
        {},
        {"app.kubernetes.io/name": "another", "app.kubernetes.io/component": "worker"},
        labels(redis),
    ]

    for source in (labels(workers), labels(run)):
        assert may_connect(found, source, redis, port["name"])
        assert not may_connect(found, source, redis, "another")
    for stranger in strangers:
        assert not may_connect(found, stranger, redis, port["name"])
        for target in (workers, run):
            assert not may_connect(found, stranger, target, port["name"])
    # Prometheus is the one who may, where it is wanted
    assert may_connect(found, None, workers, "metrics") is (folder == "autoscaled-by-users")
    assert not may_connect(found, None, run, "metrics")


def test_load_may_go_anywhere_and_redis_nowhere(kubernetes: Path) -> None:
    base = render(kubernetes / "base")
    redis, workers = (
        named(base, "StatefulSet", "osbench-redis"),
        named(base, "Deployment", "osbench-worker"),
    )
    closed = [one["spec"] for one in base if one["kind"] == "NetworkPolicy"
              and "Egress" in one["spec"]["policyTypes"]]  # fmt: skip

    assert [selects(one["podSelector"], labels(redis)) for one in closed] == [True]
    assert not any(selects(one["podSelector"], labels(workers)) for one in closed)
    assert "egress" not in closed[0]


def test_workers_scale_by_a_metric_that_they_have(kubernetes: Path) -> None:
    found = render(kubernetes / "autoscaled-by-users")
    workers = named(found, "Deployment", "osbench-worker")
    scaler = named(found, "ScaledObject", "osbench-worker")["spec"]
    (container,) = workers["spec"]["template"]["spec"]["containers"]
    (trigger,) = scaler["triggers"]
    (conf,) = [one for one in OPTIONS["worker"] if one.dest == "virtual_users"]

    assert "replicas" not in workers["spec"]
    assert scaler["scaleTargetRef"]["name"] == "osbench-worker"
    assert scaler["minReplicaCount"] >= 1
    (asked,) = re.findall(r"osbench_worker_(\w+)", trigger["metadata"]["query"])
    assert asked in GAUGES
    assert 0 < int(trigger["metadata"]["threshold"]) < conf.default
    host, port = parse_listen_address(container["command"][-1])
    assert container["command"][-2] == "--metrics"
    assert (host, [{"name": "metrics", "containerPort": port}]) == ("0.0.0.0", container["ports"])
    annotations = workers["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port)


def test_all_that_users_change_stands_in_one_place(kubernetes: Path) -> None:
    settings = kubernetes / "settings" / "kustomization.yaml"
    changed = settings.read_text()
    for before, after in (
        ("newName: osbench", "newName: registry.example/osbench"),
        ("newTag: latest", 'newTag: "1.0"'),
        ("value: 2\n", "value: 5\n"),
        ("memory: 256Mi", "memory: 300Mi"),
        ("value: 10Gi", "value: 77Gi"),
        ("value: 20\n", "value: 40\n"),
        ("prometheus-operated.monitoring", "prometheus.example"),
    ):
        assert before in changed
        changed = changed.replace(before, after)
    before_text = settings.read_text()
    settings.write_text(changed)
    try:
        rendered = {folder: render(kubernetes / folder) for folder in FOLDERS}
    finally:
        settings.write_text(before_text)

    for found in rendered.values():
        for manifest in found:
            for container in containers(manifest):
                assert container["image"] in ("registry.example/osbench:1.0", "redis:7.4-bookworm")
    base = rendered["base"]
    assert named(base, "Deployment", "osbench-worker")["spec"]["replicas"] == 5
    claim = named(base, "PersistentVolumeClaim", "osbench-runs")
    assert claim["spec"]["resources"]["requests"]["storage"] == "77Gi"
    for pod in pods([*base, *rendered["run"]]):
        assert pod["containers"][0]["resources"]["requests"]["memory"] == "300Mi"
    scaler = named(rendered["autoscaled"], "HorizontalPodAutoscaler", "osbench-worker")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (5, 40)
    scaled = named(rendered["autoscaled-by-users"], "ScaledObject", "osbench-worker")["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (5, 40)
    assert "prometheus.example" in scaled["triggers"][0]["metadata"]["serverAddress"]
    for file in kubernetes.rglob("*.yaml"):
        if file != settings:
            assert "newTag" not in file.read_text(), file
