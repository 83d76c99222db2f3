"""Each operation of S3 on moto's server: real responses, and nothing stays.

`make archive-s3` installs it below `build/` and runs these tests.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import fake_cloud
from helpers.runs import Site, site
from servers import Child, free_port

boto3: Any = pytest.importorskip("boto3", reason="boto3 is not installed: make archive-s3 does")
pytest.importorskip("moto.server", reason="moto is not installed: make archive-s3 installs it")

pytestmark = pytest.mark.functional

LOADS: dict[str, dict[str, Any]] = {
    "put_object": {"size": {"min": 0, "max": "200 KiB"}},
    "get_object": {},
    "get_object_range": {"range_size": {"min": 1, "max": "64 KiB"}},
    "list_objects": {"page_size": 4},
    "delete_object": {"sign_bodies": True},
    "multipart_upload": {"size": "11 MiB", "part_size": "5 MiB"},
    "mix": {"shares": {"put": 3, "get": 3, "range": 2, "list": 1, "delete": 2}},
}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture
def port(here: Site) -> Iterator[int]:
    """The port of a server of moto."""
    found = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(found)]
    child = Child(command, folder=here.home, log=here.home / "moto")
    try:
        assert child.wait_until(lambda: _listens(found)), child.tail()
        yield found
    finally:
        child.end()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def buckets(port: int, access: str = "AKIDEXAMPLE") -> list[str]:
    """Names of the buckets, by a client that is not ours."""
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=access,
        aws_secret_access_key="s",
        region_name="us-east-1",
    )
    return [one["Name"] for one in client.list_buckets()["Buckets"]]


def task(here: Site) -> str:
    runner = {"constant": {"times": 10, "concurrency": 2}}
    return here.task(
        *(
            {
                "scenario": {f"S3Objects.{method}": args},
                "contexts": {"s3_objects": {"objects": 10, "size": "70 KiB"}},
                "runner": runner,
            }
            for method, args in LOADS.items()
        )
    )


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_all_operations_with_keys_of_a_record(here: Site, port: int, region: str) -> None:
    address = f"http://AKIDEXAMPLE:se%2Fcret%2Bkey0@127.0.0.1:{port}"
    here.deployment({"osbench": {"services": {"s3": address}}}, "store")
    text = task(here)
    if region != "us-east-1":
        content = here.home.joinpath("task.json").read_text()
        content = content.replace(
            '"contexts": {', f'"contexts": {{"s3_credentials": {{"region": "{region}"}}, '
        )
        here.home.joinpath("task.json").write_text(content)

    done = here.run(text)

    assert done.code == 0, done.out + done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [10] * len(LOADS)
    assert buckets(port) == []


def test_all_operations_with_credentials_of_keystone(here: Site, port: int) -> None:
    with fake_cloud() as cloud:
        record = cloud.deployment(endpoint_overrides={"s3": f"http://127.0.0.1:{port}"})
        here.deployment(record, "cloud")

        done = here.run(task(here))

        assert cloud.objects["ec2_credentials"] == {}
    assert done.code == 0, done.out + done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [10] * len(LOADS)
    assert buckets(port) == []


def test_errors_of_the_server_have_their_code(here: Site, port: int) -> None:
    address = f"http://AKIDEXAMPLE:secretkey0@127.0.0.1:{port}"
    here.deployment({"osbench": {"services": {"s3": address}}}, "store")
    # its least size of parts is checked when the parts are put together
    plugin = here.write(
        "gone.py",
        "from osbench.plugin import scenario\n"
        "from osbench.edges.openstack.scenarios.s3 import S3Objects\n\n"
        "class Gone(S3Objects):\n"
        "    @scenario.configure(name='Gone.gone', context={'s3_credentials': {},"
        " 's3_objects': {'objects': 1}})\n"
        "    def gone(self):\n"
        "        self.begin(0)\n"
        "        self.client.get_object('no-such-bucket', 'x')\n",
    )

    done = here.run("--scenario", "Gone.gone", "--times", "2", "--plugin-path", str(plugin))

    assert done.code == 1, done.err
    (error,) = done.result["workloads"][0]["errors"]
    assert "404 NOT FOUND: NoSuchBucket: The specified bucket does not exist" in error["message"]
    assert buckets(port) == []
