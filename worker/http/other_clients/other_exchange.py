"""Record of a request that libcurl or `requests` makes instead of osbench's own client."""

from __future__ import annotations

from osbench.common.plugin.atomic import UnderWay
from osbench.common.protocol.exchanges import pack_other


class OtherExchange:
    """Facts of such a request for its iteration, as an `UnderWay`; phases are not measured."""

    __slots__ = ("_client", "action", "before", "false_body", "over")

    action: int
    before: UnderWay | None
    over: bool

    def __init__(self, client: int = 0) -> None:
        """`client` is the number of the client and the reason among the names of actions."""
        self._client = client
        #: A body is cut short or not in the content codings of its head; also of a redirect.
        self.false_body = False

    def packed(self, action: int) -> bytes:
        """Return the record for a result block.

        `action` is the position of the requesting action in its iteration.
        """
        return pack_other(action, self._client, false_body=self.false_body)
