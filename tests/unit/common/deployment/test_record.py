"""Deployment records: Rally's files and ours, refused with every problem and no secret."""

import pytest

from helpers.corpus import corpus
from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.protocol.envelope import Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.secrets.masking import secret_values

ADMIN = {"username": "admin", "password": "pw-admin", "project_name": "ops"}
CLOUD = {
    "openstack": {
        "auth_url": "https://cloud.example:5000/v3",
        "region_name": "RegionOne",
        "endpoint_type": "internal",
        "https_cacert": "/etc/ca.pem",
        "admin": {**ADMIN, "user_domain_name": "Staff", "project_domain_name": "Projects"},
        "users": [
            {"username": "u1", "password": "pw-one", "tenant_name": "t1", "domain_name": "Guests"},
            {"username": "u2", "password": "pw-two", "project_name": "t2"},
        ],
        "profiler_hmac_key": "key-hidden",
        "profiler_conn_str": "redis://:pw-store@traces.example:6379",
    }
}
SHOP = {
    "osbench": {
        "services": {"shop": "http://Shop.example:8080/api", "pay": "https://pay.example"},
        "profiler_hmac_key": "key-hidden",
        "enable_profiler": False,
    }
}
SECRETS = ("pw-admin", "pw-one", "pw-two", "key-hidden", "pw-store")


def problems_with(spec):
    with pytest.raises(DeploymentError) as refusal:
        Deployment.from_spec("cloud", spec, source="cloud.json")
    return str(refusal.value)


@pytest.mark.parametrize(
    "file",
    [
        "existing.json",
        "existing-keystone-v3.json",
        "existing-keystone-v3-osprofiler.json",
        "existing-keystone-v3-user.json",
        "existing-with-predefined-users.json",
    ],
)
def test_rallys_samples_load(file):
    deployment = Deployment.from_file("cloud", corpus() / "deployments" / file)

    assert deployment.platform == "openstack"
    assert deployment.admin or deployment.users
    assert deployment.hosts == {"http://example.net:5000"}


def test_rallys_sample_with_a_profiler_names_key_and_store():
    path = corpus() / "deployments" / "existing-keystone-v3-osprofiler.json"

    deployment = Deployment.from_file("cloud", path)

    assert deployment.profiler_hmac_key == "SECRET_KEY"
    assert deployment.profiler_conn_str == "mongodb://localhost"


def test_rallys_sample_that_is_not_json_is_refused_with_its_place():
    path = corpus() / "deployments" / "existing-api.json"

    with pytest.raises(DeploymentError, match=rf"{path}: line 13, column 9: is not JSON"):
        Deployment.from_file("cloud", path)


def test_credentials_carry_what_the_cloud_has_in_common():
    deployment = Deployment.from_spec("cloud", CLOUD)

    assert deployment.admin == Credential(
        auth_url="https://cloud.example:5000/v3",
        username="admin",
        password="pw-admin",
        project_name="ops",
        user_domain_name="Staff",
        project_domain_name="Projects",
        region_name="RegionOne",
        endpoint_type="internal",
        https_cacert="/etc/ca.pem",
    )
    first, second = deployment.users
    assert (first.project_name, first.user_domain_name) == ("t1", "Guests")
    assert (second.project_name, second.user_domain_name) == ("t2", None)
    assert second.verify == "/etc/ca.pem"


def test_both_of_rallys_names_mean_the_same_platform():
    deployment = Deployment.from_spec("cloud", {"existing@openstack": CLOUD["openstack"]})

    assert deployment.platform == "openstack"
    assert deployment.users == Deployment.from_spec("cloud", CLOUD).users


def test_a_record_without_openstack_names_services_and_has_no_credentials():
    deployment = Deployment.from_spec("shop", SHOP)

    assert deployment.platform == "osbench"
    assert (deployment.admin, deployment.users) == (None, ())
    assert deployment.hosts == {"http://shop.example:8080", "https://pay.example:443"}
    assert deployment.profiler_hmac_key == "key-hidden"
    assert deployment.enable_profiler is False


