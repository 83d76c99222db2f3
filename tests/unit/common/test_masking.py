"""What is shown has no secrets in it."""

import time

import pytest

from osbench.common.errors import OsbenchError, Problem, TaskError
from osbench.common.masking import MASK, mask, mask_text, mask_url, secret_values


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
    ],
)
def test_secrets_in_a_text_are_hidden(text):
    shown = mask_text(text)

    assert "planted" not in shown
    assert "plan ted" not in shown
    assert MASK in shown
    assert ("kept" in shown) == ("kept" in text)


@pytest.mark.parametrize(
    "text", ["12 passed in 3 s", "the token is gone", "monkey: banana", '{"tokens": [1], "a": 2}']
)
def test_a_text_without_secrets_stays(text):
    assert mask_text(text) == text


def test_masking_a_long_word_takes_no_long_time():
    begun = time.process_time()

    for word in ("0" * 8000, "-" * 8000, "token" * 1600, "cookie" * 1300, "eyJ" * 2600):
        mask_text(word)

    assert time.process_time() - begun < 5


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
