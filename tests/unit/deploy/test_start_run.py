"""deploy/kubernetes/start-run with a kubectl that is a script: manifests, refusals, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from helpers.arena import wait_until
from helpers.kustomization import render
from helpers.readme import REPOSITORY
from servers.child import PATIENCE_S

COMMAND = REPOSITORY / "deploy" / "kubernetes" / "start-run"
TASK = REPOSITORY / "deploy" / "kubernetes" / "run" / "task.yaml"
RECORD = REPOSITORY / "samples" / "deployments" / "webservice.json"

#: Answers each command from the file that is called after its first word and counts them; keeps the
#: manifests and words that it gets.
KUBECTL = """\
#!{python} -IS
import json, pathlib, shutil, sys
home = pathlib.Path({home!r})
words = sys.argv[1:]
while words[0] in ("-n", "--context"):
    del words[:2]
with (home / "commands").open("a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
name = words[0]
if name == "get":
    name = words[1].partition("/")[0]
if name == "kustomize":
    shutil.copytree(words[-1], home / "kustomization", copy_function=shutil.copy)
if name == "create":
    (home / "created").write_text(sys.stdin.read())
answers = json.loads((home / "answers.json").read_text()).get(name, [["", "", 0]])
asked = home / f"asked-{{name}}"
number = len(asked.read_text()) if asked.exists() else 0
with asked.open("a") as file:
    file.write("x")
out, err, code = answers[min(number, len(answers) - 1)]
print(out, end="")
print(err, end="", file=sys.stderr)
sys.exit(code)
"""

WORKERS = {
    "securityContext": {"runAsNonRoot": True},
    "imagePullSecrets": [{"name": "registry"}],
    "containers": [{"name": "worker", "image": "registry.example/osbench:1.0"}],
}


def pods(*statuses: dict[str, Any]) -> list[list[Any]]:
    """Answers to `get pods`, one after the other; an empty status is no pod."""
    return [
        [
            json.dumps({"items": [{"metadata": {"name": "pod"}, "status": one}] if one else []}),
            "",
            0,
        ]
        for one in statuses
    ]


def state(**found: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod with a coordinator in a state."""
    return {"containerStatuses": [{"name": "coordinator", "state": found}]}


def completed(code: int, reason: str = "Error") -> dict[str, Any]:
    return state(terminated={"exitCode": code, "reason": reason})


RUNNING = state(running={})
REFUSED = ["", "connection refused\n", 1]


class Shell:
    """Runs the command with a kubectl that answers as a test says."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.answers: dict[str, list[list[Any]]] = {
            "deployment": [[json.dumps({"spec": {"template": {"spec": WORKERS}}}), "", 0]],
            "job": [[json.dumps({"metadata": {"uid": "uid-1"}}), "", 0]],
            "pods": pods(RUNNING, completed(0)),
            "logs": [["the report\n", "", 0]],
        }
        kubectl = home / "bin" / "kubectl"
        kubectl.parent.mkdir()
        kubectl.write_text(KUBECTL.format(python=sys.executable, home=str(home)), "utf-8")
        kubectl.chmod(0o755)
        self.path = str(kubectl.parent)

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        (self._home / "answers.json").write_text(json.dumps(self.answers), "utf-8")
        return subprocess.Popen(
            [sys.executable, COMMAND, *words],
            env={**os.environ, "PATH": self.path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str | Path, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        process = self.start(*words)
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
        return process.returncode, out, err

    @property
    def commands(self) -> list[list[str]]:
        file = self._home / "commands"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def first_words(self) -> list[str]:
        return [words[2] for words in self.commands]

    @property
    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifests of the run, by kind."""
        described = self._home / "kustomization" / "kustomization.yaml"
        content = json.loads(described.read_text("utf-8"))
        # the folder has been copied
        root = COMMAND.parent
        content["resources"] = [os.path.relpath(root / "run" / "job.yaml", described.parent)]
        content["components"] = [os.path.relpath(root / "settings", described.parent)]
        described.write_text(json.dumps(content), "utf-8")
        found = {one["kind"]: one for one in render(described.parent)}
        if tool := shutil.which("kubectl"):
            built = subprocess.run(
                [tool, "kustomize", "--load-restrictor", "LoadRestrictionsNone", described.parent],
                capture_output=True,
                text=True,
                check=True,
            )
            # its base64 has line breaks
            resolved = {one["kind"]: one for one in yaml.safe_load_all(built.stdout)}
            for kind, manifest in resolved.items():
                if kind == "Secret":
                    manifest["data"] = {
                        name: "".join(code.split()) for name, code in manifest["data"].items()
                    }
            assert resolved == found
        for one in found.values():
            kubernetes_validate.validate(one, "1.34", strict=True)
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_run_has_its_task_its_options_and_the_image_of_the_workers(shell: Shell) -> None:
    code, out, err = shell.run(TASK, "--workers", "2", "--tag", "nightly")

    assert (code, out) == (0, "the report\n"), err
    made = shell.manifests
    pod = made["Job"]["spec"]["template"]["spec"]
    (run,) = pod["containers"]
    assert run["command"] == ["osbench-coord", "run", "/task/task.yaml"]
    assert run["args"] == ["--wait-for-workers", "300", "--workers", "2", "--tag", "nightly"]
    images = {one["image"] for one in [*pod["initContainers"], run]}
    assert images == {"registry.example/osbench:1.0"}
    assert pod["securityContext"] == WORKERS["securityContext"]
    assert pod["imagePullSecrets"] == WORKERS["imagePullSecrets"]
    assert made["ConfigMap"]["data"] == {"task.yaml": TASK.read_text("utf-8")}
    assert made["Job"]["spec"]["ttlSecondsAfterFinished"] == 86_400


def test_a_run_may_be_repeated_because_each_has_its_own_name(shell: Shell) -> None:
    shell.run("--detach", TASK)
    first = shell.manifests
    shutil.rmtree(Path(shell.path).parent / "kustomization")
    shell.run("--detach", TASK)
    second = shell.manifests

    for kind in ("Job", "ConfigMap"):
        assert first[kind]["metadata"]["name"] != second[kind]["metadata"]["name"]


def test_the_deployment_record_goes_with_the_job_and_only_if_there_is_one(shell: Shell) -> None:
    shell.run("--deployment-file", RECORD, TASK)

    made = shell.manifests
    names = {made[kind]["metadata"]["name"] for kind in ("ConfigMap", "Secret")}
    pod = made["Job"]["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["deployment"]["secret"]["secretName"] in names
    assert volumes["secret"]["secret"]["secretName"] == "osbench-coordinator"
    patched = {words[3].partition("/")[2] for words in shell.commands if words[2] == "patch"}
    assert patched == names
    (owner,) = json.loads(shell.commands[-1 - shell.first_words()[::-1].index("patch")][-1])[
        "metadata"
    ]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == (made["Job"]["metadata"]["name"], "uid-1")


def test_without_a_record_none_is_mounted(shell: Shell) -> None:
    if (COMMAND.parent / "run" / "secrets" / "deployment.json").exists():
        pytest.skip("this checkout has a record")
    shell.run(TASK)

    made = shell.manifests
    pod = made["Job"]["spec"]["template"]["spec"]
    assert "Secret" not in made
    assert [one["name"] for one in pod["initContainers"]] == ["keys"]
    assert "deployment" not in {one["name"] for one in pod["volumes"]}


def test_files_are_beside_the_task(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("name\nann\n")

    shell.run("--file", tmp_path / "users.csv", TASK)

    assert shell.manifests["ConfigMap"]["data"]["users.csv"] == "name\nann\n"


@pytest.mark.parametrize("code", [0, 3, 130])
def test_the_exit_code_is_that_of_the_run(shell: Shell, code: int) -> None:
    shell.answers["pods"] = pods({}, RUNNING, RUNNING, completed(code))

    assert shell.run(TASK)[0] == code


def test_a_run_that_the_cluster_kills_says_so(shell: Shell) -> None:
    shell.answers["pods"] = pods(RUNNING, completed(137, "OOMKilled"))

    code, _, err = shell.run(TASK)

    assert code == 137
    assert "OOMKilled" in err


def test_a_status_that_cannot_be_read_for_a_moment_ends_nothing(shell: Shell) -> None:
    shell.answers["pods"] = [*pods(RUNNING), REFUSED, *pods(completed(3))]

    assert shell.run(TASK)[0] == 3


def test_a_pod_that_vanishes_is_an_error(shell: Shell) -> None:
    shell.answers["pods"] = pods(RUNNING, {})

    code, _, err = shell.run(TASK)

    assert code == 10
    assert "has vanished" in err


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        (
            state(waiting={"reason": "ErrImagePull", "message": "no such image"}),
            "ErrImagePull: no such image",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]},
            "no node",
        ),
    ],
)
def test_a_pod_that_cannot_start_is_explained_and_removed(
    shell: Shell, waiting: dict[str, Any], text: str
) -> None:
    shell.answers["pods"] = pods(waiting)

    code, _, err = shell.run("--start-timeout", "1", TASK)

    assert code == 10
    assert f"waiting: {text}" in err
    assert ["delete", f"job/{shell.manifests['Job']['metadata']['name']}"] in [
        words[2:4] for words in shell.commands
    ]


