"""The records on disk: private, whole, one of them in use."""

import errno
import stat
from pathlib import Path

import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.coordinator.task.deployments.registry import Deployments


def shop(name, key="a-key"):
    return Deployment.from_spec(name, {"osbench": {"profiler_hmac_key": key}})


@pytest.fixture
def kept(tmp_path):
    return Deployments(tmp_path / "data")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_record_reads_back_as_it_was_kept(kept):
    kept.create(shop("lab", "k1"))

    assert kept.get("lab").profiler_hmac_key == "k1"
    assert kept.get("lab").version == kept.get("lab").version


def test_only_the_owner_may_read_records(kept, tmp_path):
    kept.create(shop("lab"))

    directory = tmp_path / "data" / "deployments"
    assert mode(directory) == 0o700
    assert mode(directory / "lab.json") == 0o600


def test_a_record_that_others_may_read_is_refused_with_the_remedy(kept, tmp_path):
    kept.create(shop("lab"))
    (tmp_path / "data" / "deployments" / "lab.json").chmod(0o644)

    with pytest.raises(DeploymentError, match=r"mode 0644.*chmod 600"):
        kept.get("lab")


def test_the_version_changes_when_the_file_is_edited(kept, tmp_path):
    kept.create(shop("lab", "first"))
    before = kept.get("lab").version
    path = tmp_path / "data" / "deployments" / "lab.json"

    path.write_text(path.read_text().replace("first", "other"))

    assert kept.get("lab").version != before


def test_the_first_record_is_taken_into_use_and_later_ones_on_demand(kept):
    taken = [kept.create(shop("a")), kept.create(shop("b")), kept.create(shop("c"), use=True)]

    assert taken == [True, False, True]
    assert kept.get().name == "c"


def test_the_first_record_may_be_left_out_of_use(kept):
    kept.create(shop("a"), use=False)

    with pytest.raises(DeploymentError, match="no deployment is in use"):
        kept.get()


def test_another_record_can_be_taken_into_use(kept):
    kept.create(shop("a"))
    kept.create(shop("b"))

    kept.use("b")

    assert [(record.name, record.in_use) for record in kept.records()] == [
        ("a", False),
        ("b", True),
    ]


def test_a_record_is_not_replaced(kept):
    kept.create(shop("a", "old"))

    with pytest.raises(DeploymentError, match="a exists"):
        kept.create(shop("a", "new"))

    assert kept.get("a").profiler_hmac_key == "old"


def test_deleting_the_record_in_use_leaves_none_in_use(kept):
    kept.create(shop("a"))
    kept.create(shop("b"))

    kept.delete("a")

    assert kept.used() is None
    assert kept.names() == ["b"]


def test_a_file_of_the_record_in_use_that_cannot_be_removed_is_named(kept, monkeypatch):
    kept.create(shop("a"))
    unlink = Path.unlink

    def refused(path, missing_ok=False):
        if path.suffix == ".json":
            return unlink(path, missing_ok)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refused)

    with pytest.raises(DeploymentError, match=r"a is deleted; remove .* too: Permission denied"):
        kept.delete("a")

    assert (kept.used(), kept.names()) == (None, [])


def test_deleting_another_record_keeps_the_one_in_use(kept):
    kept.create(shop("a"))
    kept.create(shop("b"))

    kept.delete("b")

    assert kept.used() == "a"


@pytest.mark.parametrize("act", ["get", "use", "delete"])
def test_an_unknown_name_is_refused_and_the_known_ones_are_named(kept, act):
    kept.create(shop("a"))

    with pytest.raises(DeploymentError, match="no deployment has the name x; there are a"):
        getattr(kept, act)("x")


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".a", "-a", "a b", "ä", "a\n", "a" * 65])
def test_a_name_that_is_no_safe_file_name_is_refused(kept, tmp_path, name):
    with pytest.raises(DeploymentError, match="cannot name a deployment"):
        kept.create(shop(name))
    with pytest.raises(DeploymentError, match="cannot name a deployment"):
        kept.get(name)

    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"salt": "!", "spec": {}}', '{"salt": 1}'])
def test_a_spoilt_record_is_refused_but_can_be_listed_and_deleted(kept, tmp_path, text):
    kept.create(shop("a"))
    kept.create(shop("b"))
    (tmp_path / "data" / "deployments" / "a.json").write_text(text)

    with pytest.raises(DeploymentError, match=r"a\.json"):
        kept.get("a")

    spoilt, sound = kept.records()
    assert (spoilt.name, spoilt.deployment) == ("a", None)
    assert spoilt.problem
    assert sound.deployment is not None
    kept.delete("a")
    assert kept.names() == ["b"]


def test_without_a_data_directory_there_is_no_record(kept):
    assert kept.records() == []
    assert kept.used() is None


def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "data").write_text("")

    with pytest.raises(DeploymentError, match="data"):
        Deployments(tmp_path / "data").create(shop("a"))
