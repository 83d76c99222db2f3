"""Cases of answers that are cut short: a request is not sent twice, a false body is not read."""

from __future__ import annotations

from truth import checks
from truth.case import Case
from truth.planting import URL, Planting


def post_cut_off() -> Case:
    """Close a kept connection after a POST was read: it may have worked, and is not sent again."""
    request = {"url": f"{URL}/x", "method": "POST", "status_code": 200, "json": {"a": 1}}
    return Case(
        name="post-cut-off",
        planted="the connection is closed after each second POST was read",
        planting=Planting(
            server="hang_up",
            values={"wait_s": 0.0},
            config={"worker": {"processes": 1}},
            workloads=[
                {
                    "scenario": {"HttpRequests.check_request": request},
                    "runner": {"constant": {"times": 4, "concurrency": 1}},
                }
            ],
        ),
        checks=[checks.requests_once("POST", 4), checks.failed_as(2), checks.exits(1)],
    )


def _gzip_cut(*, is_read: bool) -> dict[str, object]:
    step = {"path": "/gzip-cut", **({"check": {"text": "body"}} if is_read else {})}
    return {
        "scenario": {"HttpFlow.run": {"base": URL, "steps": [step]}},
        "runner": {"constant": {"times": 2, "concurrency": 1}},
    }


def gzip_read() -> Case:
    """Cut a compressed body short: an iteration that reads it fails."""
    return Case(
        name="gzip-cut-read",
        planted="a gzip body without its end, which a check reads",
        planting=Planting(server="hostile", workloads=[_gzip_cut(is_read=True)]),
        checks=[checks.failed_as(2), checks.exits(1)],
    )


def gzip_not_read() -> Case:
    """Cut a compressed body short: if nothing reads it, it is counted and noted."""
    return Case(
        name="gzip-cut-not-read",
        planted="a gzip body without its end, which nothing reads",
        planting=Planting(
            server="hostile",
            workloads=[
                {
                    "scenario": {
                        "HttpRequests.check_request": {
                            "url": f"{URL}/gzip-cut",
                            "method": "GET",
                            "status_code": 200,
                        }
                    },
                    "runner": {"constant": {"times": 2, "concurrency": 1}},
                }
            ],
        ),
        checks=[checks.failed_as(0), checks.note("cut short"), checks.exits(0)],
    )


def endless_answers() -> Case:
    """Send answers that never end: the timeout of the iteration ends each of them."""
    load = ["--rps", "3", "--duration", "4", "--timeout", "2"]
    return Case(
        name="endless-answers",
        planted="answers that never end; 3/s for 4 s, --timeout 2",
        planting=Planting(server="hostile", arguments=["--url", f"{URL}/endless-drip", *load]),
        checks=[
            checks.number("accounting.timed_out", 12),
            checks.note_with_number("timed out after", 2.0, within=0.01),
            checks.lasts(20),
            checks.exits(1),
        ],
    )