def test_a_bad_deployment_record_is_shown(shell: Shell) -> None:
    failed = {"name": "deployment", "state": {"terminated": {"exitCode": 2}}}
    shell.answers["pods"] = pods({"initContainerStatuses": [failed]})
    shell.answers["logs"] = [["services: expected a mapping\n", "", 0]]

    code, _, err = shell.run("--deployment-file", RECORD, TASK)

    assert code == 10
    assert "services: expected a mapping" in err


def test_of_a_run_that_is_refused_nothing_is_left(shell: Shell) -> None:
    shell.answers["create"] = [["", "forbidden: exceeded quota\n", 1]]

    code, _, err = shell.run("--deployment-file", RECORD, TASK)

    deleted = [words[3:] for words in shell.commands if words[2] == "delete"]
    assert code == 10
    assert "exceeded quota" in err
    assert [name.partition("-")[0] for words in deleted for name in words if "/" in name] == [
        "job/osbench",
        "configmap/osbench",
        "secret/osbench",
    ]


@pytest.mark.parametrize("given", ["5", "plan.json", "-"])
def test_workers_are_scaled_before_the_run(shell: Shell, tmp_path: Path, given: str) -> None:
    plan = json.dumps({"needs": {"processes": 5}})
    (tmp_path / "plan.json").write_text(plan)
    chosen = str(tmp_path / given) if given == "plan.json" else given

    code, _, err = shell.run("--scale", chosen, TASK, stdin=plan)

    assert code == 0, err
    words = [words[2:] for words in shell.commands]
    assert words[0] == ["scale", "deployment/osbench-worker", "--replicas=5"]
    assert words[1][:3] == ["rollout", "status", "deployment/osbench-worker"]
    assert shell.first_words().index("create") > 1


