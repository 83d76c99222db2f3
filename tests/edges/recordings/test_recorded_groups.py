"""Requests that a browser had under way at once become groups of the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from helpers.recordings import entry, write_har
from osbench.coordinator.front.cli import main
from osbench.coordinator.task.taskfile.template import render

SITE = "https://shop.example"
PAGE = {"response_type": "text/html", "_resourceType": "document", "at_s": 0.1}


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def made(tmp_path: Path, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of the task that `init` makes of these requests, which `validate` accepts."""
    write_har(tmp_path / "it.har", entries)
    task = tmp_path / "task.yaml"
    done = coord("init", str(task), "--from-har", str(tmp_path / "it.har"))
    assert done.exit_code == 0, done.output
    unsent = sum("postData" in one["request"] for one in entries)
    assert f": {len(entries) - unsent} requests" in done.output
    checked = coord("validate", str(task))
    assert checked.exit_code == 0, checked.output + task.read_text("utf-8")
    document, problems = render(task.read_text("utf-8"), ".", {})
    assert not problems
    steps: list[dict[str, Any]] = yaml.safe_load(document)["subtasks"][0]["scenario"][
        "HttpFlow.run"
    ]["steps"]
    return steps


def shape(steps: list[dict[str, Any]]) -> list[Any]:
    """Paths of the steps; a list of paths for a group."""
    return [
        [one["path"] for one in step["parallel"]] if "parallel" in step else step["path"]
        for step in steps
    ]


def asked(path: str, at_s: float, took_s: float = 0.3, **more: Any) -> dict[str, Any]:
    return entry("GET", f"{SITE}{path}", at_s=at_s, took_s=took_s, **more)


def test_parts_of_a_dashboard_are_one_group(tmp_path: Path) -> None:
    charts = [asked(f"/charts/{name}", 1 + place / 100) for place, name in enumerate("abcdefgh")]

    steps = made(
        tmp_path,
        entry("GET", f"{SITE}/board", answer="<html>", **PAGE),
        *charts,
        asked("/news", 5),
    )

    assert shape(steps) == ["/board", [f"/charts/{name}" for name in "abcdefgh"], "/news"]
    group = steps[1]
    assert group["name"] == "GET /charts/a and 7 more"
    assert group["at_once"] == 6
    # from the last end, 1.37 s, to 5 s
    assert group["think"] == 3.6
    assert all(set(member) == {"name", "path", "expect"} for member in group["parallel"])


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        # c began when a had ended: it may be made of it
        ([("/a", 1, 0.2), ("/b", 1.1, 0.5), ("/c", 1.3, 0.1)], [["/a", "/b"], "/c"]),
        ([("/a", 1, 0.1), ("/b", 1.1, 0.1)], ["/a", "/b"]),
        ([("/a", 1, 0.0), ("/b", 1, 0.0)], ["/a", "/b"]),
        ([("/a", 1, 0.3), ("/b", 1.1, 0.3), ("/c", 1.2, 0.3)], [["/a", "/b", "/c"]]),
    ],
)
def test_a_group_has_requests_that_were_all_under_way(
    tmp_path: Path, entries: list[tuple[str, float, float]], wanted: list[Any]
) -> None:
    page = entry("GET", f"{SITE}/", answer="<html>", **PAGE)

    steps = made(tmp_path, page, *(asked(*one) for one in entries))

    assert shape(steps) == ["/", *wanted]


def test_a_page_is_in_no_group(tmp_path: Path) -> None:
    page = entry("GET", f"{SITE}/", answer="<html>", **{**PAGE, "took_s": 3.0})

    opened = entry("GET", f"{SITE}/next", answer="<html>", **{**PAGE, "at_s": 1.15})

    steps = made(tmp_path, page, asked("/a", 1), asked("/b", 1.1), opened, asked("/c", 1.2))

    assert shape(steps) == ["/", ["/a", "/b"], "/next", "/c"]


def test_a_request_that_needs_a_value_of_a_member_comes_after_the_group(tmp_path: Path) -> None:
    order = asked("/order", 1, 0.5, answer={"order_id": "A-4711-x"})

    steps = made(tmp_path, order, asked("/other", 1.1), asked("/orders/A-4711-x", 1.2))

    assert shape(steps) == [["/order", "/other"], "/orders/{saved.order_id}"]
    assert steps[0]["parallel"][0]["save"] == {"order_id": "$.order_id"}


def test_a_request_that_is_left_out_does_not_divide_a_group(tmp_path: Path) -> None:
    upload = entry("POST", f"{SITE}/up", body=("image/png", "x"), at_s=1.05, took_s=0.3)

    steps = made(tmp_path, asked("/a", 1), upload, asked("/b", 1.1))

    assert shape(steps) == [["/a", "/b"]]
    text = (tmp_path / "task.yaml").read_text("utf-8")
    assert "# left out: POST /up" in text


def test_requests_without_times_are_in_no_group(tmp_path: Path) -> None:
    entries = [asked("/a", 1), asked("/b", 1.1), asked("/c", 1.2)]
    for one in entries:
        one["startedDateTime"] = ""

    assert shape(made(tmp_path, *entries)) == ["/a", "/b", "/c"]
