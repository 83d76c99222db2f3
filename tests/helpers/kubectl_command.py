"""`kubectl` as a command on PATH, over the cluster that stands in for one."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from helpers.kubernetes_stand_in import Cluster, Pod
from helpers.kustomization import render

#: Passes its words and its standard input on, and prints the answers.
SCRIPT = """\
#!{python} -IS
import json, socket, sys

said = sys.stdin.read() if sys.argv[-2:] == ["-f", "-"] else ""
with socket.socket(socket.AF_UNIX) as link:
    link.connect({address!r})
    link.sendall(json.dumps([sys.argv[1:], said]).encode() + b"\\n")
    for line in link.makefile():
        answer = json.loads(line)
        print(answer.get("out", ""), end="", flush=True)
        print(answer.get("err", ""), end="", file=sys.stderr, flush=True)
        if "code" in answer:
            sys.exit(answer["code"])
"""

Answer = dict[str, Any]


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class KubectlCommand:
    """The folder of the command, which is to be the first on PATH."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: All commands, without options that name cluster and namespace.
        self.commands: list[list[str]] = []
        #: Objects that the cluster deletes with another, by name, and the name of the other.
        self.owners: dict[str, str] = {}
        self._real = shutil.which("kubectl")
        self._lock = threading.Lock()
        self._made = tempfile.TemporaryDirectory()
        self.folder = Path(self._made.name)
        address = str(self.folder / "socket")
        command = self.folder / "kubectl"
        command.write_text(SCRIPT.format(python=sys.executable, address=address), "utf-8")
        command.chmod(0o755)
        answers = self._answers

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                words, said = json.loads(self.rfile.readline())
                # the command may have been ended
                with contextlib.suppress(BrokenPipeError):
                    for answer in answers(words, said):
                        self.wfile.write(json.dumps(answer).encode() + b"\n")

        self._server = _Server(address, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        """Take no more commands."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._made.cleanup()

    def _answers(self, words: list[str], said: str) -> Iterator[Answer]:
        assert words[:2] == ["-n", "osbench"], words
        words = words[2:]
        self.commands.append(words)
        if words[:2] == ["logs", "--follow"]:
            yield from self._follow(words[2])
            return
        with self._lock:
            try:
                yield {"out": self._answer(words, said), "code": 0}
            except KeyError as absent:
                yield {"err": f"Error from server (NotFound): {absent} not found\n", "code": 1}

    def _answer(self, words: list[str], said: str) -> str:
        match words:
            case ["get", "pods", "-l", label, "-o", "json"]:
                job = label.removeprefix("job-name=")
                return json.dumps({"items": self._pods(job)})
            case ["get", name, "-o", "json"]:
                kind, _, called = name.partition("/")
                found = self.cluster.of_kind(kind.capitalize(), called)
                found["metadata"]["uid"] = f"uid-of-{called}"
                return json.dumps(found)
            case ["kustomize", "--load-restrictor", "LoadRestrictionsNone", path]:
                return self._kustomize(Path(path))
            case ["create", "-f", "-"]:
                self.cluster.create(list(yaml.safe_load_all(said)))
            case ["patch", name, "--type=merge", "-p", patch]:
                (owner,) = json.loads(patch)["metadata"]["ownerReferences"]
                assert owner["uid"] == f"uid-of-{owner['name']}"
                self.owners[name] = f"{owner['kind'].lower()}/{owner['name']}"
            case ["scale", name, replicas]:
                kind, _, called = name.partition("/")
                self.cluster.scale(kind, called, int(replicas.removeprefix("--replicas=")))
            case ["rollout", "status", name, timeout]:
                assert timeout.startswith("--timeout=")
                self.cluster.await_ready(name)
            case ["exec", name, "-c", "coordinator", "--", "sh", "-c", "kill -INT 1"]:
                self._pod(name).container.send(signal.SIGINT)
            case ["delete", name, "--ignore-not-found", "--wait=false"]:
                self.cluster.delete(name)
            case _:
                raise AssertionError(f"this stand-in does not know {words}")
        return ""

    def _kustomize(self, folder: Path) -> str:
        if self._real is None:
            return str(yaml.safe_dump_all(render(folder)))
        command = [self._real, "kustomize", "--load-restrictor", "LoadRestrictionsNone", folder]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _pods(self, job: str) -> list[dict[str, Any]]:
        """The pods of a Job as an API server describes them."""
        found = []
        for number, pod in enumerate(self.cluster.pods.get(f"job/{job}", [])):
            code = pod.container.exit_code()
            state: dict[str, Any] = {"running": {}}
            if code is not None:
                reason = "Error" if code else "Completed"
                state = {"terminated": {"exitCode": code, "reason": reason}}
            statuses = [{"name": pod.spec["name"], "state": state}]
            name = {"name": f"{job}-{number}"}
            found.append({"metadata": name, "status": {"containerStatuses": statuses}})
        return found

    def _pod(self, name: str) -> Pod:
        job, _, number = name.rpartition("-")
        return self.cluster.pods[f"job/{job}"][int(number)]

    def _follow(self, name: str) -> Iterator[Answer]:
        """The log of a pod until it has ended."""
        container = self._pod(name).container
        shown = 0
        while True:
            ended = container.exit_code() is not None
            log = container.log()
            yield {"out": log[shown:]}
            shown = len(log)
            if ended:
                yield {"code": 0}
                return
            time.sleep(0.05)
