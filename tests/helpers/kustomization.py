"""Resolves a kustomization as `kubectl kustomize` does, as far as deploy/ uses it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]


def render(folder: Path) -> list[Manifest]:
    """The manifests of a kustomization: its resources, generated ones, patches applied."""
    spec = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    unknown = set(spec) - {
        "apiVersion", "kind", "namespace", "resources", "images", "patches",
        "configMapGenerator", "secretGenerator", "generatorOptions", "components", "nameSuffix",
    }  # fmt: skip
    assert not unknown, f"{folder}: this reader does not know {unknown}"
    found: list[Manifest] = []
    for name in spec.get("resources", []):
        path = folder / name
        if path.is_dir():
            found += render(path)
        else:
            found += [one for one in yaml.safe_load_all(path.read_text("utf-8")) if one]
    for one in spec.get("configMapGenerator", []):
        texts = {name: path.read_text("utf-8") for name, path in _files(folder, one)}
        found.append(_generated("ConfigMap", one["name"], texts))
    for one in spec.get("secretGenerator", []):
        files = _files(folder, one)
        codes = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files}
        found.append({**_generated("Secret", one["name"], codes), "type": "Opaque"})
    _add_components(found, folder, spec)
    _change(found, spec)
    if suffix := spec.get("nameSuffix"):
        _rename(found, suffix)
    for manifest in found:
        if manifest["kind"] != "Namespace":
            manifest["metadata"]["namespace"] = spec["namespace"]
    return found


def _add_components(manifests: list[Manifest], folder: Path, spec: dict[str, Any]) -> None:
    for name in spec.get("components", []):
        component = yaml.safe_load((folder / name / "kustomization.yaml").read_text("utf-8"))
        unknown = set(component) - {"apiVersion", "kind", "patches", "images", "components"}
        assert not unknown, f"{folder / name}: this reader does not know {unknown}"
        _add_components(manifests, folder / name, component)
        _change(manifests, component)


def _rename(manifests: list[Manifest], suffix: str) -> None:
    """Hang a suffix to all names, and to names of volumes by which pods refer to them."""
    names = {(one["kind"], one["metadata"]["name"]) for one in manifests}
    for manifest in manifests:
        manifest["metadata"]["name"] += suffix
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        for volume in pod.get("volumes", []):
            for kind, key, field in (
                ("ConfigMap", "configMap", "name"),
                ("Secret", "secret", "secretName"),
                ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
            ):
                if key in volume and (kind, volume[key][field]) in names:
                    volume[key][field] += suffix


def _change(manifests: list[Manifest], spec: dict[str, Any]) -> None:
    for patch in spec.get("patches", []):
        _patch(manifests, patch)
    for manifest in manifests:
        for container in containers(manifest):
            container["image"] = _image(container["image"], spec.get("images", []))


def containers(manifest: Manifest) -> list[dict[str, Any]]:
    """The containers of a manifest that has pods, those that come first first."""
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return [*pod.get("initContainers", []), *pod.get("containers", [])]


def _files(folder: Path, generator: dict[str, Any]) -> list[tuple[str, Path]]:
    """Keys and files: `path`, or `key=path`."""
    found = []
    for named in generator["files"]:
        key, _, path = named.rpartition("=")
        found.append((key or Path(path).name, folder / path))
    return found


def _generated(kind: str, name: str, data: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data}


def _patch(manifests: list[Manifest], patch: dict[str, Any]) -> None:
    """Change what it targets; it may target nothing."""
    target = patch["target"]
    for manifest in manifests:
        name = target.get("name", manifest["metadata"]["name"])
        if (manifest["kind"], manifest["metadata"]["name"]) == (target["kind"], name):
            for step in yaml.safe_load(patch["patch"]):
                _step(manifest, step)


def _step(manifest: Manifest, step: dict[str, Any]) -> None:
    """A step of a JSON patch (RFC 6902)."""
    *way, last = step["path"].strip("/").split("/")
    place: Any = manifest
    for part in way:
        place = place[int(part) if isinstance(place, list) else part]
    match step["op"]:
        case "remove":
            del place[int(last) if isinstance(place, list) else last]
        case "test":
            assert place[last] == step["value"], step
        case "replace" if isinstance(place, list):
            place[int(last)] = step["value"]
        case "replace":
            assert last in place, step
            place[last] = step["value"]
        case "add" if last == "-":
            place.append(step["value"])
        case "add":
            place[last] = step["value"]
        case other:
            raise AssertionError(f"this reader does not know {other}")


def _image(image: str, rules: list[dict[str, str]]) -> str:
    for rule in rules:
        if image.partition(":")[0] == rule["name"]:
            return f"{rule['newName']}:{rule['newTag']}"
    return image
