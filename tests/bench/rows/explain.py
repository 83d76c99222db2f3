"""Whether explanations find what is wrong in real services, and find nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import WORKERS, Stage
from helpers.lab.injected_faults import Case, faulty_lab, glance, keystone, zaqar
from services.lab import Lab

NEEDS = ("redis",)

CLEAN = 20


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Runs of Zaqar without a fault; then Zaqar, Glance and Keystone, each with one."""
    with faulty_lab() as lab:
        file = stage.subfolder("deployment") / "lab.json"
        file.write_text(json.dumps(lab.deployment()))
        stage.configure()
        stage.coord("deployment", "create", "--name", "lab", "--file", str(file))
        cases = {"Zaqar": zaqar(lab), "Glance": glance(), "Keystone": keystone()}
        clean = interleave(
            {"clean": lambda: {"alarm": _alarm(stage, lab, cases["Zaqar"])}}, CLEAN, say
        )
        found = interleave(
            {name: _arm(stage, lab, name, case) for name, case in cases.items()}, stage.rounds, say
        )
    alarms = Comparison(
        row="explain",
        title=f"{CLEAN} runs of Zaqar without a fault: those in which a cause is named",
        unit="runs",
        osbench=(sum(clean["alarm"]),),
        target=Target(bound=1.0, at_most=True),
    )
    return [alarms, *(_line(name, found[name]) for name in cases)]


def _line(name: str, shares: tuple[float, ...]) -> Comparison:
    return Comparison(
        row="explain",
        title=f"a slow call in 3 % of the requests to {name}: its share of what is explained",
        unit="%",
        osbench=shares,
        target=Target(bound=50.0),
        note="0 where another cause is named, or none",
    )


def _alarm(stage: Stage, lab: Lab, case: Case) -> float:
    lab.plant()
    answer = _explained(stage, case)
    return float(any(one["clear"] for band in answer["bands"] for one in band["causes"]))


def _arm(stage: Stage, lab: Lab, name: str, case: Case) -> Callable[[], dict[str, float]]:
    def share() -> dict[str, float]:
        lab.plant(case.fault)
        first = _explained(stage, case)["bands"][0]["causes"][0]
        named = first["clear"] and case.is_named_by(first)
        return {name: 100 * first["share"] if named else 0.0}

    return share


def _explained(stage: Stage, case: Case) -> dict[str, Any]:
    run = stage.run(case.workload(), "--workers", str(WORKERS))
    text = stage.coord("trace", "explain", run["run_id"], "--json")
    (answer,) = json.loads(text[text.index("{") :])["answers"]
    stage.forget_runs()
    return dict(answer)
