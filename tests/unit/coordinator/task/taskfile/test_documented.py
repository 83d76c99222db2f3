"""The task files that the documentation of Rally's main concepts shows are understood."""

import json

from osbench.coordinator.task.taskfile import parse

FLAVOR_42 = {"flavor_id": 42, "image_id": "73257560-c59b-4275-a1ec-ab140e5b9979"}
FLAVOR_1 = {"flavor_id": 1, "image_id": "3ba2b5f6-8d8d-4bbe-9ce5-4be01d912679"}
CONTEXT = {
    "users": {"tenants": 1, "users_per_tenant": 3},
    "quotas": {"nova": {"instances": 20}},
}


def understood(document):
    return parse(json.loads(json.dumps(document)), "task.json")


def test_two_scenarios_with_runners_that_name_no_type():
    task = understood(
        {
            "NovaServers.boot_server": [
                {"args": FLAVOR_42, "runner": {"times": 3}, "context": CONTEXT},
                {"args": FLAVOR_1, "runner": {"times": 3}, "context": CONTEXT},
            ],
            "CinderVolumes.create_volume": [
                {"args": {"size": 42}, "runner": {"times": 3}, "context": CONTEXT}
            ],
        }
    )

    assert [w.scenario for w in task.workloads] == [
        "NovaServers.boot_server",
        "NovaServers.boot_server",
        "CinderVolumes.create_volume",
    ]
    assert [w.args for w in task.workloads] == [FLAVOR_42, FLAVOR_1, {"size": 42}]
    assert {(w.runner.name, w.runner.config["times"]) for w in task.workloads} == {("serial", 3)}
    assert [w.position for w in task.workloads] == [0, 1, 0]


def test_a_constant_load_within_contexts():
    task = understood(
        {
            "NovaServers.boot_server": [
                {
                    "args": FLAVOR_42,
                    "runner": {"type": "constant", "times": 15, "concurrency": 2},
                    "context": CONTEXT,
                }
            ]
        }
    )

    (workload,) = task.workloads
    assert workload.runner.name == "constant"
    assert workload.runner.config == {"times": 15, "concurrency": 2}
    assert {context.name: context.config for context in workload.contexts} == CONTEXT


def test_hooks_of_both_versions_are_the_same():
    hook = {"name": "call", "args": "x", "trigger": {"name": "event", "args": {"unit": "time"}}}
    old = understood({"Dummy.dummy": [{"hooks": [hook]}]})
    new = understood(
        {
            "version": 2,
            "title": "t",
            "subtasks": [
                {
                    "title": "s",
                    "scenario": {"Dummy.dummy": {}},
                    "hooks": [{"action": {"call": "x"}, "trigger": {"event": {"unit": "time"}}}],
                }
            ],
        }
    )

    assert old.workloads[0].hooks == new.workloads[0].hooks
    assert old.workloads[0].hooks[0].action.config == "x"
