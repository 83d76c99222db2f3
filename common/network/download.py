"""Downloads a file from a URL, limited in time and bytes."""

from __future__ import annotations

from typing import BinaryIO

from osbench.common.network.bounded_adapter import (
    EXCHANGE_S,
    ResponseTooLargeError,
    bounded_session,
)
from osbench.common.network.exchange_deadline import exchange_within

#: Largest download, bytes.
MOST_BYTES = 64 << 30
#: Longest wait for a connection and for the next bytes, seconds.
_WAIT_S = 60.0
_BLOCK = 1 << 20


def download(
    url: str, file: BinaryIO, most_bytes: int = MOST_BYTES, total_s: float = EXCHANGE_S
) -> None:
    """Write the body of a URL to `file`; redirects are followed.

    It may take `total_s` seconds and one more for each 64 KiB. Raises requests.RequestException,
    also for another status than 2xx and a body of more than `most_bytes`; OSError if the file
    cannot be written.
    """
    left = most_bytes
    with (
        exchange_within(total_s, transfer=True),
        bounded_session(total_s=None) as client,
        client.get(url, stream=True, timeout=_WAIT_S) as response,
    ):
        response.raise_for_status()
        for block in response.iter_content(_BLOCK):
            left -= len(block)
            if left < 0:
                raise ResponseTooLargeError(
                    f"the response has more than {most_bytes:,} bytes", response=response
                )
            file.write(block)
