"""Records made of clouds.yaml and of the environment: what is taken, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import DeploymentError
from osbench.coordinator.task.deployments.new_record import record_of_file
from osbench.edges.openstack.coordinator import cloud_record

AUTH = {
    "auth_url": "https://cloud.example:5000/v3",
    "username": "ops",
    "password": "pw-hidden",
    "project_name": "ops",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}
ENVIRONMENT = {f"OS_{key.upper()}": value for key, value in AUTH.items()}


def made(environ: dict[str, str]) -> Any:
    return cloud_record.from_environment("cloud", environ)


def test_a_password_makes_the_record_that_it_always_made() -> None:
    record = made(ENVIRONMENT)
    by_id = {key: value for key, value in ENVIRONMENT.items() if "DOMAIN" not in key}
    short = made({**by_id, "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default"})

    assert record.deployment.content == {
        "auth_url": AUTH["auth_url"],
        "admin": {key: value for key, value in AUTH.items() if key != "auth_url"},
        "https_insecure": False,
    }
    assert record.notes == short.notes == ()
    assert list(short.deployment.content["admin"]) == ["username", "password", "project_name"]


@pytest.mark.parametrize(
    ("environ", "auth_type", "auth"),
    [
        (
            {
                "OS_AUTH_TYPE": "v3applicationcredential",
                "OS_APPLICATION_CREDENTIAL_ID": "ac1",
                "OS_APPLICATION_CREDENTIAL_SECRET": "pw-hidden",
            },
            "v3applicationcredential",
            {"application_credential_id": "ac1", "application_credential_secret": "pw-hidden"},
        ),
        (
            {"OS_TOKEN": "pw-hidden", "OS_PROJECT_ID": "p1"},
            "token",
            {"token": "pw-hidden", "project_id": "p1"},
        ),
        (
            {"OS_USERNAME": "u", "OS_PASSWORD": "pw-hidden", "OS_PROJECT_ID": "p1"},
            "password",
            {
                "username": "u",
                "password": "pw-hidden",
                "project_id": "p1",
                "default_domain_id": "default",
            },
        ),
        (
            {"OS_USER_ID": "u1", "OS_PASSWORD": "pw-hidden", "OS_SYSTEM_SCOPE": "all"},
            "password",
            {"user_id": "u1", "password": "pw-hidden", "system_scope": "all"},
        ),
        (
            {
                "OS_AUTH_TYPE": "v3multifactor",
                "OS_AUTH_METHODS": "v3password,v3totp",
                "OS_USERNAME": "u",
                "OS_USER_DOMAIN_ID": "d",
                "OS_PASSWORD": "pw-hidden",
                "OS_PASSCODE": "123",
                "OS_TRUST_ID": "t1",
            },
            "v3multifactor",
            {
                "auth_methods": ["v3password", "v3totp"],
                "username": "u",
                "user_domain_id": "d",
                "password": "pw-hidden",
                "passcode": "123",
                "trust_id": "t1",
            },
        ),
    ],
)
def test_each_login_of_the_environment_is_taken_whole(
    environ: dict[str, str], auth_type: str, auth: dict[str, Any]
) -> None:
    record = made({"OS_AUTH_URL": AUTH["auth_url"], **environ})

    assert record.deployment.content["admin"] == {"auth_type": auth_type, "auth": auth}
    assert record.notes == ()


def test_addresses_and_versions_of_services_are_taken() -> None:
    more = {
        "OS_COMPUTE_ENDPOINT_OVERRIDE": "http://nova:8774/v2.1",
        "OS_BLOCK_STORAGE_ENDPOINT_OVERRIDE": "http://cinder:8776/v3",
        "OS_COMPUTE_API_VERSION": "2.79",
        "OS_ENDPOINT": "http://keystone:35357/v3",
    }

    record = made({**ENVIRONMENT, **more})

    assert record.notes == ()
    assert record.deployment.admin.endpoint_overrides == {
        "identity": "http://keystone:35357/v3",
        "compute": "http://nova:8774/v2.1",
        "block-storage": "http://cinder:8776/v3",
    }
    assert record.deployment.api_versions == {"nova": {"version": "2.79"}}


def test_every_variable_that_is_not_used_is_named_without_its_value() -> None:
    more = {"OS_REGION": "R", "OS_PASSCODE": "pw-hidden", "OS_TEST_DBAPI": "x", "OS_EMPTY": ""}

    record = made({**ENVIRONMENT, **more})

    assert record.notes == ("not used: OS_PASSCODE, OS_REGION",)


def test_a_variable_of_osprofiler_that_is_not_read_is_named_with_the_one_that_is() -> None:
    more = {
        "OSPROFILER_CONNECTION_STRING": "redis://:pw-hidden@h:6379",
        "OSPROFILER_HMAC_KEY": "key",
        "OSPROFILER_TRACE": "x",
        "OSPROFILER_EMPTY": "",
    }

    record = made({**ENVIRONMENT, **more})

    assert record.notes == (
        "not used: OSPROFILER_CONNECTION_STRING; set OSPROFILER_CONN_STR instead",
        "not used: OSPROFILER_TRACE",
    )


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OS_REGION_NAME": "R", "OSPROFILER_HMAC_KEY": "pw-hidden"}, "OS_AUTH_URL is not set; OS"),
        ({"OS_AUTH_URL": "http://c", "OS_PASSWORD": "pw-hidden"}, "OS_USERNAME is not set"),
        (
            {
                "OS_AUTH_URL": "http://c",
                "OS_APPLICATION_CREDENTIAL_ID": "ac1",
                "OS_APPLICATION_CREDENTIAL_SECRET": "pw-hidden",
            },
            "for an application credential set OS_AUTH_TYPE=v3applicationcredential",
        ),
        ({**ENVIRONMENT, "OS_AUTH_TYPE": "v3pasword"}, "did you mean 'v3password'?"),
        ({"OS_AUTH_URL": "http://c", "OS_AUTH_TYPE": "v3totp"}, "'v3totp' needs 'passcode'"),
        ({"OS_AUTH_URL": "http://c", "OS_AUTH_TYPE": "v3multifactor"}, "auth_methods must be a"),
        ({"OS_AUTH_URL": "c:5000", "OS_TOKEN": "pw-hidden"}, "openstack.auth_url: must be an http"),
        ({**ENVIRONMENT, "OS_INSECURE": "maybe"}, "neither true nor false"),
    ],
)
def test_an_environment_that_is_not_understood_is_refused(
    environ: dict[str, str], said: str
) -> None:
    with pytest.raises(DeploymentError) as refusal:
        made(environ)

    assert said in str(refusal.value)
    assert "pw-hidden" not in str(refusal.value)


def test_a_file_with_a_plugin_that_does_not_exist_is_refused_by_place(tmp_path: Path) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(
        "openstack:\n  auth_url: http://c/v3\n  admin: {auth_type: v3tokn, auth: {token: pw}}\n"
        "  users: [{auth_type: v3token, auth: {tokn: pw-hidden}}]\n"
    )

    with pytest.raises(DeploymentError) as refusal:
        record_of_file("cloud", path)

    assert "2 problems" in str(refusal.value)
    assert "openstack.admin: keystoneauth1 has no auth plug-in 'v3tokn'" in str(refusal.value)
    assert "openstack.users[0]: auth plug-in 'v3token' has no option 'tokn'" in str(refusal.value)
    assert "pw-hidden" not in str(refusal.value)


def test_without_openstacksdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openstack.config", None)

    with pytest.raises(DeploymentError, match=r"pip install 'osbench\[openstack\]'"):
        cloud_record.from_cloud("cloud", "mycloud", None, {})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes files where openstacksdk looks for them, and makes the record of a cloud."""
    loader = pytest.importorskip(
        "openstack.config.loader", reason="the extra osbench[openstack] is not installed"
    )
    for kind, name in (("CONFIG", "clouds"), ("SECURE", "secure"), ("VENDOR", "clouds-public")):
        monkeypatch.setattr(loader, f"{kind}_FILES", [str(tmp_path / f"{name}.yaml")])
    for name in ("OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE", "OS_CLOUD"):
        monkeypatch.delenv(name, raising=False)

    def placed(cloud: str, region: str | None = None, **files: str) -> Any:
        for name, text in files.items():
            (tmp_path / f"{name.replace('_', '-')}.yaml").write_text(text)
        return cloud_record.from_cloud("cloud", cloud, region, {})

    return placed


