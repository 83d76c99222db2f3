"""Rules by which a worker process follows or refuses the offers of coordinators."""

from __future__ import annotations

from osbench.common.protocol.messages import Offer
from osbench.worker.session.refusals import (
    OLD_CHALLENGE,
    OLD_EPOCH,
    OTHER_RUN,
    OTHER_SESSION,
    OTHER_WORKER,
)
from osbench.worker.session.session import Session


def is_repeated(offer: Offer, session: Session | None) -> bool:
    """Return whether an offer was accepted before: `session` has its run and session.

    Its sender may not know that. False without a session.
    """
    return session is not None and (offer.run, offer.session) == (session.run, session.session)


def offer_refusal(
    offer: Offer, *, incarnation: str, challenge: str, session: Session | None
) -> str:
    """Return why a verified offer is refused; "" if it is to be followed.

    `challenge`: the random string in this worker's present heartbeats, which the offer has to name,
    so that each is followed once. A worker without a session follows only an offer that begins a
    membership; one with a session, only a later coordinator process of its run and membership.
    """
    checks = [
        (offer.incarnation != incarnation, OTHER_WORKER),
        (offer.challenge != challenge, OLD_CHALLENGE),
    ]
    if session is None:
        checks.append((offer.membership != offer.session, OTHER_SESSION))
    else:
        checks += [
            (offer.run != session.run, OTHER_RUN),
            (offer.membership != session.membership, OTHER_SESSION),
            (offer.epoch <= session.epoch, OLD_EPOCH),
        ]
    return next((reason for wrong, reason in checks if wrong), "")
