"""Record of a request that libcurl or `requests` makes instead of osbench's own client."""

from __future__ import annotations

from osbench.common.plugin.atomic import UnderWay
from osbench.common.protocol.exchanges import pack_other


class OtherExchange:
    """Record in an iteration of one request that another client makes: its client, without times.

    It implements `UnderWay`; `false_body` is set while responses are read.
    """

    __slots__ = ("_client", "action", "before", "false_body", "over")

    action: int
    before: UnderWay | None
    over: bool

    def __init__(self, client: int = 0) -> None:
        """`client`: index in the names of actions of "CLIENT: REASON"."""
        self._client = client
        #: A body is cut short or not in the content codings of its head; also of a redirect.
        self.false_body = False

    def packed(self, action: int) -> bytes:
        """Return the record as bytes for a result block.

        `action` is the position of the requesting action in its iteration.
        """
        return pack_other(action, self._client, false_body=self.false_body)
