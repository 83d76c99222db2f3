"""Task files get from us the verdict that Rally's own loader gives them, and hold as much."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helpers.corpus import ABSENT, corpus, task_files
from helpers.rally_loader import Loaded, RallyLoader
from osbench.common.errors import Problem, TaskError
from osbench.common.plugin.plugin_names import RALLY
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import parse
from osbench.coordinator.task.taskfile.loading import read_document
from osbench.coordinator.task.taskfile.semantics import check

HEADS = ("files", "workloads", "scenarios", "contexts", "accepted", "refused")

#: The plug-in or the file that Rally's refusals of samples are about.
SUBJECT = re.compile(r"There is no \w+ plugin `([^`]+)`|Could not open (\S+)")
#: Refusals of scenarios that no release of Rally has, and osbench has.
NEWER = re.compile(r"There is no \w+ plugin `NeutronFWaaS\.")


@dataclass(kw_only=True)
class Ours:
    """A task file as osbench sees it."""

    workloads: int = 0
    scenarios: Counter[str] = field(default_factory=Counter)
    contexts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    #: The same where our own plug-ins take the place of Rally's.
    natively: list[Problem] = field(default_factory=list)

    @property
    def refusal(self) -> str:
        return "\n".join(map(str, self.problems))


def ours(
    path: Path,
    plugins: Plugins,
    native: Plugins | None = None,
    known: dict[str, Ours] | None = None,
) -> Ours:
    """Counts of a file, and what is wrong with it, by some plug-ins and by others.

    `known` has what was found of documents: most samples are there as YAML and as JSON.
    """
    known = {} if known is None else known
    try:
        document = read_document(str(path), {})
    except TaskError as error:
        return Ours(problems=error.problems)
    # not sorted: the order of keys may decide what is refused first
    key = json.dumps(document, default=repr)
    if key not in known:
        known[key] = of_document(document, path, plugins, native)
    return known[key]


def of_document(document: Any, path: Path, plugins: Plugins, native: Plugins | None) -> Ours:
    found = Ours()
    try:
        task = parse(document, str(path))
    except TaskError as error:
        found.problems = error.problems
        return found
    found.workloads = len(task.workloads)
    found.scenarios.update(one.scenario for one in task.workloads)
    found.contexts.update(
        context.name.partition("@")[0] for one in task.workloads for context in one.contexts
    )
    found.problems = check(task, plugins)
    found.natively = check(task, native) if native is not None else []
    return found


@pytest.fixture(scope="module")
def rally() -> RallyLoader:
    return RallyLoader()


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    """Rally's where both have a plug-in, for a like comparison."""
    return Plugins(prefer=RALLY)


@pytest.fixture(scope="module")
def verdicts(
    rally: RallyLoader, plugins: Plugins, tmp_path_factory: pytest.TempPathFactory
) -> dict[Path, tuple[Ours, Loaded]]:
    """Both verdicts on every file, from a folder that holds none of the files they name."""
    native, known = Plugins(), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        found = {
            path: (ours(path, plugins, native, known), rally.load(path)) for path in task_files()
        }
    # scenarios that are newer than this Rally are osbench's own
    return {path: pair for path, pair in found.items() if not NEWER.search(pair[1].refusal)}


def numbers(files: list[Any]) -> tuple[int, ...]:
    return (
        len(files),
        sum(one.workloads for one in files),
        len(set().union(*(one.scenarios for one in files))),
        len(set().union(*(one.contexts for one in files))),
        sum(not one.refusal for one in files),
        sum(bool(one.refusal) for one in files),
    )


def test_counts_are_those_of_rally(verdicts, capsys):
    projects = {name: [] for name in ("rally", "rally-openstack")}
    for path, pair in verdicts.items():
        projects[path.relative_to(corpus()).parts[0]].append(pair)
    counted = {
        (name, side): numbers([pair[at] for pair in pairs])
        for name, pairs in projects.items()
        for at, side in enumerate(("osbench", "Rally"))
    }

    with capsys.disabled():
        print("\n" + " " * 26 + "".join(f"{word:>10}" for word in HEADS))
        for (name, side), found in counted.items():
            print(f"{f'{name}, by {side}':26}" + "".join(f"{number:10}" for number in found))
    different = [
        path
        for path, (mine, rallys) in verdicts.items()
        if (mine.workloads, mine.scenarios, mine.contexts)
        != (rallys.workloads, rallys.scenarios, rallys.contexts)
    ]
    assert different == []
    assert all(counted[name, "osbench"] == counted[name, "Rally"] for name in projects)


def test_samples_are_refused_for_what_rally_refuses_them_for(verdicts):
    refused = {path: pair for path, pair in verdicts.items() if pair[1].refusal}

    subjects = {path: SUBJECT.search(rallys.refusal) for path, (_, rallys) in refused.items()}
    unknown = [refused[path][1].refusal for path, found in subjects.items() if not found]
    missed = [
        (found[0], refused[path][0].refusal)
        for path, found in subjects.items()
        if found and (found[1] or found[2]) not in refused[path][0].refusal
    ]

    assert refused
    assert unknown == missed == []


def test_our_own_plugins_take_whatever_rally_takes(verdicts):
    refused = {
        str(path): str(problem)
        for path, (mine, rallys) in verdicts.items()
        for problem in mine.natively
        if not rallys.refusal and not ABSENT.search(problem.message)
    }

    assert refused == {}


def v2(scenario: dict[str, Any], **more: Any) -> str:
    subtask = {"title": "s", "scenario": scenario, **more}
    return json.dumps({"version": 2, "title": "t", "subtasks": [subtask]})


