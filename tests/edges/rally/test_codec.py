"""Rally's context object on its way between processes."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from osbench.common.errors import ContextError
from osbench.edges.rally import importing
from osbench.edges.rally.context_object import codec

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")


@pytest.fixture(scope="module", autouse=True)
def rally() -> None:
    """Rally and its plug-ins: collecting tests does not wait for them."""
    importing.load()


def credential(**more: Any) -> Any:
    from rally_openstack.common.credential import OpenStackCredential

    return OpenStackCredential("http://cloud", "me", "secret", tenant_name="p", **more)


def there_and_back(value: Any) -> Any:
    return codec.unpack(codec.pack(value))


def test_plain_data_comes_back_as_it_was() -> None:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    value = {"a": [1, 2.5, None, True, b"x", "é"], 7: (1, [2], {"x"}), "at": now, "on": now.date()}

    assert there_and_back(value) == value


def test_a_credential_comes_back_as_one_without_what_it_has_cached() -> None:
    one = credential(https_cert="c", https_key="k", api_info={"nova": {"version": 2}})
    one._clients_cache["nova"] = object()

    back = there_and_back({"admin": {"credential": one}})["admin"]["credential"]

    assert type(back) is type(one)
    assert back == one
    assert (back.password, back.https_cert) == ("secret", ("c", "k"))
    assert back._clients_cache == {}


def test_what_is_in_two_places_is_one_again() -> None:
    user = {"credential": credential(api_info={"nova": {"version": 2}})}
    tenants = {"t": {"users": [user]}, "empty": {"users": []}}

    back = there_and_back({"tenants": tenants, "users": [user, {"of": tenants["t"]}]})

    assert back["users"][0] is back["tenants"]["t"]["users"][0]
    assert back["users"][1]["of"] is back["tenants"]["t"]


def test_an_object_that_holds_itself_comes_back() -> None:
    tenant: dict[str, Any] = {"users": []}
    tenant["users"].append({"tenant": tenant})

    back = there_and_back(tenant)

    assert back["users"][0]["tenant"] is back


def test_a_resource_of_a_service_comes_back() -> None:
    from rally_openstack.common.services.image.image import UnifiedImage

    image = UnifiedImage(id="1", name="n", visibility="public", status="active")

    back = there_and_back({"custom_image": image})["custom_image"]

    assert (back["id"], back.id, back.name, back.status) == ("1", "1", "n", "active")


def test_what_cannot_be_carried_is_named_with_its_place() -> None:
    with pytest.raises(ContextError, match=r"users\[1\].server is a builtins.object, which"):
        codec.pack({"users": [{}, {"server": object()}]})


def test_a_key_that_cannot_be_carried_is_named() -> None:
    with pytest.raises(ContextError, match=r"a key of tenants is a builtins.tuple"):
        codec.pack({"tenants": {("a", "b"): 1}})
