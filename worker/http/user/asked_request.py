"""A request that a scenario asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osbench.worker.http.user.expectations import Checks


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedRequest:
    """What is to be sent, and what is expected of the answer."""

    name: str
    method: str
    url: str
    #: Header lines for the host of `url` only.
    own: list[str]
    #: Keyword arguments of `requests.request`.
    options: Mapping[str, Any]
    expect: Any
    check: Checks | None
    verify: Checks | None
    keep_body: bool
