"""What is shown has no secrets in it."""

import json
import time

import pytest

from osbench.common.errors import OsbenchError, Problem, TaskError
from osbench.common.secrets.masking import (
    error_text,
    holds_secret,
    mask,
    mask_field,
    mask_text,
    secret_values,
)
from osbench.common.secrets.secret_names import MASK
from osbench.common.secrets.url_masking import mask_url, without_credentials


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:pw@host:6379/0", "redis://***@host:6379/0"),
        ("redis://user:p/w@x@host", "redis://***@host"),
        ("redis://host?password=pw&db=1", "redis://host?password=***&db=1"),
        (
            "https://swift/v1/o?temp_url_sig=af3&design=x",
            "https://swift/v1/o?temp_url_sig=***&design=x",
        ),
        ("https://s3/o?X-Amz-Signature=af3", "https://s3/o?X-Amz-Signature=***"),
        ("no address: amqp://u:pw@h", "no address: amqp://***@h"),
        ("plain", "plain"),
        ("https://h/a?api%5Fkey=pw&b=1", "https://h/a?api%5Fkey=***&b=1"),
        ("https://h/a?user%5Bpassword%5D=pw#x", "https://h/a?user%5Bpassword%5D=***#x"),
        ("https://h/cb?code=pw&state=pw2", "https://h/cb?code=***&state=***"),
        ("https://h/oauth/callback?code=pw", "https://h/oauth/callback?code=***"),
        ("https://h/servers?state=active&code=200", "https://h/servers?state=***&code=***"),
        ("https://h/servers?status=active&code=200", "https://h/servers?status=active&code=200"),
        ("https://h/#access_token=pw&b=1", "https://h/#access_token=***&b=1"),
        ("https://h/a?key=pw&limit=5", "https://h/a?key=***&limit=5"),
        ("https://h/a?max_tokens=5&sort_key=name", "https://h/a?max_tokens=5&sort_key=name"),
        ("https://h/reset/0123456789abcdef0123", "https://h/reset/***"),
        ("https://h/servers/0123456789abcdef0123", "https://h/servers/0123456789abcdef0123"),
        ("user=a&password=p&w&b=1", "user=a&password=***&b=1"),
        ("args.password: must be a text", "args.password: must be a text"),
    ],
)
def test_user_information_and_secret_parameters_of_urls_are_hidden(url, shown):
    assert mask_url(url) == shown


def test_no_error_of_ours_tells_a_password():
    assert str(OsbenchError("no image at https://u:pw@host/img")) == (
        "no image at https://***@host/img"
    )
    problems = [Problem("args", "redis://:pw@host is away")]
    assert "pw" not in str(TaskError("task.yaml", problems))
    assert "pw" not in problems[0].message


def test_values_under_telling_names_are_hidden_and_others_kept():
    value = {
        "password": "pw",
        "profiler_hmac_key": "pw",
        "admin_pass": "pw",
        "apiKey": ["pw"],
        "keystone": "kept",
        "https_key": "/kept.pem",
        "secret": None,
        "inner": [{"token": "pw"}, ("redis://u:pw@kept",)],
    }

    shown = mask(value)

    assert "pw" not in str(shown)
    assert (shown["keystone"], shown["https_key"], shown["secret"]) == ("kept", "/kept.pem", None)
    assert shown["inner"] == [{"token": "***"}, ["redis://***@kept"]]


