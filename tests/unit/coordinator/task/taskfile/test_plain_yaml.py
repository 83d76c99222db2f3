"""Examples in YAML have no anchors, whatever values they share."""

from __future__ import annotations

import yaml

from osbench.coordinator.task.taskfile.task_yaml import plain_yaml


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    shared = {"max": [1, 2]}

    text = plain_yaml({"first": shared, "second": shared})

    assert "&" not in text
    assert yaml.safe_load(text) == {"first": shared, "second": shared}
