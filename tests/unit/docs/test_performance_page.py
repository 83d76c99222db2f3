"""The page on performance begins with conclusions, and its table shows the same figures."""

from __future__ import annotations

import pytest

from bench.document import BEGIN, DOCUMENT, END

BEFORE, _, REST = DOCUMENT.read_text("utf-8").partition(BEGIN)
CONCLUSIONS = " ".join(BEFORE.split())
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in REST.partition(END)[0].splitlines()
    if line.startswith("| `")
]


def cells(row: str, name: str, peer: str = "") -> tuple[str, float]:
    """Return osbench's value and its ratio to a peer (0 without one), by the end of the name."""
    ((_, _, ours, _, ratio, _, _),) = (
        found
        for found in ROWS
        if found[0] == f"`{row}`" and found[1].endswith(name) and peer in found[3]
    )
    return ours.split()[0], float(ratio.split()[0]) if ratio else 0.0


def test_the_number_of_missed_targets() -> None:
    judged = [found for found in ROWS if found[6]]
    missed = [found for found in judged if found[6] == "**no**"]

    assert f"{len(missed)} of {len(judged)} targets are missed" in CONCLUSIONS


def test_the_rate_over_http() -> None:
    rate, ratio = cells("http", "20 users", "Locust")

    assert f"make {rate} GET requests per second, {ratio:.1f} times" in CONCLUSIONS


@pytest.mark.parametrize(("peer", "digits"), [("Locust", 1), ("hey", 1), ("wrk", 2)])
def test_requests_per_second_of_cpu(peer: str, digits: int) -> None:
    _, ratio = cells("core", "nginx", peer)

    assert f"{ratio:.{digits}f} times the requests of {peer}" in CONCLUSIONS


def test_users_per_gb() -> None:
    whole = "6,000 users of HttpFlow with a connection each, 2 workers: users per GB"
    users, ratio = cells("footprint", whole, "Locust")

    assert f"{users} users fit into a GB of memory: {ratio:.2f} times Locust's" in CONCLUSIONS


def test_start_lag() -> None:
    p50, p99, p999 = (
        float(cells("lag", f"an ordinary user, {name}")[0]) for name in ("p50", "p99", "p99.9")
    )

    assert f"{p50:.2f} ms at p50, {p99:.1f} ms at p99 and {p999:.1f} ms at p99.9" in CONCLUSIONS
