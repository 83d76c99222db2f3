"""Records made of the environment variables of OpenStack's clients."""

import pytest

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.coordinator.environment_record import spec_from_environment

ENVIRONMENT = {
    "OS_AUTH_URL": "https://cloud.example:5000/v3",
    "OS_USERNAME": "admin",
    "OS_PASSWORD": "pw-admin",
    "OS_PROJECT_NAME": "ops",
    "OS_USER_DOMAIN_NAME": "Staff",
    "OS_PROJECT_DOMAIN_NAME": "Projects",
    "OS_INTERFACE": "internalURL",
    "OS_REGION_NAME": "RegionOne",
    "OS_CACERT": "/ca.pem",
    "OS_CERT": "/cert.pem",
    "OS_KEY": "/key.pem",
    "OS_INSECURE": "False",
    "OS_IDENTITY_API_VERSION": "3",
    "OSPROFILER_HMAC_KEY": "key-hidden",
    "OSPROFILER_CONN_STR": "redis://traces",
}


def from_environment(environ):
    return Deployment.from_spec("cloud", spec_from_environment(environ).spec)


def test_the_environment_of_openstack_clients_makes_a_record():
    deployment = from_environment(ENVIRONMENT)

    assert deployment.admin == Credential(
        auth_url="https://cloud.example:5000/v3",
        username="admin",
        password="pw-admin",
        project_name="ops",
        user_domain_name="Staff",
        project_domain_name="Projects",
        region_name="RegionOne",
        endpoint_type="internal",
        https_cacert="/ca.pem",
        https_cert="/cert.pem",
        https_key="/key.pem",
    )
    assert deployment.profiler_hmac_key == "key-hidden"
    assert deployment.profiler_conn_str == "redis://traces"
    assert deployment.content["api_info"] == {"keystone": {"version": "3"}}


def test_older_names_of_variables_are_read():
    environ = {
        "OS_AUTH_URL": "http://cloud/v2.0",
        "OS_USERNAME": "u",
        "OS_PASSWORD": "p",
        "OS_TENANT_NAME": "t",
        "OS_ENDPOINT_TYPE": "adminURL",
        "OS_INSECURE": "1",
    }

    admin = from_environment(environ).admin

    assert (admin.project_name, admin.endpoint_type, admin.verify) == ("t", "admin", False)


def test_the_profilers_variables_alone_make_a_record_without_openstack():
    deployment = from_environment({"OSPROFILER_HMAC_KEY": "key"})

    assert (deployment.platform, deployment.profiler_hmac_key) == ("osbench", "key")


def test_all_missing_variables_are_named():
    with pytest.raises(DeploymentError) as refusal:
        from_environment({"OS_PASSWORD": "pw-hidden", "OS_INSECURE": "x"})

    for part in ("OS_AUTH_URL is not", "OS_USERNAME is not", "OS_PROJECT_NAME", "OS_INSECURE"):
        assert part in str(refusal.value)
    assert "OS_PASSWORD" not in str(refusal.value)