@pytest.mark.parametrize(
    "text",
    [
        "password=planted",
        "user_password: planted, user: kept",
        '{"auth": {"password": "planted", "user": "kept"}}',
        "{'admin_pass': 1, 'api_key': 'plan ted'}",
        "X-Auth-Token: planted",
        "Authorization: Bearer planted",
        "authorization=Basic planted, kept",
        "Cookie: a=1; session=planted",
        "Set-Cookie: planted=1; Path=/",
        "at https://u:planted@host/",
        "token gAAAAABplantedplantedplanted",
        "eyJhbGciOiJI.planted.planted",
        '"{\\"secret\\": \\"planted\\"}"',
        "X-Auth-Token=planted",
        "DPoP: planted",
        "headers=[(b'Authorization', b'Bearer planted'), (b'Accept', b'kept')]",
        '{"name": "Authorization", "value": "planted"}, {"name": "Accept", "value": "kept"}',
        '<input type="hidden" name="csrf_token" value="planted"> kept',
        "<ns:password>planted</ns:password><user>kept</user>",
        "mysql --password planted --host kept",
        "mysql --password=planted --host kept",
        '{"tokens": ["plan ted", "planted"], "a": "kept"}',
        '{"secret": {"value": "planted", "more": ["planted"]}, "a": "kept"}',
        '{"secret": ["planted", {"a": "plan',
        '"password": "planted without an end',
        '"password": "plan\\"ted planted", "a": "kept"',
        "password=planted,;(planted kept",
        "Authorization: Digest username=planted, response=planted",
        "-----BEGIN EC PRIVATE KEY-----\nplanted\n-----END EC PRIVATE KEY-----\nkept",
        "-----BEGIN PRIVATE KEY-----\nplanted",
        "AccountName=kept;AccountKey=planted==;EndpointSuffix=core",
        "sent bearer planted123456 and kept",
        "OS_PASSWORD='planted' kept",
        "ghp_plantedplantedplanted kept",
        "GET https://host/reset/planted0123456789ab: kept",
        "export TOKEN=planted kept",
        "{'password': 'planted', 'key_name': 'kept'}",
        "x-api-key:planted kept",
        'password: """planted""" kept',
        "password: 'plan''ted planted' kept",
        "password:\n      planted\nuser: kept",
        'Content-Disposition: form-data; name="password"\r\n\r\nplanted with spaces\r\nkept',
        'Cookie: "a"="b"; sid=planted\nkept',
        "https://kept/login?next=https%3A%2F%2Fhost%2F%3Ftoken%3Dplanted",
        "https://kept/login?next=https%253A%252F%252Fu%253Aplanted%2540host",
        '"auth": {"user": "kept", "password": "planted"}',
        '"auth": ["bob", "planted"], "a": "kept"',
        '{"password": 12345, "token_count": 5, "a": "kept"}',
        "password: &anchor planted\nuser: kept",
        "password: !!str planted\nuser: kept",
        "password: !planted\nuser: kept",
        "secret: |\n  planted\nuser: kept",
        "passwords:\n- planted\nuser: kept",
    ],
)
def test_secrets_in_a_text_are_hidden(text):
    shown = mask_text(text)

    assert "planted" not in shown
    assert "plan ted" not in shown
    assert MASK in shown
    assert ("kept" in shown) == ("kept" in text)


@pytest.mark.parametrize(
    "text",
    [
        *("12 passed in 3 s", "the token is gone", "monkey: banana", '{"tokens": [1], "a": 2}'),
        *("code: 200", '{"code": 200, "state": "ACTIVE"}', "KeyError: 'password'", "key: 3 of 5"),
        *("max_tokens=100, token_count: 5", '"key_name": "demo", "keypair": "demo"'),
        *("tls_key_file: /etc/key.pem", "    token = client.get_token(self.user)", "pass: 3"),
        *('{"methods": ["password", "totp"]}', "Bearer authentication", "session: 4 users"),
        *("at 10:15:00: done", "a=1&b=2", 'File "/usr/lib/token/cache.py", line 3', "password: ''"),
        *(
            '{"password": {}, "token": []}',
            "password: null is refused",
            "POST http://h/v3/auth/tokens: Connection refused",
            '{"usage": {"prompt_tokens":120,"completion_tokens":30}, "a": 1}',
            "SignatureDoesNotMatch: the request signature differs",
            "jwt.exceptions.InvalidTokenError: it has expired",
            "AssertionError: 5 is not 7",
            "SecretNotFound: there is none",
        ),
    ],
)
def test_a_text_without_secrets_stays(text):
    assert mask_text(text) == text


def cpu_of_masking(text):
    begun = time.process_time()
    mask_text(text)
    return time.process_time() - begun


