"""The commands of the page on OpenStack clouds do what it says."""

from __future__ import annotations

import json

import pytest

from helpers.fake_cloud import fake_cloud
from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks
from servers import folder

pytestmark = pytest.mark.functional


def test_a_cloud_is_checked_loaded_and_left_as_it_was() -> None:
    (block,) = blocks("openstack-guide", "docs/openstack.md")
    with folder() as home, fake_cloud() as cloud:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        (desk / "mycloud.json").write_text(json.dumps(cloud.deployment()), "utf-8")

        output = Machine(home, folder=desk, forked=True).run(block)

        assert cloud.named("users") == cloud.named("projects") == ["admin"]
        assert cloud.named("queues") == []
    assert "version v3.14" in output
    assert " ".join(output.split()).count("40 planned = 40 ok") == 3
    assert "0 of 0 contexts undone" in output
