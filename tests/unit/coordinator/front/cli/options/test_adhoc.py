"""A task from options: one request or one scenario, its load, and its limits."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from helpers.cli_commands import command
from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.adhoc import Adhoc
from osbench.coordinator.front.cli.options.limits import sla_of
from osbench.coordinator.task.taskfile.task_yaml import task_yaml
from osbench.coordinator.task.taskfile.template import render

URL = "http://shop:8080/items?n=1"


def workload(**options: Any) -> dict[str, Any]:
    (subtask,) = Adhoc(**options).document()["subtasks"]
    (found,) = subtask["workloads"]
    return found


def request(**options: Any) -> dict[str, Any]:
    return workload(url=URL, **options)["scenario"]["HttpRequests.check_request"]


def test_an_address_is_a_get() -> None:
    assert request() == {"url": URL, "method": "GET"}
    assert workload(url=URL)["name"] == "GET /items"


@pytest.mark.parametrize(
    ("options", "method", "content_type"),
    [
        ({"body": '{"name": "tea"}'}, "POST", "application/json"),
        ({"body": "[1, 2]", "method": "put"}, "PUT", "application/json"),
        ({"body": "name=tea"}, "POST", "application/x-www-form-urlencoded"),
        ({"body": "7"}, "POST", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_is_posted_and_json_is_called_so(
    options: dict[str, str], method: str, content_type: str | None
) -> None:
    found = request(**{**options, "body": (options["body"],)})

    assert (found["method"], found["data"]) == (method, options["body"])
    assert found.get("headers", {}).get("Content-Type") == content_type


def test_the_type_of_a_body_that_is_given_stays() -> None:
    found = request(body=("{}",), header=("content-type: text/plain",))

    assert found["headers"] == {"content-type": "text/plain"}


def test_fields_come_from_options_and_files(tmp_path: Path) -> None:
    file = tmp_path / "fields"
    file.write_text("X-Auth-Token: abc:def\n\nAccept: b\n")

    found = request(header=("Accept: a", f"@{file}"))

    assert found["headers"] == {"Accept": "a, b", "X-Auth-Token": "abc:def"}


def test_a_body_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "body").write_text("{}")

    assert request(body=(f"@{tmp_path}/body",))["data"] == "{}"


def test_bodies_and_fields_are_read_as_by_curl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("c=3"))

    found = request(body=("a=1", "b=2", "@-"), header=("Accept:", "X-Empty;", "X-A: 1", "X-A:  2"))

    assert found["data"] == "a=1&b=2&c=3"
    assert found["headers"] == {
        "Accept": None,
        "X-Empty": "",
        "X-A": "1, 2",
        "Content-Type": "application/x-www-form-urlencoded",
    }


def test_certificates_are_checked_as_the_options_say(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")

    assert "verify" not in request()
    assert request(insecure=True)["verify"] is False
    assert request(ca=f"{tmp_path}/ca.pem")["verify"] == f"{tmp_path}/ca.pem"
    with pytest.raises(UsageError, match="--ca /nonexistent: there is no such file"):
        request(ca="/nonexistent")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"header": ("secret",)}, "--header: write 'NAME: VALUE'"),
        ({"header": (": x",)}, "--header: write 'NAME: VALUE'"),
        (
            {"header": ("@/nonexistent",)},
            "--header @/nonexistent: cannot read the file: No such file",
        ),
        ({"body": ("@/nonexistent",)}, "--body @/nonexistent: cannot read the file: No such file"),
    ],
)
def test_what_makes_no_request_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=r"^--") as refused:
        request(**options)

    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


def test_limits_of_open_load_count_from_when_an_arrival_was_due() -> None:
    limits = ("p95=250ms", "max=2s", "failures=1%")

    closed = workload(url=URL, concurrency=4, duration=30.0, limit=limits)
    opened = workload(url=URL, rps=20.0, duration=30.0, limit=limits)

    # an address that streams for ever ends, too
    bounded = {"duration": 30.0, "timeout": 60}
    assert closed["runner"] == {"constant_for_duration": {**bounded, "concurrency": 4}}
    assert opened["runner"] == {"rps": {"rps": 20.0, **bounded}}
    assert [one["of"] for one in closed["sla"]["percentile"]] == ["service", "service"]
    assert [one["of"] for one in opened["sla"]["percentile"]] == ["response", "response"]


def test_limits_are_criteria() -> None:
    found = sla_of(["p99.9=1s", "max=2s", "mean=80ms", "failures=0.5"], "service")

    assert found == {
        "percentile": [
            {"p": 99.9, "max_s": 1, "of": "service"},
            {"p": 100, "max_s": 2, "of": "service"},
        ],
        "max_avg_duration": 0.08,
        "failure_rate": {"max": 0.5},
    }
    assert sla_of([], "service") == {}
    # as without any limit
    assert sla_of(["mean=80ms"], "service")["failure_rate"] == {"max": 0}


@pytest.mark.parametrize(
    "limit",
    [
        *(
            "p95",
            "p0=1s",
            "p101=1s",
            "p=1s",
            "rps=5",
            "=1s",
            "p95=",
            "p95=x",
            "p95=0s",
            "p95=-1s",
            "p95=250",
        ),
        *("p95=inf", "mean=nan", "failures=x", "failures=101%", "failures=-1", "failures=nan"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_its_text(limit: str) -> None:
    with pytest.raises(UsageError) as refused:
        sla_of([limit], "service")

    assert str(refused.value).startswith(f"--limit {limit}: ")


@pytest.mark.parametrize("twice", [("mean=1s", "mean=2s"), ("failures=1%", "failures=2%")])
def test_a_limit_is_given_once(twice: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="has a limit already"):
        sla_of(twice, "service")


@pytest.mark.parametrize("body", ["{{ x }}", "{% raw %}", "{# a #}", "a\nb {{ y }}", "#}"])
def test_a_task_that_is_written_renders_to_the_same(body: str) -> None:
    document = Adhoc(url=URL, body=body, rps=3.0, times=9, limit=("p50=1s",)).document()

    text, problems = render(task_yaml(document), ".", {})

    assert not problems
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize(
    ("option", "most"), [("--times", 10**15), ("--workers", 100_000)], ids=["times", "workers"]
)
def test_a_count_beyond_all_reason_is_refused(option: str, most: int) -> None:
    given = ["run", "--scenario", "Dummy.dummy", "--users", "1", "--times", "1"]
    group = Group(commands=[command("run")])

    for number in (most + 1, 2**63, 2**64):
        done = CliRunner().invoke(group, [*given, option, str(number)])

        assert done.exit_code == 2
        assert f"{number} is not in the range 1<=x<={most}" in done.output


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ((), 0o644),
        (("--header", "Authorization: Bearer abcdefgh1234"), 0o600),
        (("--url", "http://user:pass-word-1@127.0.0.1:1/"), 0o600),
    ],
)
def test_a_written_task_with_secrets_is_for_its_owner_only(
    given: tuple[str, ...], mode: int, tmp_path: Path
) -> None:
    target = tmp_path / "task.yaml"
    url = () if "--url" in given else ("--url", "http://127.0.0.1:1/")
    group = Group(commands=[command("run")])
    old = os.umask(0o022)
    try:
        done = CliRunner().invoke(
            group, ["run", *url, *given, "--times", "1", "--write", str(target)]
        )
    finally:
        os.umask(old)

    assert done.exit_code == 0, done.output
    assert target.stat().st_mode & 0o777 == mode


def test_an_address_elsewhere_is_not_of_the_record_in_use() -> None:
    origins = {"http://cloud:5000", "https://shop:443"}

    assert Adhoc(url="https://shop/items").is_of(origins)
    assert Adhoc(scenario="Dummy.dummy").is_of(origins)
    assert not Adhoc(url="http://shop/items").is_of(origins)
    assert not Adhoc(url="http://127.0.0.1:8080/").is_of(origins)
