"""`deployment check` of a cloud that answers, refuses, or is not there."""

import contextlib
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.fake_keystone import PASSCODE, PASSWORD, fake_keystone
from helpers.json_server import LoopbackServer, QuietHandler, serving
from osbench.common.deployment.record import Deployment
from osbench.coordinator.task.deployments.check import check
from servers import free_port


@pytest.fixture
def auth_url():
    with fake_keystone() as server:
        yield server.auth_url


def user(name, password):
    return {"username": name, "password": password, "project_name": "ops"}


def found(spec):
    findings = check(Deployment.from_spec("cloud", spec), timeout_s=5.0)
    return {finding.subject: finding for finding in findings}


def test_every_credential_is_tried_and_a_wrong_password_is_reported(auth_url):
    findings = found(
        {
            "openstack": {
                "auth_url": auth_url,
                "admin": user("admin", PASSWORD),
                "users": [user("guest", PASSWORD), user("guest", "pw-wrong")],
            }
        }
    )

    assert findings["admin"].ok
    assert findings["admin"].detail == "2 services in the catalogue"
    assert (findings["admin"].user, findings["admin"].project) == ("admin", "ops")
    assert findings["users[0]"].ok
    assert findings["users[1]"].ok is False
    assert "requires authentication" in findings["users[1]"].detail
    assert "pw-wrong" not in str(findings)


def test_services_are_looked_at_as_the_first_who_gets_a_token(auth_url):
    wrong, right = user("admin", "pw-wrong"), user("guest", PASSWORD)

    findings = found({"openstack": {"auth_url": auth_url, "admin": wrong, "users": [right]}})

    assert findings["admin"].ok is False
    assert "identity" in findings


def test_a_cloud_that_is_not_there_fails_with_a_short_reason():
    url = f"http://127.0.0.1:{free_port()}/v3"

    findings = found({"openstack": {"auth_url": url, "admin": user("admin", PASSWORD)}})

    assert findings["admin"].ok is False
    assert findings["admin"].detail.endswith(": Connection refused")
    assert "Pool" not in findings["admin"].detail


def test_a_missing_certificate_file_fails(auth_url):
    spec = {
        "auth_url": auth_url.replace("http:", "https:"),
        "https_cacert": "/nonexistent.pem",
        "admin": user("admin", PASSWORD),
    }

    findings = found({"openstack": spec})

    assert findings["admin"].ok is False
    assert "/nonexistent.pem" in findings["admin"].detail


def test_an_empty_catalogue_fails():
    with fake_keystone() as server:
        server.catalogued = ""
        spec = {"auth_url": server.auth_url, "admin": user("admin", PASSWORD)}

        findings = found({"openstack": spec})

    assert findings["admin"].ok is False
    assert "no service in the catalogue" in findings["admin"].detail


@contextlib.contextmanager
def answering(handle: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server that does that with each request; its address."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            handle(self)

        do_POST = do_GET

    with serving(LoopbackServer(Handler)) as server:
        yield server.url


def refuse(request: BaseHTTPRequestHandler) -> None:
    request.send_response(401)
    request.send_header("Content-Length", "0")
    request.end_headers()


def drip(request: BaseHTTPRequestHandler) -> None:
    """A byte now and then: no wait for data is long, and the response never ends."""
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    with contextlib.suppress(OSError):
        while True:
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("path", "says"), [("", "401 where Keystone lists its versions"), ("/v3", "HTTP 401")]
)
def test_an_address_that_answers_401_is_reported(path, says):
    with answering(refuse) as url:
        findings = found({"openstack": {"auth_url": url + path, "admin": user("admin", PASSWORD)}})

    assert findings["admin"].ok is False
    assert says in findings["admin"].detail


def test_a_response_without_end_is_given_up():
    with answering(drip) as url:
        spec = {"openstack": {"auth_url": url, "admin": user("admin", PASSWORD)}}
        findings = list(check(Deployment.from_spec("cloud", spec), timeout_s=0.5))

    by_subject = {finding.subject: finding for finding in findings}
    assert by_subject["admin"].detail == "no result within 0.5 s (--timeout)"
    assert by_subject["admin"].ok is False
    # what needs no server is there nevertheless
    assert by_subject["profiler key"].ok is None


TOTP = {
    "auth_type": "v3totp",
    "auth": {
        "username": "demo",
        "user_domain_id": "default",
        "passcode": PASSCODE,
        "project_name": "ops",
        "project_domain_id": "default",
    },
}


def test_a_code_is_used_once_and_its_token_is_told_to_end():
    with fake_keystone() as keystone:
        keystone.life_s = 600.0

        findings = found({"openstack": {"auth_url": keystone.auth_url, "users": [TOTP]}})

        assert len(keystone.users) == 1
    assert findings["users[0]"].ok
    assert findings["users[0]"].detail.startswith(
        "2 services in the catalogue; by v3totp: its token ends at "
    )
    assert (findings["users[0]"].user, findings["users[0]"].project) == ("demo", "ops")
    assert PASSCODE not in str(findings)


def test_an_application_credential_and_a_system_scope_are_named(auth_url):
    app = {
        "auth_type": "v3applicationcredential",
        "auth": {"application_credential_id": "ac1", "application_credential_secret": "pw-wrong"},
    }
    system = {
        "auth_type": "v3password",
        "auth": {
            "username": "root",
            "password": PASSWORD,
            "user_domain_id": "default",
            "system_scope": "all",
        },
    }

    findings = found({"openstack": {"auth_url": auth_url, "admin": app, "system_admin": system}})

    assert findings["admin"].ok is False
    assert findings["admin"].user == "application credential 'ac1'"
    assert (findings["system_admin"].ok, findings["system_admin"].project) == (
        True,
        "with system scope",
    )
    assert "pw-wrong" not in str(findings)


def test_a_region_that_does_not_exist_is_told_with_those_that_do(auth_url):
    spec = {"auth_url": auth_url, "admin": user("admin", PASSWORD)}

    wrong = found({"openstack": {**spec, "region_name": "RegionOne"}})["region"]
    right = found({"openstack": {**spec, "region_name": "R"}})["region"]

    assert (wrong.ok, wrong.detail) == (False, "there is no 'RegionOne'; there are R")
    assert (right.ok, right.detail) == (True, "R, of R")


def test_a_record_without_a_region_in_a_cloud_of_several_is_warned_of(monkeypatch):
    both = [{"id": name, "interface": "public", "region": name, "url": "u"} for name in ("A", "B")]
    service = {"type": "x", "name": "x", "id": "x", "endpoints": both}
    monkeypatch.setattr(FakeCloud, "catalogue", lambda self: [service])
    with fake_cloud() as cloud:
        finding = found(cloud.deployment())["region"]

    assert finding.warning
    assert finding.detail.startswith("the record has no region_name: requests go to the first of A")
