"""What is shown has no secrets in it."""

import pytest

from osbench.common.errors import OsbenchError, Problem, TaskError
from osbench.common.masking import mask, mask_url


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
