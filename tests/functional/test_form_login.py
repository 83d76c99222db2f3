"""A recorded login with one-time values runs without an edit, and tokens that end are renewed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helpers.form_site import OLD_CSRF, OLD_NONCE, OLD_TOKEN, PASSWORD, FormSite, visit
from helpers.json_server import serving
from helpers.readme import files
from helpers.recordings import write_har
from helpers.runs import Site
from osbench.coordinator.results.storage.run_directory import RunDirectory

pytestmark = pytest.mark.functional


@pytest.fixture
def here(guest: Site) -> Site:
    """A site whose runs have a worker, and the task of the guide."""
    guest.write("session.yaml", files("docs/flows.md")["session.yaml"])
    return guest


def actions(workload: dict[str, Any]) -> dict[str, int]:
    """How often each action was made, those that failed with them."""
    return {
        name: sum((one[kind] or {"count": 0})["count"] for kind in ("ok", "failed"))
        for name, one in workload["actions"].items()
    }


def told(here: Site, given: set[str]) -> list[str]:
    """Values for one use that are in any file of any run."""
    runs = [one for one in (here.data / "runs").iterdir() if one.is_dir()]
    parts = [repr(list(RunDirectory(run).blocks())).encode() for run in runs]
    parts += [one.read_bytes() for one in here.home.rglob("*") if one.is_file()]
    kept = b"\n".join(parts)
    return [value for value in given if value.encode() in kept]


def test_a_recorded_form_login_runs_green(here: Site) -> None:
    with serving(FormSite()) as shop:
        write_har(here.home / "shop.har", visit(shop.url))
        made = here.call("init", "shop.yaml", "--from-har", "shop.har")
        done = here.run("shop.yaml", "--task-args", f"password: {PASSWORD}")

    assert "POST /upload, whose body is not in the recording (1)" in made.err
    assert done.code == 0, done.out + done.err
    text = (here.home / "shop.yaml").read_text("utf-8")
    assert not [old for old in (OLD_CSRF, OLD_NONCE, OLD_TOKEN, PASSWORD) if old in text]
    assert "csrf: input csrf of form login" in text
    (workload,) = done.printed["workloads"]
    assert workload["accounting"]["ok"] == 10
    assert all(status < 400 for _, _, status in shop.seen)


def test_the_flow_of_the_guide_logs_in_again_when_its_token_ends(here: Site) -> None:
    with serving(FormSite(uses=7)) as shop:
        args = json.dumps({"base": shop.url, "password": PASSWORD})
        done = here.run("session.yaml", "--task-args", args)
        page = here.home / "report.html"
        report = here.coord("report", "last", "--html", str(page))

    assert done.code == 0, done.out + done.err
    (workload,) = done.printed["workloads"]
    made, ok = actions(workload), workload["accounting"]["ok"]
    refused = sum(status == 401 for _, _, status in shop.seen)
    # each expiry is one login, an action of its own, and the refused request counts, too
    assert refused > 0
    assert made["relogin"] == made["relogin > token"] == refused
    assert made["items"] == ok + refused
    assert sum(path == "/items" for _, path, _ in shop.seen) == ok + refused
    assert report.code == 0, report.err
    assert "relogin &gt; token" in page.read_text("utf-8")
    assert shop.files == [2000] * ok
    assert told(here, shop.given) == []


def test_a_token_that_is_never_good_ends_each_iteration_after_one_login(here: Site) -> None:
    with serving(FormSite(uses=0)) as shop:
        args = json.dumps({"base": shop.url, "password": PASSWORD})
        done = here.run("session.yaml", "--task-args", args)

    (workload,) = done.printed["workloads"]
    failed = workload["accounting"]["failed"]
    assert done.code == 1
    assert workload["accounting"]["ok"] == 0
    assert sum(path == "/items" for _, path, _ in shop.seen) == 2 * failed
    assert actions(workload)["relogin"] == failed
    # the site repeats the token in its answer
    assert told(here, shop.given) == []


def test_an_iteration_that_is_shown_has_no_value_for_one_use(here: Site) -> None:
    with serving(FormSite(uses=0)) as shop:
        args = json.dumps({"base": shop.url, "password": PASSWORD})
        shown = here.coord("run", "session.yaml", "--once", "--verbose", "--task-args", args)

    said = shown.out + shown.err
    # login, and login again
    assert said.count("window.shop") == 2
    assert [value for value in shop.given if value in said] == []
    assert told(here, shop.given) == []
