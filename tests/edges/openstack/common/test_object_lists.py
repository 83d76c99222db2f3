"""Lists of objects from all pages, also of services that ignore the marker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from osbench.edges.openstack.common import neutron, object_lists

PAGES = [[{"id": "a"}, {"id": "b"}], [{"id": "c"}]]
NEXT = {"networks_links": [{"rel": "next", "href": "http://cloud/networks?marker=b"}]}


class Paged:
    """A cloud whose list has two pages; it may ignore which of them is requested."""

    def __init__(self, *, ignores: bool) -> None:
        self._ignores = ignores
        self.requests = 0

    def document(self, *_: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.requests += 1
        first = self._ignores or "marker" not in params
        return {"networks": PAGES[0], **NEXT} if first else {"networks": PAGES[1]}


@pytest.mark.parametrize("listed", [neutron.pages, object_lists.listed_objects])
@pytest.mark.parametrize(("ignores", "found"), [(False, "abc"), (True, "ab")])
def test_pages_are_read_while_they_bring_new_objects(
    listed: Callable[..., list[dict[str, Any]]], ignores: bool, found: str
) -> None:
    cloud = Paged(ignores=ignores)

    objects = listed(cloud, "neutron", "networks", "networks", {})

    assert "".join(one["id"] for one in objects) == found
    assert cloud.requests == 2
