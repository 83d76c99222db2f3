"""Offers are followed once, by whom they name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from osbench.common.protocol.messages import Offer
from osbench.worker.session.offer_rules import is_repeated, offer_refusal

OFFER = Offer(run="r", epoch=2, incarnation="w", challenge="c", session="t", membership="t")
TAKEOVER = replace(OFFER, membership="s")


@dataclass
class Served:
    """The session that a worker has."""

    run: str = "r"
    epoch: int = 1
    session: str = "s"
    membership: str = "s"


def refusal(offer: Offer, session: Served | None = None) -> str:
    return offer_refusal(offer, incarnation="w", challenge="c", session=session)


def test_a_free_worker_follows_an_offer():
    assert refusal(OFFER) == ""


def test_a_worker_follows_the_next_coordinator_of_its_run():
    assert refusal(TAKEOVER, Served()) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"incarnation": "x"}, "other worker"),
        ({"challenge": "x"}, "old challenge"),
        ({"challenge": ""}, "old challenge"),
        ({"membership": "x"}, "other session"),
    ],
)
def test_a_free_worker_refuses(change, reason):
    assert refusal(replace(OFFER, **change)) == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"incarnation": "x"}, "other worker"),
        ({"challenge": "x"}, "old challenge"),
        ({"run": "x"}, "other run"),
        ({"membership": "t"}, "other session"),
        ({"epoch": 1}, "old epoch"),
        ({"epoch": 0}, "old epoch"),
    ],
)
def test_a_worker_in_a_run_refuses(change, reason):
    assert refusal(replace(TAKEOVER, **change), Served()) == reason


def test_an_offer_that_was_followed_may_be_repeated():
    assert is_repeated(replace(OFFER, challenge="old"), Served(session="t"))
    assert not is_repeated(OFFER, Served())
    assert not is_repeated(OFFER, None)
