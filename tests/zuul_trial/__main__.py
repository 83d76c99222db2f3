"""Plays the job for changes that make a service slower, and for changes that do not.

    python -m zuul_trial --tools build/zuul/venv [--trials 20]

Prints one line a trial, and at the end how many regressions were found, and how many false alarms
there were. Ends with 1 if that is not what deploy/zuul promises: at least 18 of 20, at most 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import yaml

from helpers.commands import LENIENT

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "deploy" / "zuul"
#: Time that a request takes before a change, and after one that makes it slower, seconds.
BEFORE_S, SLOWER_S = 0.004, 0.005
SHARE_FOUND, SHARE_FALSE = 0.9, 0.05

_SERVICE = """
import http.server, os, socketserver, time

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep({sleep_s})
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

# change {number}
socketserver.ThreadingTCPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
"""
_TASK = {
    "version": 2,
    "title": "Shop",
    "subtasks": [
        {
            "title": "Items",
            "scenario": {"HttpRequests.check_request": {"url": "{{ url }}/items"}},
            "runner": {"constant_for_duration": {"duration": 1.5, "concurrency": 2}},
        }
    ],
}


class Job:
    """A project below a home directory, and the job that judges its last change."""

    def __init__(self, tools: Path, home: Path) -> None:
        self._ansible = tools / "bin" / "ansible-playbook"
        self._home = home
        self._project = home / "src" / "shop"
        self._number = 0
        self._project.mkdir(parents=True)
        self._git("init", "--quiet")
        (self._project / "load.yaml").write_text(yaml.safe_dump(_TASK), encoding="utf-8")
        self._commit(BEFORE_S)

    def prepare(self) -> None:
        """Play the pre-run playbook."""
        if self._play("pre.yaml"):
            sys.exit("the pre-run playbook failed")

    def judge(self, *, slower: bool) -> tuple[int, str]:
        """Commit a change and play the job; returns the code of its run and what it comments."""
        self._commit(SLOWER_S if slower else BEFORE_S)
        code = self._play("run.yaml")
        returned = self._home / "returned.json"
        returned.unlink(missing_ok=True)
        if self._play("post.yaml"):
            sys.exit("the post-run playbook failed")
        zuul = json.loads(returned.read_text(encoding="utf-8"))["zuul"]
        assert (self._home / "logs" / "osbench" / "verdict.html").is_file()
        # the next change is judged against an equal commit
        self._commit(BEFORE_S)
        return code, str(zuul["warnings"][0])

    def _play(self, playbook: str) -> int:
        variables = {
            **yaml.safe_load((PLAYBOOKS / "jobs.yaml").read_text("utf-8"))[0]["job"]["vars"],
            "ansible_user_dir": str(self._home),
            "ansible_python_interpreter": sys.executable,
            "osbench_folder": str(self._home / "osbench"),
            "osbench_package": str(ROOT),
            "osbench_serve": "exec python3 shop.py",
            "osbench_task": "load.yaml",
            "zuul": {
                "project": {"src_dir": "src/shop"},
                "executor": {"log_root": str(self._home / "logs")},
            },
            "zuul_return_file": str(self._home / "returned.json"),
        }
        done = subprocess.run(
            [
                str(self._ansible),
                "--inventory=localhost,",
                "--connection=local",
                f"--extra-vars={json.dumps(variables)}",
                str(PLAYBOOKS / playbook),
            ],
            env=os.environ
            | LENIENT
            | {
                "HOME": str(self._home),
                "ANSIBLE_ACTION_PLUGINS": str(Path(__file__).parent / "action_plugins"),
                "ANSIBLE_LOCALHOST_WARNING": "false",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode and playbook != "run.yaml":
            click.echo(done.stdout)
        return done.returncode

    def _commit(self, sleep_s: float) -> None:
        self._number += 1
        text = _SERVICE.format(sleep_s=sleep_s, number=self._number)
        (self._project / "shop.py").write_text(text, encoding="utf-8")
        self._git("add", ".")
        self._git("commit", "--quiet", "--message", f"Change {self._number}")

    def _git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=trial", "-c", "user.email=trial@example.org")
        subprocess.run(["git", "-C", str(self._project), *identity, *arguments], check=True)


@click.command()
@click.option("--tools", type=click.Path(path_type=Path), required=True, help="With Ansible.")
@click.option("--trials", type=click.IntRange(1), default=20, show_default=True, help="Of each.")
def main(tools: Path, trials: int) -> None:
    """Play the job, with and without a regression in turn."""
    counts = {True: 0, False: 0}
    with tempfile.TemporaryDirectory() as folder:
        job = Job(tools, Path(folder))
        job.prepare()
        for number in range(1, trials + 1):
            for slower in (True, False):
                code, comment = job.judge(slower=slower)
                counts[slower] += bool(code)
                first = comment.splitlines()[0]
                click.echo(f"{number:3} {'slower' if slower else 'equal':7} {code} {first}")
    click.echo(f"found {counts[True]} of {trials}, false alarms {counts[False]} of {trials}")
    found, false = counts[True] >= SHARE_FOUND * trials, counts[False] <= SHARE_FALSE * trials
    sys.exit(0 if found and false else 1)


if __name__ == "__main__":
    main()