def test_empty_texts_mean_nothing_given():
    content = {"auth_url": "http://c/v3", "admin": ADMIN, "https_cacert": "", "https_cert": ""}

    deployment = Deployment.from_spec("c", {"openstack": content | {"profiler_hmac_key": ""}})

    assert deployment.profiler_hmac_key is None
    assert deployment.profiler_conn_str is None
    assert deployment.enable_profiler is None
    assert (deployment.admin.verify, deployment.admin.cert) == (True, None)


def test_tls_options_are_what_http_clients_take():
    options = {"auth_url": "http://c", "username": "u", "password": "p", "project_name": "t"}

    insecure = Credential(**options, https_insecure=True, https_cacert="/ca.pem")
    certified = Credential(**options, https_cert="/c.pem", https_key="/k.pem")

    assert insecure.verify is False
    assert certified.cert == ("/c.pem", "/k.pem")


def test_users_without_a_domain_are_in_the_default_one_but_keystone_v2_has_none():
    options = {"username": "u", "password": "p", "project_name": "t"}

    third = Credential(auth_url="http://c/v3", **options).password_options()
    second = Credential(auth_url="http://c/v2.0/", **options).password_options()

    assert (third["user_domain_id"], third["project_domain_id"]) == ("default", "default")
    assert (second["user_domain_id"], second["project_domain_id"]) == (None, None)


def test_a_file_in_yaml_loads(tmp_path):
    path = tmp_path / "shop.yaml"
    path.write_text("osbench:\n  services: {shop: 'http://127.0.0.1:8080'}\n")

    assert Deployment.from_file("shop", path).services == {"shop": "http://127.0.0.1:8080"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", '{"openstack": {"admin": {"password": "pw-hidden" "x"}}}', "line 1, column 50"),
        ("c.yaml", "a: *pw-hidden\n", "line 1, column 4: is not YAML"),
        ("c.yaml", "openstack: [pw-hidden\n", "is not YAML"),
        ("c.yaml", "a: 1\nb: \x01pw-hidden\n", "line 2 has an unprintable character; remove it"),
        ("c.yaml", "'!extras': {at: 2020-01-01}\nosbench: {}\n", "is not text, a number"),
    ],
)
def test_a_malformed_file_is_refused_without_repeating_it(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(DeploymentError) as refusal:
        Deployment.from_file("c", path)

    assert message in str(refusal.value)
    assert "pw-hidden" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")

    with pytest.raises(DeploymentError, match="No such file"):
        Deployment.from_file("c", tmp_path / "absent.json")
    with pytest.raises(DeploymentError, match="not text"):
        Deployment.from_file("c", tmp_path / "binary.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"admin": ADMIN}, "openstack: needs 'auth_url'"),
        ({"auth_url": "http://c"}, "openstack: needs 'admin' or 'users'"),
        ({"auth_url": "cloud:5000", "admin": ADMIN}, "openstack.auth_url: must be an http:// or"),
        ({"auth_url": "http://c:port", "admin": ADMIN}, "openstack.auth_url: must be an http://"),
        ({"auth_url": " http://c ", "admin": ADMIN}, "openstack.auth_url: must be an http://"),
        *(
            (
                {"auth_url": "http://c", "admin": ADMIN, "profiler_hmac_key": key},
                "openstack.profiler_hmac_key: must not",
            )
            for key in ("K1,K2", " K1", "K1\n", " ")
        ),
        *(
            (
                {"auth_url": "http://c", "admin": ADMIN, "profiler_conn_str": store},
                "openstack.profiler_conn_str: must be the address of a trace store",
            )
            for store in (
                "nonsense",
                "redis",
                "redis://",
                "redis://h/x",
                "redis://u:p@w@h",
                "http://h",
                "elasticsearch://h:99999",
                "mysql+pymysql://u:p w@h/db",
            )
        ),
        ({"auth_url": "http://c", "users": []}, "openstack.users: must not be empty"),
        ({"auth_url": "http://c", "users": [{}]}, "openstack.users[0]: needs 'password'"),
        (
            {"auth_url": "http://c", "admin": {"username": "u", "password": "p"}},
            "openstack.admin: needs 'project_name'",
        ),
        (
            {"auth_url": "http://c", "admin": {**ADMIN, "tenant_name": "t"}},
            "openstack.admin: has both 'project_name' and 'tenant_name'",
        ),
        (
            {"auth_url": "http://c", "admin": {**ADMIN, "pasword": "p"}},
            "openstack.admin.pasword: unknown key; did you mean 'password'?",
        ),
        (
            {"auth_url": "http://c", "admin": {**ADMIN, "password": 5}},
            "openstack.admin.password: must be text, is a number",
        ),
        (
            {"auth_url": "http://c", "admin": ADMIN, "endpoint_type": "publicURL"},
            "openstack.endpoint_type: must be one of 'public', 'internal', 'admin', null",
        ),
        ({"auth_url": "http://c", "admin": ADMIN, "https_insecure": "no"}, "must be true or false"),
        ("text", "openstack: must be an object, is text"),
    ],
)
def test_a_mistake_is_reported_with_its_place(content, message):
    assert message in problems_with({"openstack": content})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "must be an object, is a list"),
        ({}, "needs one of 'openstack', 'existing@openstack', 'osbench', has none"),
        ({"openstck": {}}, "openstck: unknown platform"),
        ({**CLOUD, **SHOP}, "has 'openstack', 'osbench'"),
        ({**SHOP, "!version": 2}, "!version: must be 1"),
        ({"osbench": {"services": {"shop": "shop:8080"}}}, "osbench.services.shop: must be an"),
        ({"osbench": {"url": "http://shop"}}, "osbench.url: unknown key"),
    ],
)
def test_a_file_that_is_no_deployment_is_refused(spec, message):
    assert message in problems_with(spec)