CLOUDS = """
clouds:
  lab:
    auth:
      auth_url: https://cloud.example:5000/v3
      username: ops
      project_name: ops
      user_domain_name: Default
      project_domain_name: Default
    regions: [north, south]
    interface: internal
    verify: false
    cert: /c.pem
    key: /k.pem
    compute_endpoint_override: http://nova:8774/v2.1
    compute_default_microversion: '2.90'
    image_api_version: '2'
  app:
    auth_type: v3applicationcredential
    auth:
      auth_url: https://cloud.example:5000/v3
      application_credential_id: ac1
      application_credential_secret: pw-hidden
    cacert: /ca.pem
  vendor:
    profile: acme
    auth: {username: u, password: pw-hidden, project_id: p1, user_domain_id: d}
"""
SECURE = "clouds: {lab: {auth: {password: pw-hidden}}}"
PUBLIC = "public-clouds: {acme: {auth: {auth_url: 'https://acme.example/v3'}, region_name: west}}"


def test_a_cloud_is_taken_with_its_secrets_and_all_that_it_says(place: Any) -> None:
    record = place("lab", clouds=CLOUDS, secure=SECURE)
    found = record.deployment.content

    assert record.notes == ()
    assert found["auth_url"] == "https://cloud.example:5000/v3"
    assert found["admin"]["auth_type"] == "password"
    assert found["admin"]["auth"]["password"] == "pw-hidden"
    assert (found["region_name"], found["endpoint_type"]) == ("north", "internal")
    assert (found["https_insecure"], found["https_cert"], found["https_key"]) == (
        True,
        "/c.pem",
        "/k.pem",
    )
    assert found["endpoint_overrides"] == {"compute": "http://nova:8774/v2.1"}
    assert found["api_versions"] == {"nova": {"version": "2.90"}, "glance": {"version": "2"}}


