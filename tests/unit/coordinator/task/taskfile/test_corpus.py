"""Rally's own sample tasks are understood, whatever they ask for, without Rally."""

import re
import sys

import pytest

from helpers.corpus import ABSENT, task_files
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import load, parse
from osbench.coordinator.task.taskfile.loading import read_document
from osbench.coordinator.task.taskfile.semantics import check

#: The message about a plug-in that only Rally has.
RALLYS = re.compile(
    r"^(scenario|context|SLA criterion|hook|trigger) '([^']*)' is a plug-in of Rally,"
    r" which is not installed: pip install 'osbench\[rally\]'$"
)

#: Scenarios that Rally keeps next to its own job, in a folder of plug-ins.
OF_A_JOB = re.compile(r"there is no scenario '(FakePlugin|RallyProfile)\.\w+'")


@pytest.fixture(scope="module", autouse=True)
def without_rally():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rally", None)
        yield


@pytest.fixture(scope="module")
def samples():
    """Every sample as a task, by its path."""
    tasks = {}
    wrong = []
    for path in task_files():
        try:
            tasks[path] = parse(read_document(str(path), {}), str(path))
        except TaskError as error:
            wrong.append(str(error))
    assert wrong == []
    return tasks


@pytest.fixture(scope="module")
def plugins():
    return Plugins()


@pytest.fixture(scope="module")
def problems(samples, plugins):
    """What osbench's own plug-ins cannot do of all samples."""
    return [(task.source, problem) for task in samples.values() for problem in check(task, plugins)]


def test_every_sample_parses(samples):
    workloads = sum(len(task.workloads) for task in samples.values())

    assert workloads > len(samples) > 700
    assert {task.version for task in samples.values()} == {2}


def test_samples_lack_nothing_but_plugins_of_rally(problems):
    wrong = [
        f"{source}: {problem}"
        for source, problem in problems
        if not any(known.search(problem.message) for known in (RALLYS, OF_A_JOB, ABSENT))
    ]

    assert wrong == []


def test_every_scenario_of_rally_without_openstack_is_present(problems):
    absent = {
        found.group(2)
        for _, problem in problems
        if (found := RALLYS.search(problem.message)) and found.group(1) == "scenario"
    }

    ours = {name for name in absent if re.match(r"(Dummy|HttpRequests)\.", name)}

    assert ours <= {"Dummy.openstack"}


def test_samples_that_need_nothing_else_load(samples, problems, plugins):
    refused = {source for source, _ in problems}

    loaded = [
        load(str(path), args={}, plugins=plugins) for path in samples if str(path) not in refused
    ]

    assert len(loaded) >= 20
    assert all(workload.description for task in loaded for workload in task.workloads)