def test_notes_that_rally_allows_next_to_a_platform_are_accepted():
    notes = {"!version": 1, "!description": "lab", "!extras": {"owner": "qa"}, "!config": {}}

    assert Deployment.from_spec("shop", {**notes, **SHOP}).platform == "osbench"


def test_all_problems_are_reported_at_once_and_no_secret_among_them():
    spec = {
        "openstack": {
            "auth_url": "ftp://u:pw-hidden@c",
            "endpoint_type": "pw",
            "admin": {"username": 1, "password": ["pw-hidden"], "tenant": "pw-hidden"},
            "users": [{"username": "", "password": 5, "project_name": "p"}],
            "profiler_hmac_key": 6,
            "profiler_conn_str": ["redis://:pw-hidden@h"],
        }
    }

    message = problems_with(spec)

    assert "cloud.json: 10 problems" in message
    assert "pw-hidden" not in message


def test_nothing_that_is_shown_has_a_secret():
    deployment = Deployment.from_spec("cloud", CLOUD)

    shown = f"{deployment} {deployment!r} {deployment.users} {deployment.masked()}"

    assert not [secret for secret in SECRETS if secret in shown]
    assert "redis://***@traces.example:6379" in shown
    assert deployment.masked()["openstack"]["admin"]["username"] == "admin"


def test_the_version_changes_with_the_content_only():
    salt = b"s" * 16
    changed = {"osbench": {**SHOP["osbench"], "profiler_hmac_key": "another"}}
    reordered = {"osbench": dict(reversed(SHOP["osbench"].items()))}

    version = Deployment.from_spec("shop", SHOP, salt=salt).version

    assert Deployment.from_spec("shop", reordered, salt=salt).version == version
    assert Deployment.from_spec("shop", changed, salt=salt).version != version


def test_the_version_says_nothing_about_a_password_without_the_salt():
    assert Deployment.from_spec("s", SHOP).version != Deployment.from_spec("s", SHOP).version


def test_a_record_does_not_follow_changes_of_what_it_was_made_from():
    spec = {"osbench": {"services": {"shop": "http://shop"}}}
    deployment = Deployment.from_spec("shop", spec)

    spec["osbench"]["services"]["shop"] = "http://elsewhere"

    assert deployment.services == {"shop": "http://shop"}


def test_a_record_survives_the_encrypted_way_to_a_worker():
    deployment = Deployment.from_spec("cloud", CLOUD)
    vault = Vault(Keyring.generate())

    arrived = Deployment.from_dict(vault.decrypt(vault.encrypt(deployment.to_dict())))

    assert arrived == deployment
    assert arrived.users == deployment.users


