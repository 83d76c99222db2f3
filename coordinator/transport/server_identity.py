"""The Redis server of a run: the same one from beginning to end."""

from __future__ import annotations

from osbench.common.errors import StoreLost
from osbench.common.protocol.redis_client import Client, server_run_id


class Server:
    """Knows the server by the run id that Redis draws at each start."""

    def __init__(self, client: Client) -> None:
        """Raises StoreAway, StoreError."""
        self._client = client
        self.run_id = server_run_id(client)

    def verify(self) -> None:
        """Raise StoreLost where another server answers, or the same one after a restart."""
        if server_run_id(self._client) != self.run_id:
            raise StoreLost(
                "Redis was restarted in the middle of the run; what workers had sent and we "
                "had not read may be gone. The run directory keeps what was taken"
            )
