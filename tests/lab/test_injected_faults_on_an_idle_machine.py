"""A slow call behind 3 % of the requests to a real service is named; without it nothing is.

Planted delays are compared with all else that makes requests slow: on an idle machine.
"""

from __future__ import annotations

import html
import json
import re
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.lab.injected_faults import Case, faulty_lab, glance, keystone, zaqar
from helpers.runs import Finished, Site, site
from servers import missing
from services import operations
from services.faults import Unavailable
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timing, pytest.mark.timeout(1800)]

CLEAN = 3

#: Runs with faults at most, until one is quiet ...
ATTEMPTS = 4
#: ... so that the planted delay is more than this share of what slow requests take longer, as a
#: client sees it. Explanations name what is clearly more than one half.
QUIET = 0.8


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    try:
        with faulty_lab() as found:
            yield found
    except Unavailable as fault:
        missing(str(fault))


@pytest.fixture(scope="module")
def here(lab: Lab) -> Iterator[Site]:
    with site() as found:
        found.deployment(lab.deployment())
        yield found


@pytest.fixture(scope="module")
def cases(lab: Lab) -> list[Case]:
    return [zaqar(lab), glance()]


@pytest.fixture(scope="module")
def faulty(here: Site, lab: Lab, cases: list[Case]) -> str:
    """A run of all cases with their faults."""
    return ran_quietly(here, lab, cases)


@pytest.fixture(scope="module")
def clean(here: Site, lab: Lab, cases: list[Case]) -> str:
    """A run without faults: the quickest case, several times."""
    lab.plant()
    return ran(here, cases[:1] * CLEAN)


def ran(here: Site, cases: list[Case]) -> str:
    """Run cases on two worker processes, every iteration traced; the run's id."""
    task = here.task(*(case.workload() for case in cases))
    done = here.start("osbench-coord", "run", "--json", task, "--workers", "2").finish(1500.0)
    assert done.code == 0, done.out + done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [
        case.times for case in cases
    ]
    return str(done.result["run_id"])


def ran_quietly(here: Site, lab: Lab, cases: list[Case]) -> str:
    """Run cases with their faults until other work of this machine made little else slow.

    What osbench says of the traces has no part in what is quiet: requests' own times decide.
    """
    lab.plant(*(case.fault for case in cases))
    shares: list[list[float]] = []
    for _ in range(ATTEMPTS):
        run_id = ran(here, cases)
        rows = here.rows(run_id)
        shares.append([planted_share(rows, at, case) for at, case in enumerate(cases)])
        if min(shares[-1]) > QUIET:
            return run_id
    pytest.skip(f"this machine is too busy: shares of the planted delays were {shares}")


def planted_share(rows: list[dict[str, str]], workload: int, case: Case) -> float:
    """What share the planted delay is of what slow requests take longer than the median."""
    took = sorted(float(row["service_s"]) for row in rows if int(row["workload"]) == workload)
    slow = took[-round(case.times * case.fault.share) :]
    return case.fault.delay_s / (statistics.mean(slow) - statistics.median(took))


def printed(here: Site, *command: str) -> Finished:
    done = here.coord("trace", *command)
    assert done.code == 0, done.err
    return done


def answers(here: Site, run_id: str) -> list[dict[str, Any]]:
    """The text on each workload, in their order."""
    found = json.loads(printed(here, "explain", run_id, "--json").out)["answers"]
    return sorted(found, key=lambda answer: str(answer["name"]))


def check(answer: dict[str, Any], case: Case) -> None:
    """The slow call is named first, with most of what slow requests take longer."""
    first = answer["bands"][0]["causes"][0]
    assert case.is_named_by(first), answer["sentence"]
    assert first["clear"], answer["sentence"]
    assert first["share"] > 0.5
    assert first["slower_calls_s"] > 0.9 * first["excess_s"]
    ((host, share),) = first["hosts"]
    assert share == 1
    assert f"is {case.who} {case.what} " in answer["sentence"]
    assert f"on host {host}, " in answer["sentence"]
    assert " a call instead of " in answer["sentence"]


@pytest.mark.parametrize("number", [0, 1], ids=["zaqar", "glance"])
def test_the_slow_call_is_named(here: Site, faulty: str, cases: list[Case], number: int) -> None:
    check(answers(here, faulty)[number], cases[number])


def test_a_slow_query_of_keystone_is_named(here: Site, lab: Lab) -> None:
    case = keystone()

    (answer,) = answers(here, ran_quietly(here, lab, [case]))

    check(answer, case)


def test_nothing_is_named_where_nothing_is_wrong(here: Site, clean: str) -> None:
    found = answers(here, clean)

    assert len(found) == CLEAN
    for answer in found:
        assert answer["bands"][0]["enough"]
        assert not [one for band in answer["bands"] for one in band["causes"] if one["clear"]]
        assert "no single cause stands out" in answer["sentence"]


def test_the_slow_call_is_what_a_run_without_it_lacks(
    here: Site, faulty: str, clean: str, cases: list[Case]
) -> None:
    found = json.loads(printed(here, "compare", clean, faulty, "--json").out)

    (first, *_) = found["comparisons"]
    assert cases[0].is_named_by(first["changes"][0]), first["sentence"]


def test_one_slow_request_is_shown_with_the_call_on_its_critical_path(
    here: Site, faulty: str, cases: list[Case]
) -> None:
    exemplar = next(one for one in answers(here, faulty)[0]["bands"][0]["exemplars"] if one["kept"])

    lines = printed(here, "show", exemplar["trace_id"]).out.splitlines()

    assert any(f"* {cases[0].who} {cases[0].what}" in line for line in lines)


def test_the_first_screen_of_the_report_names_the_slow_calls(
    here: Site, lab: Lab, faulty: str, cases: list[Case]
) -> None:
    """The last test of this module: it stops the lab, and with it the trace store."""
    operations.stop(lab)
    file = here.home / "report.html"

    done = here.coord("report", faulty, "--html", str(file))

    assert done.code == 0, done.err
    first = seen(file.read_text("utf-8").partition("<nav")[0])
    for answer, case in zip(answers(here, faulty), cases, strict=True):
        check(answer, case)
        assert seen(answer["sentence"]) in first
        assert f"is {case.who} {case.what} " in first


def seen(part: str) -> str:
    """What a reader sees of a part of a page, with units as terminals show them."""
    text = html.unescape(re.sub(r"<[^>]*>", "", part)).replace("µs", "us")
    return " ".join(text.split())
