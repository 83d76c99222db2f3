"""The sample task of S3 runs on a small server: its figures are reported, and nothing stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.fake_cloud import fake_cloud
from helpers.fake_s3 import FakeS3, fake_s3
from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks
from helpers.runs import Finished, Site
from servers import folder

pytestmark = pytest.mark.functional

TASK = ("samples/tasks/s3.yaml", "--task-args", "times: 60\nobjects: 20\nuploads: 2")
SECRET = "planted-secret-key-0123456789"


@pytest.fixture
def server() -> Iterator[FakeS3]:
    with fake_s3() as found:
        yield found


@pytest.fixture
def here(guest: Site) -> Site:
    """A site with the samples."""
    (guest.home / "samples").symlink_to(REPOSITORY / "samples")
    return guest


def record(server: FakeS3) -> dict[str, object]:
    address = server.url.replace("//", f"//AKIDEXAMPLE:{SECRET}@")
    return {"osbench": {"services": {"s3": address}}}


def ok(done: Finished) -> Finished:
    assert done.code == 0, done.out + done.err
    return done


def test_the_sample_runs_with_keys_of_the_record(here: Site, server: FakeS3) -> None:
    here.deployment(record(server), "store")

    done = ok(here.run(*TASK))

    mix, parts = done.result["workloads"]
    assert (mix["accounting"]["ok"], parts["accounting"]["ok"]) == (60, 2)
    assert [one["criterion"] for one in mix["sla"]] == [
        "failure_rate",
        "first_byte",
        "transfer_rate",
    ]
    assert all(one["success"] for one in mix["sla"])
    phases = mix["requests"]["actions"]["s3.get_object"]["phases"]
    assert phases["wait"]["count"] > 0
    assert parts["requests"]["total"]["sent_bytes"] > 2 * (12 << 20)
    shown = ok(here.coord("results", done.result["run_id"], "--details")).out
    assert "Rate of transfers, MB/s" in shown
    assert server.buckets == {}
    assert server.uploads == {}
    (run,) = (here.data / "runs").iterdir()
    kept = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    for text in (done.out, done.err, shown, kept.decode("latin-1")):
        assert SECRET not in text


def test_the_sample_runs_with_credentials_of_keystone(here: Site, server: FakeS3) -> None:
    with fake_cloud() as cloud:
        here.deployment(cloud.deployment(endpoint_overrides={"s3": server.url}), "cloud")

        done = ok(here.run(*TASK))

        assert cloud.objects["ec2_credentials"] == {}
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [60, 2]
    assert len({access for _, _, access in server.seen}) == 2
    assert server.buckets == {}


def test_a_server_that_fails_is_named_with_its_code(here: Site, server: FakeS3) -> None:
    here.deployment(record(server), "store")
    server.faults.append(["GET /osb[^?]*$", 503, "SlowDown", 1000])

    done = here.run(
        *("--scenario", "S3Objects.get_object", "--times", "5"), "--deployment", "store"
    )

    assert done.code == 1, done.err
    (error,) = done.result["workloads"][0]["errors"]
    assert "503 Service Unavailable: SlowDown: As the test says" in error["message"]
    assert done.result["workloads"][0]["requests"]["total"]["statuses"] == {"503": 5}
    assert server.buckets == {}


def test_the_commands_of_the_page(server: FakeS3) -> None:
    (block,) = blocks("s3", "docs/s3.md")
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        port = str(server.server_port)
        commands = replace(block, text=block.text.replace("127.0.0.1:9000", f"127.0.0.1:{port}"))

        output = Machine(home, folder=desk, forked=True).run(commands)

    assert "SECRET_KEY" not in output
    assert "500 planned = 500 ok" in output
    assert "10 planned = 10 ok" in output
    assert server.buckets == {}