def test_a_run_does_not_begin_without_its_workers(shell: Shell) -> None:
    shell.answers["rollout"] = [["", "timed out waiting\n", 1]]

    code, _, err = shell.run("--scale", "5", TASK)

    assert code == 10
    assert "timed out waiting" in err
    assert "create" not in shell.first_words()


def test_bad_usage_asks_no_cluster(shell: Shell, tmp_path: Path) -> None:
    large, spaced, other = (tmp_path / name for name in ("large", "a b", "task.yaml"))
    large.write_bytes(b"x" * 1_000_000)
    for path in (spaced, other):
        path.touch()
    for words, text in (
        ((tmp_path / "absent.yaml",), "absent.yaml: cannot be read: No such file"),
        (("--file", large, TASK), "at most 1000000 are possible"),
        (("--file", spaced, TASK), "only letters, digits"),
        (("--file", other, TASK), "two files have this name"),
        (("--deployment-file", "absent.json", TASK), "absent.json: cannot be read"),
        (("--scale", "many", TASK), "--scale many: cannot be read"),
        (("--scale", str(TASK), TASK), "neither a number nor the output of"),
        ((), "the following arguments are required: TASK"),
    ):
        code, _, err = shell.run(*words)

        assert (code, shell.commands) == (2, []), (words, err)
        assert text in err


def test_without_kubectl_or_a_cluster_the_remedy_is_named(shell: Shell) -> None:
    shell.answers["deployment"] = [REFUSED]

    code, _, err = shell.run(TASK)
    shell.path = "/nowhere"
    without, _, absent = shell.run(TASK)

    assert (code, without) == (10, 10)
    assert "connection refused" in err
    assert "kubectl apply -k deploy/kubernetes/base" in err
    assert "kubectl is not on PATH" in absent


def test_detached_it_prints_the_job_only(shell: Shell) -> None:
    code, out, _ = shell.run("--context", "lab", "-n", "loads", "--detach", TASK)

    assert (code, out) == (0, f"job/{shell.manifests['Job']['metadata']['name']}\n")
    assert all(words[:4] == ["--context", "lab", "-n", "loads"] for words in shell.commands)
    assert "logs" not in [words[4] for words in shell.commands]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_start_removes_the_job(shell: Shell, number: int) -> None:
    shell.answers["pods"] = pods({})
    process = shell.start(TASK)
    assert wait_until(lambda: shell.first_words()[-1:] == ["get"] and "pods" in shell.commands[-1])

    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130, err
    assert shell.first_words()[-1] == "delete"


def test_help_names_the_exit_codes(shell: Shell) -> None:
    code, out, _ = shell.run("--help")

    assert code == 0
    for text in ("OPTION OF osbench-coord run", "--scale N|PLAN", "10   no kubectl", "third"):
        assert text in out
