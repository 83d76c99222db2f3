"""Archives in Swift: pages, tokens that end, and errors of the cloud."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.json_server import LoopbackServer, QuietHandler, serving
from osbench.common.errors import ArchiveError, UsageError
from osbench.edges.history.archives.archive_store import ArchiveStore, store_of
from osbench.edges.openstack.coordinator import swift_store
from servers.child import PATIENCE_S

URL = "swift://team/shop"
OVERRIDE = "OS_OBJECT_STORE_ENDPOINT_OVERRIDE"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    """A cloud with an empty container, and the variables of its administrator."""
    with fake_cloud() as found:
        found.absent.discard("object-store")
        (project,) = found.objects["projects"]
        found.containers[project] = {"team": {}}
        for name in [one for one in os.environ if one.startswith("OS_")]:
            monkeypatch.delenv(name)
        for name, value in found.variables().items():
            monkeypatch.setenv(name, value)
        yield found


def objects(cloud: FakeCloud) -> dict[str, bytes]:
    (kept,) = cloud.containers.values()
    return kept["team"]


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "local"
    path.write_bytes(b"a run" * 1000)
    return path


def test_a_folder_of_more_than_a_page_is_listed_whole(cloud: FakeCloud) -> None:
    cloud.store_page = 2
    for number in range(7):
        objects(cloud)[f"shop/index/{number}"] = b"x" * number
    objects(cloud).update({"shop/index/below/1": b"", "shop/index/": b"", "shop/runs/8": b""})

    assert store_of(URL).listed("index") == {str(number): number for number in range(7)}


@pytest.mark.parametrize(
    ("url", "prefix"), [("swift://team", ""), ("swift://team/a b?c#d/ü/", "a b?c#d/ü/")]
)
def test_any_name_of_a_folder(cloud: FakeCloud, local: Path, url: str, prefix: str) -> None:
    store = store_of(url)

    store.put(local, "index/one")

    assert objects(cloud) == {f"{prefix}index/one": local.read_bytes()}
    assert store.listed("index") == {"one": 5000}
    assert store.read(["index/one"]) == {"index/one": local.read_bytes()}


def test_a_token_that_ends_is_renewed_before_a_file_is_sent(cloud: FakeCloud, local: Path) -> None:
    store = store_of(URL)
    store.listed("index")
    cloud.tokens.clear()

    store.put(local, "index/one")

    assert objects(cloud) == {"shop/index/one": local.read_bytes()}
    assert sum(method == "PUT" for method, *_ in cloud.seen) == 1


def test_a_file_that_was_sent_in_part_is_not_stored(cloud: FakeCloud, local: Path) -> None:
    # the client repeats the request, with nothing left of the file
    cloud.faults.append(["PUT /swift", 401, 1])

    with pytest.raises(ArchiveError, match=r"cannot write index/one: PUT .*: 422"):
        store_of(URL).put(local, "index/one")

    assert objects(cloud) == {}


def test_missing_variables_are_named(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OS_PASSWORD")

    with pytest.raises(UsageError, match=f"the archive {URL}: environment: OS_PASSWORD is not set"):
        store_of(URL)
    for name in cloud.variables():
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=f"the archive {URL}: Swift needs the variables of"):
        store_of(URL)


def test_a_url_without_a_container_is_refused() -> None:
    with pytest.raises(UsageError, match="name a container, as in swift://CONTAINER/FOLDER"):
        store_of("swift:///shop")


def steps(store: ArchiveStore, local: Path) -> list[Callable[[], object]]:
    return [
        store.is_missing,
        lambda: store.listed("index"),
        lambda: store.size("index/one"),
        lambda: store.read(["index/one"]),
        lambda: store.get("index/one", local),
        lambda: store.put(local, "index/one"),
    ]


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        ("/swift", 503, "/swift/team.*: 503"),
        ("/swift", 403, "/swift/team.*: 403"),
        ("/v3/auth", 401, "gave no token to user 'admin' of project 'admin'"),
        ("/v3/auth", 500, "gave no token to user 'admin' of project 'admin'"),
    ],
)
def test_a_refusal_is_one_message(
    cloud: FakeCloud, local: Path, request_: str, status: int, said: str
) -> None:
    store = store_of(URL)
    cloud.faults.append([request_, status, 1000])

    for step in steps(store, local):
        with pytest.raises(ArchiveError, match=f"the archive {URL}: cannot .*{said}"):
            step()


def test_a_cloud_that_does_not_answer_is_one_message(
    cloud: FakeCloud, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/v3")

    for step in steps(store_of(URL), local):
        with pytest.raises(ArchiveError, match=r"cannot .*refused"):
            step()


def test_a_cloud_without_swift_is_one_message(cloud: FakeCloud) -> None:
    cloud.absent.add("object-store")

    with pytest.raises(ArchiveError, match=r"list index: .*no service of type object-store"):
        store_of(URL).listed("index")


def test_a_missing_container_is_an_error(cloud: FakeCloud, local: Path) -> None:
    store = store_of("swift://taem/shop")

    for step in (
        store.is_missing,
        lambda: store.listed("index"),
        lambda: store.put(local, "index/one"),
    ):
        with pytest.raises(ArchiveError, match="swift://taem/shop: there is no container taem: ch"):
            step()


def test_a_file_too_large_for_swift_is_not_sent(
    cloud: FakeCloud, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swift_store, "MOST_BYTES", 4999)

    with pytest.raises(ArchiveError, match="and Swift takes objects of at most"):
        store_of(URL).put(local, "index/one")

    assert cloud.seen == []


class _Other(QuietHandler):
    """Responds as no Swift does; cuts objects off."""

    def do_GET(self) -> None:
        if "?" in self.path:
            return self.answer(200, {"not": "a list"})
        self.send_response(200)
        self.send_header("Content-Length", "5000")
        self.end_headers()
        self.wfile.write(b"x" * 10)
        self.close_connection = True
        return None

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True


def test_a_server_that_cuts_off_or_is_another_one_is_one_message(
    cloud: FakeCloud, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(LoopbackServer(_Other)) as other:
        monkeypatch.setenv(OVERRIDE, other.url)
        store = store_of(URL)

        for step in steps(store, local)[1:5]:
            with pytest.raises(ArchiveError, match=r"cannot (list|read) index"):
                step()


def test_a_full_disk_is_not_the_archives_fault(cloud: FakeCloud) -> None:
    objects(cloud)["shop/index/one"] = b"x"

    with pytest.raises(OSError, match="No space left"):
        store_of(URL).get("index/one", Path("/dev/full"))


class _Wordy(QuietHandler):
    """Refuses objects, with a body of 64 MiB; notes if it is not read."""

    ended = threading.Event()

    def do_GET(self) -> None:
        self.send_response(500)
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(1 << 10):
                self.wfile.write(b'{"message": "x"}'.ljust(1 << 16))
        except OSError:
            self.ended.set()


def test_an_error_is_not_read_to_its_end(
    cloud: FakeCloud, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(LoopbackServer(_Wordy)) as other:
        monkeypatch.setenv(OVERRIDE, other.url)

        with pytest.raises(ArchiveError, match=r"cannot read index/one: GET .*: 500"):
            store_of(URL).get("index/one", local)

        # the connection is closed
        assert _Wordy.ended.wait(PATIENCE_S)


def test_an_error_of_an_object_has_the_words_of_swift(cloud: FakeCloud, local: Path) -> None:
    cloud.faults.append(["GET /swift", 503, 1])

    with pytest.raises(ArchiveError, match=r"503.*: as the test says"):
        store_of(URL).get("index/one", local)
