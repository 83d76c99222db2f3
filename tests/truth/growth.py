"""The command of `make growth-truth`: laws with drawn coefficients, planted in a service.

Each round draws the populations and the coefficients of five calls, starts a service that has them,
runs `osbench-coord grow`, and compares the laws that it names from spans with the planted ones.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from helpers.commands import BIN, LENIENT, environment
from helpers.readme import REPOSITORY
from servers import Child, free_port

#: Planted calls, by name.
LAWS = ("constant", "logarithmic", "linear", "quadratic", "n_plus_one")
SERVICE = REPOSITORY / "samples" / "filling_service.py"
#: Spans of a request at most: a machine that is busy takes long to send more.
_MOST = 1500
#: Iterations of a run.
_TIMES = 8


@dataclass(frozen=True, kw_only=True)
class Planted:
    """The plan of a round: populations, and the fields of the service's calls."""

    populations: tuple[int, ...]
    calls: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def named(law: str) -> tuple[str, str, bool]:
        """Return what is right for a call: laws of statements and bytes, and whether it is N+1."""
        statements = {"linear": "constant", "n_plus_one": "linear"}.get(law, law)
        size = "linear" if law in ("linear", "n_plus_one") else "constant"
        return statements, size, law == "n_plus_one"


def planted(seed: int) -> Planted:
    """Draw populations, and the calls of all laws."""
    chance = random.Random(f"growth {seed}")
    first, ratio = chance.randint(8, 20), chance.uniform(3, 5)
    populations = tuple(round(first * ratio**step) for step in range(chance.choice((3, 4))))
    greatest = populations[-1]
    most = _MOST / greatest

    def call(law: str, each: float, **more: Any) -> Mapping[str, Any]:
        quick = {"statement_s": chance.uniform(1e-6, 1e-5), "port_s": chance.uniform(1e-6, 1e-5)}
        return {"law": law, "base": chance.randint(1, 12), "each": each, **quick, **more}

    calls = {
        "constant": call("constant", 0),
        "logarithmic": call("logarithmic", chance.uniform(1, 6)),
        "linear": call("constant", 0, returns_all=True),
        "quadratic": call("quadratic", chance.uniform(0.3, 1) * most / greatest),
        "n_plus_one": call("linear", chance.uniform(0.6, min(3, most)), returns_all=True),
    }
    return Planted(populations=populations, calls=calls)


def grown(plan: Planted, home: Path) -> dict[str, tuple[str, str, bool]]:
    """Run `grow` with a planted service; return what it names for each call, as `Planted.named`."""
    port, otlp = free_port(), f"127.0.0.1:{free_port()}"
    (home / ".osbench").mkdir(mode=0o700)
    # all spans are sent before their response
    (home / ".osbench" / "osbench.conf").write_text("[traces]\notlp_late_s = 0.5\n")
    calls = {f"/{name}": call for name, call in plan.calls.items()}
    (home / "calls.json").write_text(json.dumps(calls))
    (home / "task.yaml").write_text(yaml.safe_dump(_task(port, list(plan.calls))))
    serve = [sys.executable, str(SERVICE), "--port", str(port), "--calls", str(home / "calls.json")]
    fill = f"{sys.executable} {SERVICE} --port {port} --fill $POPULATION"
    at = ",".join(map(str, plan.populations))
    log = home / "service"
    child = Child(
        serve, folder=home, log=log, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{otlp}"}
    )
    try:
        assert child.wait_until(lambda: "serving at" in log.read_text()), child.tail()
        done = subprocess.run(
            [
                *(str(BIN / "osbench-coord"), "grow", str(home / "task.yaml")),
                *("--populate", fill, "--at", at, "--otlp", otlp, "--json", "--quiet"),
            ],
            cwd=home,
            env=environment(home) | LENIENT,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        child.end()
    assert done.returncode == 0, done.stdout + done.stderr
    return {one["action"]: _named(one) for one in json.loads(done.stdout)["requests"]}


def _named(request: Mapping[str, Any]) -> tuple[str, str, bool]:
    measures = request["measures"]
    laws = (measures["sql"]["law"], measures["bytes"]["law"])
    return *laws, request["n_plus_one"]


def _task(port: int, names: list[str]) -> dict[str, Any]:
    steps = [{"name": name, "path": f"/{name}"} for name in names]
    subtask = {
        "title": "Calls",
        "scenario": {"HttpFlow.run": {"base": f"http://127.0.0.1:{port}", "steps": steps}},
        "runner": {"constant": {"times": _TIMES, "concurrency": 1}},
    }
    return {"version": 2, "title": "Planted laws", "subtasks": [subtask]}


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(1), default=20, help="Services to plant.")
@click.option("--first", default=1, help="Seed of the first one.")
def main(rounds: int, first: int) -> None:
    """Plant constant, logarithmic, linear, quadratic and N+1 calls, and count the right answers.

    Coefficients and populations are drawn. The exit code is 1 if a law is named wrongly.
    """
    right: Counter[str] = Counter()
    begun = time.monotonic()
    for seed in range(first, first + rounds):
        plan = planted(seed)
        with tempfile.TemporaryDirectory(prefix="osbench-growth-") as home:
            found = grown(plan, Path(home))
        wrong = [name for name in LAWS if found.get(name) != Planted.named(name)]
        right.update(name for name in LAWS if name not in wrong)
        said = (
            "right"
            if not wrong
            else "WRONG: "
            + ", ".join(f"{name} {found.get(name)} {plan.calls[name]}" for name in wrong)
        )
        click.echo(f"seed {seed:3} at {', '.join(map(str, plan.populations))}: {said}")
    click.echo(f"\n{rounds} services in {time.monotonic() - begun:.0f} s")
    for name in LAWS:
        click.echo(f"{name:12} named in {right[name]} of {rounds}")
    sys.exit(0 if all(right[name] == rounds for name in LAWS) else 1)


if __name__ == "__main__":
    main()
