"""What is put under load, by the arguments of a workload."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.coordinator.load.run.workload.targets import MOST, targets_of


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"url": "http://ann:secret@shop:8080/items?token=x"}, ("http://shop:8080",)),
        ({"requests": [{"url": "https://a/"}, {"url": "https://a/b"}]}, ("https://a",)),
        ({"base": "http://[::1]:80", "steps": [{"get": "/x"}]}, ("http://[::1]:80",)),
        ({"url": "http://"}, ()),
        ({"url": "http://a:port/"}, ()),
        ({"sleep": 1.5, "note": "see http://a/"}, ()),
    ],
)
def test_addresses_are_told_without_paths_and_credentials(
    args: dict[str, Any], found: tuple[str, ...]
) -> None:
    assert targets_of(args) == found


def test_of_many_addresses_some_are_told() -> None:
    requests = [{"url": f"http://host{n}/"} for n in range(20)]

    assert targets_of({"requests": requests}) == tuple(f"http://host{n}" for n in range(MOST))