BOOT = {"NovaServers.boot_server": {"image": {"name": "i"}, "flavor": {"name": "f"}}}
HOOK = {"action": {"sys_call": "true"}, "trigger": {"event": {"unit": "time", "at": [1]}}}

#: Files that Rally refuses, and a word of the cause that both have to name.
BAD = {
    "nothing": ("", "empty"),
    "a list": ("[1]", "dict|object"),
    "no YAML": ("{version: 2", "flow mapping"),
    "a version to come": ('{"version": 3}', "version"),
    "no version": ('{"title": "t", "subtasks": []}', "version|is not of type 'array'"),
    "no title": ('{"version": 2, "subtasks": []}', "title"),
    "an unknown key": ('{"version": 2, "title": "t", "subtasks": [], "more": 1}', "more"),
    "no scenario": (
        '{"version": 2, "title": "t", "subtasks": [{"title": "s", "runner": {"serial": {}}}]}',
        "scenario",
    ),
    "two scenarios": (v2({"Dummy.dummy": {}, "Dummy.failure": {}}), "too many|names 2 scenarios"),
    "an argument of the template": ("Dummy.dummy: [{args: {sleep: {{ pause }} } }]", "pause"),
    "a scenario": (v2({"Dummy.nothing": {}}), "Dummy.nothing"),
    "a scenario that is no more": (
        '{"SenlinClusters.create_and_delete_cluster": [{}]}',
        "SenlinClusters.create_and_delete_cluster",
    ),
    "arguments that are missing": (v2({"NovaServers.boot_server": {}}), "'image'"),
    "an argument too many": (
        v2({"Authenticate.validate_nova": {"repetitions": 1, "slep": 1}}),
        "'slep'",
    ),
    "an argument of another type": (v2({"Dummy.openstack": {"sleep": "long"}}), "'sleep'"),
    "a number out of bounds": (
        v2({"NeutronTrunks.create_and_list_trunks": {"subport_count": 0}}),
        "subport_count",
    ),
    "a value that is none of those": (
        v2({"NeutronBGPVPN.create_and_list_bgpvpns": {"bgpvpn_type": "l4"}}),
        "bgpvpn_type",
    ),
    "a parameter of Rally's own": (
        v2({"NeutronNetworks.create_and_list_networks": {"network_create_args": {"name": "n"}}}),
        "name",
    ),
    "a context that the scenario needs": (
        v2({"CinderVolumeTypes.create_get_and_delete_encryption_type": {}}),
        "volume_types",
    ),
    "a context": (v2(BOOT, contexts={"castles": {}}), "castles"),
    "a context that is no more": (v2(BOOT, contexts={"profiles": {}}), "profiles"),
    "a context's configuration": (v2(BOOT, contexts={"users": {"tenants": 0}}), "tenants"),
    "a hidden context": (v2(BOOT, contexts={"cleanup": ["nova"]}), "cleanup"),
    "a criterion": (v2(BOOT, sla={"speed": {}}), "speed"),
    "a criterion's configuration": (v2(BOOT, sla={"failure_rate": {"max": 101}}), "101"),
    "a runner": (v2(BOOT, runner={"endless": {}}), "endless"),
    "a runner's configuration": (v2(BOOT, runner={"constant": {"times": 0}}), "times"),
    "more users than iterations": (
        v2(BOOT, runner={"constant": {"times": 1, "concurrency": 2}}),
        "concurrency",
    ),
    "a hook": (v2(BOOT, hooks=[{**HOOK, "action": {"call": "x"}}]), "call"),
    "a trigger": (v2(BOOT, hooks=[{**HOOK, "trigger": {"never": {}}}]), "never"),
    "a trigger's configuration": (
        v2(BOOT, hooks=[{**HOOK, "trigger": {"event": {"unit": "day", "at": [1]}}}]),
        "day",
    ),
}

GOOD = {
    "version 1": '{"NovaServers.boot_server": [{"args": {"image": {"name": "i"}, "flavor": {}}}]}',
    "version 1 with all it knows": json.dumps(
        {
            "Dummy.openstack": [
                {
                    "args": {"sleep": 0.1},
                    "runner": {"type": "constant", "times": 4, "concurrency": 2},
                    "context": {"users": {"tenants": 1, "users_per_tenant": 1}},
                    "sla": {"failure_rate": {"max": 0}},
                    "hooks": [
                        {
                            "name": "sys_call",
                            "args": "true",
                            "trigger": {"name": "event", "args": {"unit": "time", "at": [2]}},
                        }
                    ],
                },
                {},
            ]
        }
    ),
    "version 2": v2(BOOT, contexts={"users@openstack": {}}, hooks=[HOOK]),
    "a default in the template": "{% set pause = pause or 1 %}\n"
    "Dummy.dummy: [{args: {sleep: {{ pause }} } }]",
}


@pytest.mark.parametrize(("text", "cause"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_both_for_one_cause(text, cause, rally, plugins, tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(text)

    mine, rallys = ours(path, plugins), rally.load(path)

    assert re.search(cause, rallys.refusal), rallys.refusal
    assert re.search(cause, mine.refusal), mine.refusal


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good_files_are_accepted_by_both(text, rally, plugins, tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(text)

    mine, rallys = ours(path, plugins), rally.load(path)

    assert (mine.refusal, rallys.refusal) == ("", "")
    assert (mine.scenarios, mine.contexts) == (rallys.scenarios, rallys.contexts)
