"""`kubectl` over deploy/kubernetes, with processes in place of pods."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.kustomization import Manifest, render
from helpers.stand_in import Container, Network, Root

#: Group and others of files of a Secret where pods have an fsGroup.
OF_GROUP = 0o440


class Pod:
    """The containers of a pod: the init containers, then one that keeps running."""

    def __init__(self, cluster: Cluster, root: Root, spec: dict[str, Any]) -> None:
        self._cluster = cluster
        self._volumes = {one["name"]: self._volume(root, one) for one in spec["volumes"]}
        for first in spec.get("initContainers", []):
            self._mount(root, first)
            done = root.run(first["command"])
            assert done.returncode == 0, (first["name"], done.stdout, done.stderr)
        (self.spec,) = spec["containers"]
        self._mount(root, self.spec)
        self.container = Container(
            root,
            [*self.spec["command"], *self.spec.get("args", [])],
            spec.get("terminationGracePeriodSeconds", 30),
        )

    def probe(self, name: str) -> int:
        """The current exit code of a probe."""
        return self.container.root.run(self._probe(name)).returncode

    def await_ready(self) -> None:
        """Wait for the startup probe, if any, and the readiness probe."""
        for name in ("startupProbe", "readinessProbe"):
            if name in self.spec:
                self.container.await_ready(self._probe(name))

    def _probe(self, name: str) -> list[str]:
        command = list(self.spec[name]["exec"]["command"])
        if "redis-cli" in command[-1]:
            port = self._cluster.network.redis_port
            command[-1] = command[-1].replace("redis-cli", f"redis-cli -p {port}")
            if shutil.which("redis-cli") is None:
                command = ["bash", "-c", f"echo > /dev/tcp/127.0.0.1/{port}"]
        return command

    def _mount(self, root: Root, container: dict[str, Any]) -> None:
        for mount in sorted(container["volumeMounts"], key=lambda one: len(one["mountPath"])):
            root.mount(mount["mountPath"], self._volumes[mount["name"]])

    def _volume(self, root: Root, volume: dict[str, Any]) -> Path:
        if claim := volume.get("persistentVolumeClaim"):
            return self._cluster.claims[claim["claimName"]]
        path = root.path / "volumes" / volume["name"]
        path.mkdir(parents=True)
        if secret := volume.get("secret"):
            data = self._cluster.of_kind("Secret", secret["secretName"])["data"]
            for name, code in data.items():
                root.write(path / name, base64.b64decode(code), secret["defaultMode"] | OF_GROUP)
        elif config := volume.get("configMap"):
            data = self._cluster.of_kind("ConfigMap", config["name"])["data"]
            for name, text in data.items():
                root.write(path / name, text.encode(), 0o644)
        else:
            assert "emptyDir" in volume
        return path


class Cluster:
    """What has been applied, and the pods of it; their roots lie in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._applied: dict[tuple[str, str], Manifest] = {}
        self.network = Network()
        self.claims: dict[str, Path] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.stopped: list[int] = []

    def of_kind(self, kind: str, name: str) -> Manifest:
        """A manifest that was applied."""
        return self._applied[kind, name]

    def apply(self, folder: Path) -> None:
        """`apply -k`."""
        self.create(render(folder))

    def create(self, manifests: Sequence[Manifest]) -> None:
        """`create -f`, which also applies here."""
        for manifest in manifests:
            name = manifest["metadata"]["name"]
            self._applied[manifest["kind"], name] = manifest
            if manifest["kind"] == "PersistentVolumeClaim" and name not in self.claims:
                claim = self._folder / f"claim-{name}"
                # as a new ext4 has it
                (claim / "lost+found").mkdir(parents=True)
                self.claims[name] = claim
        for kind in ("StatefulSet", "Deployment", "Job"):
            for manifest in manifests:
                if manifest["kind"] == kind:
                    name = manifest["metadata"]["name"]
                    self.scale(kind.lower(), name, manifest["spec"].get("replicas", 1))

    def scale(self, kind: str, name: str, replicas: int) -> None:
        """`scale`: pods that are there stay."""
        (manifest,) = [
            one for (its, called), one in self._applied.items()
            if (its.lower(), called) == (kind, name)
        ]  # fmt: skip
        there = self.pods.setdefault(f"{kind}/{name}", [])
        while len(there) > replicas:
            self.stopped.append(there.pop().container.stop())
        started = [self._start(manifest) for _ in range(replicas - len(there))]
        there += started
        if kind == "statefulset":
            self.await_ready(f"{kind}/{name}")

    def _start(self, manifest: Manifest) -> Pod:
        self._made += 1
        root = Root(self._folder / f"pod-{self._made}", self.network)
        return Pod(self, root, manifest["spec"]["template"]["spec"])

    def await_ready(self, name: str) -> None:
        """`rollout status`."""
        for pod in self.pods[name]:
            pod.await_ready()

    def delete(self, name: str) -> None:
        """`delete`."""
        for pod in self.pods.pop(name):
            pod.container.remove()

    def remove(self) -> None:
        """End all that is left."""
        for name in list(self.pods):
            self.delete(name)