def test_a_record_of_another_shape_is_refused():
    with pytest.raises(DeploymentError, match="malformed deployment record"):
        Deployment.from_dict({"name": "cloud"})


APP = {
    "auth_type": "v3applicationcredential",
    "auth": {"application_credential_id": "ac1", "application_credential_secret": "pw-app"},
}
SYSTEM = {
    "auth_type": "v3password",
    "auth": {
        "username": "root",
        "password": "pw-root",
        "user_domain_id": "default",
        "system_scope": "all",
    },
}


def with_plugins(**more):
    content = {"auth_url": "http://cloud:5000/v3", "admin": APP, "system_admin": SYSTEM, **more}
    return Deployment.from_spec("cloud", {"openstack": content})


def test_a_record_keeps_an_auth_plugin_and_its_options_as_they_are():
    deployment = with_plugins(users=[APP, ADMIN])

    assert deployment.content["admin"] == APP
    assert (deployment.admin.auth_type, deployment.admin.auth) == (APP["auth_type"], APP["auth"])
    assert deployment.system_admin.auth["system_scope"] == "all"
    assert [one.auth_type for one in deployment.users] == ["v3applicationcredential", ""]
    assert list(deployment.credentials) == ["admin", "system_admin", "users[0]", "users[1]"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("admin", "application credential 'ac1'"),
        ("system_admin", "user 'root' with system scope"),
        ("users[0]", "user 'admin' of project 'ops'"),
    ],
)
def test_messages_name_who_logs_in_and_for_what(place, said):
    assert str(with_plugins(users=[ADMIN]).credentials[place]) == said


def test_secrets_of_auth_plugins_are_masked():
    more = {
        "auth_type": "v3oidcauthcode",
        "auth": {
            "identity_provider": "idp",
            "code": "pw-code",
            "client_id": "me",
            "client_secret": "pw-client",
        },
    }
    several = {
        "auth_type": "v3multifactor",
        "auth": {"passcode": "pw-pass", "access_token": "pw-token", "token": "pw-tok"},
    }
    deployment = with_plugins(users=[more, several])

    shown = f"{deployment!r} {deployment.users!r} {deployment.admin!r} {deployment.masked()}"

    assert "pw-" not in shown
    assert deployment.masked()["openstack"]["admin"]["auth"]["application_credential_id"] == "ac1"
    assert deployment.masked()["openstack"]["users"][0]["auth"]["client_id"] == "me"


def test_tokens_of_a_run_go_with_the_record_and_are_not_shown():
    deployment = with_plugins().with_states({"admin": '{"auth_token": "pw-token"}'})

    arrived = Deployment.from_dict(deployment.to_dict())

    assert arrived.admin.state == '{"auth_token": "pw-token"}'
    assert "pw-token" in secret_values(deployment.to_dict())
    assert arrived.system_admin.state == ""
    assert "pw-token" not in f"{arrived!r} {arrived.admin!r} {arrived.masked()}"
    assert "states" not in with_plugins().to_dict()


def test_addresses_that_replace_those_of_the_catalogue_may_have_trace_headers():
    addresses = {"compute": "http://nova:8774/v2.1"}

    deployment = with_plugins(endpoint="http://keystone:35357", endpoint_overrides=addresses)

    assert deployment.admin.endpoint_overrides == {
        "identity": "http://keystone:35357",
        "compute": "http://nova:8774/v2.1",
    }
    assert {"http://nova:8774", "http://keystone:35357"} <= deployment.hosts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"admin": {"auth_type": "v3token"}}, "openstack.admin: needs 'auth'"),
        ({"admin": {"auth": {}}}, "openstack.admin: needs 'auth_type'"),
        ({"admin": {**APP, "username": "u"}}, "openstack.admin.username: unknown key"),
        ({"admin": {**APP, "auth": "pw-hidden"}}, "openstack.admin.auth: must be an object"),
        ({"admin": ADMIN, "endpoint": "pw"}, "openstack.endpoint: must be an http:// or"),
        ({"users": [APP], "system_admin": SYSTEM}, "openstack.system_admin: also needs 'admin'"),
    ],
)
def test_a_mistake_around_an_auth_plugin_is_reported_with_its_place(content, message):
    assert message in problems_with({"openstack": {"auth_url": "http://c", **content}})
