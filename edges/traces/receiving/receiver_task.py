"""Settings that the coordinator sends to the process of the receiver, as a line of JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReceiverTask:
    """Settings of the process that receives spans: run, spool file, token, TLS files."""

    run_id: str
    #: Path and largest size of the spool.
    path: str
    limit_bytes: int
    #: Bearer token of requests; "" for none.
    token: str = ""
    #: Files of certificate and key for TLS; "" for none.
    certificate: str = ""
    key: str = ""
    #: Keep all attributes.
    everything: bool = False