def test_a_region_is_chosen_and_a_wrong_one_is_told_with_those_there_are(place: Any) -> None:
    found = place("lab", "south", clouds=CLOUDS, secure=SECURE).deployment.content

    assert found["region_name"] == "south"
    with pytest.raises(DeploymentError, match="Valid choices are north,south"):
        place("lab", "east")


def test_application_credentials_and_profiles_of_vendors_are_taken(place: Any) -> None:
    app = place("app", clouds=CLOUDS, clouds_public=PUBLIC).deployment.content
    vendor = place("vendor").deployment.content

    assert app["admin"] == {
        "auth_type": "v3applicationcredential",
        "auth": {"application_credential_id": "ac1", "application_credential_secret": "pw-hidden"},
    }
    assert app["https_cacert"] == "/ca.pem"
    assert (vendor["auth_url"], vendor["region_name"]) == ("https://acme.example/v3", "west")


def test_a_cloud_in_secure_yaml_alone_is_taken(place: Any) -> None:
    text = CLOUDS.replace("username: ops", "username: ops\n      password: pw-hidden")

    assert place("lab", secure=text).deployment.content["region_name"] == "north"


@pytest.mark.parametrize(
    ("cloud", "files", "said"),
    [
        ("lab", {}, "there is no clouds.yaml in "),
        ("lob", {"clouds": CLOUDS}, "no cloud has the name 'lob'; did you mean 'lab'?"),
        ("zzz", {"clouds": CLOUDS}, "no cloud has the name 'zzz'; there are app, lab, vendor"),
        ("lab", {"clouds": CLOUDS}, "cloud 'lab': 1 problem to correct\n  openstack.admin: auth"),
        ("lab", {"clouds": "clouds: {lab: {}}"}, "cloud 'lab': needs 'auth_url' in 'auth'"),
        ("lab", {"clouds": "clouds: {lab: pw-hidden}"}, "cloud 'lab': "),
        ("lab", {"clouds": "clouds: [pw-hidden"}, "line 1, column 19: is not YAML or JSON"),
        ("lab", {"clouds": "- pw-hidden"}, "is empty or not a valid mapping"),
        (
            "a",
            {"clouds": "clouds: {a: {auth_type: v3tokn, auth: {token: pw-hidden}}}"},
            "'v3token'",
        ),
        ("a", {"clouds": "clouds: {a: {auth_type: none}}"}, "cloud 'a'"),
        ("a", {"clouds": "clouds: {a: {auth: {auth_url: 'http://c', usrname: u}}}"}, "'username'?"),
        ("a", {"clouds": "clouds: {a: {profile: nosuch}}"}, "find the vendor profile nosuch"),
        ("a", {"clouds": "clouds: [a]"}, "cloud 'a': openstacksdk cannot read it"),
        ("a", {"clouds": "clouds: {a: {auth_type: [x], auth: pw-hidden}}"}, "cloud 'a': "),
    ],
)
def test_a_cloud_that_cannot_be_used_is_refused_without_secrets(
    place: Any, capfd: Any, cloud: str, files: dict[str, str], said: str
) -> None:
    with pytest.raises(DeploymentError) as refusal:
        place(cloud, **files)

    assert said in str(refusal.value)
    assert "pw-hidden" not in str(refusal.value) + "".join(capfd.readouterr())


def test_the_environment_may_name_a_cloud(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place("lab", clouds=CLOUDS, secure=SECURE)
    environ = {"OS_CLOUD": "lab", "OS_REGION_NAME": "south", "OS_USERNAME": "u"}
    monkeypatch.setenv("OS_CLOUD", "lab")

    record = made({**environ, "OSPROFILER_HMAC_KEY": "key"})

    assert record.deployment.content["region_name"] == "south"
    assert record.deployment.profiler_hmac_key == "key"
    assert record.notes == ("not used beside OS_CLOUD: OS_USERNAME",)


def test_what_openstacksdk_warns_of_in_a_file_is_told(place: Any) -> None:
    text = CLOUDS.replace("verify: false", "verify: false\n    cacert: /ca.pem")

    (note,) = place("lab", clouds=text, secure=SECURE).notes

    assert "The host SSL cert will not be verified" in note
