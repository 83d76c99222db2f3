"""Whatever a document holds, it is a task or a list of problems."""

from hypothesis import given
from hypothesis import strategies as st

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.task.taskfile import parse
from osbench.coordinator.task.taskfile.document import parse_document
from osbench.coordinator.task.taskfile.semantics import check, notes

KEYS = [
    "version",
    "title",
    "subtasks",
    "workloads",
    "scenario",
    "runner",
    "sla",
    "hooks",
    "contexts",
    "context",
    "args",
    "description",
    "tags",
    "action",
    "trigger",
    "name",
    "type",
    "times",
    "concurrency",
    "rps",
    "start",
    "end",
    "step",
    "duration",
    "timeout",
    "max_concurrency",
    "max_cpu_count",
    "constant",
    "serial",
    "constant_for_duration",
    "failure_rate",
    "max",
    "Dummy.dummy",
    "Dummy.failure",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(-1, 3) | st.sampled_from(KEYS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)
NAMED = st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=1)
WORKLOADS = st.fixed_dictionaries(
    {"scenario": NAMED},
    optional={"runner": NAMED, "sla": VALUES, "contexts": VALUES, "hooks": VALUES},
)
PLUGINS = Plugins()


def understood(document):
    try:
        task = parse(document, "task.yaml")
    except TaskError as error:
        assert error.problems
        return
    assert isinstance(task, Task)
    if not check(task, PLUGINS):
        notes(task, PLUGINS)


@given(VALUES)
def test_any_document(document):
    understood(document)


@given(st.dictionaries(st.sampled_from(KEYS), st.lists(VALUES, max_size=2), max_size=2))
def test_any_version_1(document):
    understood(document)


@given(st.lists(WORKLOADS, max_size=3))
def test_any_workloads(workloads):
    subtask = {"title": "s", "workloads": workloads}
    understood({"version": 2, "title": "t", "subtasks": [subtask]})


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!<\"'\n\t ,?#|>%@`0.1"), max_size=40))
def test_any_text(text):
    value, problems = parse_document(text)

    assert value is None or isinstance(value, dict | list | str | int | float)
    assert all(str(problem) for problem in problems)