def test_masking_a_long_word_takes_no_long_time():
    begun = time.process_time()

    for word in ("0" * 8000, "-" * 8000, "token" * 1600, "cookie" * 1300, "eyJ" * 2600):
        mask_text(word)

    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "part",
    [
        *("0", "-", "://", "://a@", "?a=b", "&", "token", "token=", "cookie", "eyJ.", "gAAAA", '"'),
        *(
            '"password": "',
            '\\"',
            'name="',
            "[",
            "{",
            "token: [",
            "/reset",
            "/reset/a1",
            "<a ",
            "a=1&",
            "code=1&",
            '"auth": {',
            '"auth": [{',
            '"auth": [',
            "Cookie: ",
            'form-data; name="a"\n\n',
            "?a=%25",
            "%3D",
            "token=)a",
            ")",
            "é=",
        ),
        *("-----BEGIN PRIVATE KEY-----", "Bearer a", "--token ", "('token', 'a'", "%5D", " "),
    ],
)
def test_a_long_text_takes_time_in_proportion(part):
    short = cpu_of_masking(part * ((1 << 13) // len(part)))
    long = cpu_of_masking(part * ((1 << 16) // len(part)))

    # eight times as much, and 64 times where time grows with the square
    assert long < 24 * short + 0.2


def test_values_are_hidden_wherever_a_task_may_have_them():
    value = {
        "headers": {"Authorization": "planted", "Cookie": "sid=planted", "Accept": "kept"},
        "cookies": {"theme": "planted"},
        "params": {"sig": "planted", "code": "planted", "state": "planted", "limit": "kept"},
        "query": [["token", "planted"], ["limit", "kept"]],
        "auth": ["bob", "planted"],
        "data": "user=kept&password=planted",
        "body": b"password=planted",
        "bytes": b"kept",
        "header": [{"key": "X-Api-Key", "value": "planted"}, {"key": "kept", "value": "kept"}],
        "fields": [{"header": "X-Auth-Token", "value": "planted"}],
        "env": [{"name": "OS_PASSWORD", "value": "planted"}, {"name": "A", "value": "kept"}],
        "command": "curl -H 'X-Auth-Token: planted' http://u:planted@host/reset/planted0123456789ab",
        "nested": [[[{"x": [{"api_key": {"a": ["planted"]}}]}]]],
        "http://u:planted@host": "kept",
        "methods": ["password", "token"],
        "status": {"code": 200, "state": "kept"},
        "max_tokens": 5,
        "keys": [1, 2],
        "argv": ["mysql", "--password", "planted", "--host", "kept"],
        "adminpass": 12345,
        "save": {"token": "$.kept"},
        "token": "{saved.kept}",
    }

    shown = mask(value)

    assert "planted" not in repr(shown)
    assert repr(shown).count("kept") == repr(value).count("kept")
    assert shown["methods"] == ["password", "token"]
    assert shown["status"]["code"] == 200
    assert (shown["max_tokens"], shown["keys"], shown["adminpass"]) == (5, [1, 2], MASK)
    json.dumps({**shown, "bytes": None})


def test_a_field_is_hidden_by_its_name_or_by_what_it_holds():
    assert mask_field("Set-Cookie", "a=planted") == MASK
    assert mask_field("Accept", "text/html") == "text/html"
    assert mask_field("Location", "http://h/?token=planted") == f"http://h/?token={MASK}"
    assert holds_secret("", "eyJhbGciOiJI.planted.planted")
    assert not holds_secret("password", "")


@pytest.mark.parametrize(
    "text",
    [
        "Accept: */* Authorization: Bearer planted12345 X-Auth-Token: planted Content-Length: 5",
        "password=planted, user=bob at https://u:planted@host/?token=planted&b=1: refused",
        '{"password": "planted", "tokens": ["planted"], "n": {"secret": {"a": 1}}} and more',
    ],
)
def test_what_is_masked_is_masked_again_alike(text):
    once = mask_text(text)

    assert "planted" not in once
    assert mask_text(once) == once


def test_an_exception_of_others_tells_no_secret():
    assert (
        error_text(ValueError("password=planted is wrong")) == "ValueError: password=*** is wrong"
    )


def test_values_of_headers_and_urls_are_found_for_texts_that_repeat_them():
    value = {
        "headers": {"Authorization": "Bearer planted-1"},
        "url": "http://bob:planted%2D2@host/?sig=planted-3&limit=kept",
        "cookies": {"theme": "planted-4"},
        "auth": ["planted-5", "planted-6"],
        "pairs": [["X-Api-Key", "planted-7"]],
    }

    found = set(secret_values(value))

    assert {f"planted-{number}" for number in range(1, 8)} <= found
    assert not any("kept" in one for one in found)


def test_secret_values_are_found_by_their_names():
    value = {
        "password": "planted-1",
        "user": "kept",
        "auth": [{"token": "planted-2", "id": "kept"}],
        "secret": ["planted-3", {"note": "planted-4"}],
        "private_key": "BEGIN\nplanted-5\n-",
        "key": "abc",
    }

    assert set(secret_values(value)) == {
        *(f"planted-{number}" for number in range(1, 6)),
        "BEGIN",
    }


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:pw@host:6379/0", "redis://host:6379/0"),
        ("rediss://user:pw@[::1]:6379", "rediss://[::1]:6379"),
        # a password may look like the rest of a URL
        ("redis://:p/w@x?y#z@host/1", "redis://host/1"),
        ("redis://host?password=pw&db=1", "redis://host?db=1"),
        ("redis://host?password=pw", "redis://host"),
        ("redis://host/reset/9f8e7d6c5b4a39281706", ""),
        ("host:6379", ""),
        ("", ""),
    ],
)
def test_a_url_without_credentials_can_be_used(url: str, left: str) -> None:
    assert without_credentials(url) == left
