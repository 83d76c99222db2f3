"""HTTP requests of iterations as records of a result block, 46 bytes each.

Phases are nanoseconds as 32-bit floats, exact to 17 ms and to a 16-millionth of the time beyond. 0
stands for a phase that did not take place: connecting over a kept connection, TLS without TLS, the
rest of a response that did not end.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Phases of a request in their order: name lookup, connecting, TLS handshake, waiting for the first
#: bytes of the response, and the rest of it.
PHASES = ("lookup", "connect", "tls", "wait", "rest")

#: A request. `action`: position of the innermost open action in its iteration, -1 for none.
#: `client`: `OWN` or `OWN_TWICE`, less `PER_SERVER` for each number up to that of the server among
#: the names of actions, from 1; or the number there of "libcurl: why" and the like: then nothing
#: was measured. `sent`, `received`: bytes. `status`: code of the response, 0
#: without one; with `FALSE_BODY`, of any client, if the body was cut short or not in the content
#: codings that its head names.
EXCHANGE = np.dtype(
    [
        ("action", "<i4"),
        ("client", "<i4"),
        *((phase, "<f4") for phase in PHASES),
        ("sent", "<i8"),
        ("received", "<i8"),
        ("status", "<i2"),
    ]
)
EXCHANGE_BYTES = EXCHANGE.itemsize

#: The client of osbench; and if it sent the request twice, because the kept connection ended
#: without a response.
OWN = -1
OWN_TWICE = -2
PER_SERVER = 2
#: Name of all servers beyond the number that is distinguished.
OTHER_SERVERS = "(other servers)"

#: A bit next to the status code.
FALSE_BODY = 1 << 12

#: Packs the fields of a request, in their order; the same of one over a kept connection, without
#: the phases of opening one.
pack_exchange = struct.Struct("<ii5f2qh").pack
pack_kept = struct.Struct("<ii12x2f2qh").pack

#: Neither a phase (4 months) nor the bytes of a request each way (4 TiB) reach it.
_LONGEST_NS = 1e16
_MOST_BYTES = 2**42
#: Status codes have three digits.
_LAST_STATUS = 999


def pack_other(action: int, client: int, *, false_body: bool = False) -> bytes:
    """Return the packed record of a request that another HTTP client than osbench's made.

    Phases, bytes and status are 0. `action`, `client`: as in `EXCHANGE`. `false_body`: the body was
    cut short or not in its declared content coding.
    """
    return pack_kept(action, client, 0, 0, 0, 0, FALSE_BODY if false_body else 0)


def read_exchanges(
    packed: bytes, of_rows: NDArray[np.uint32], actions: Ints, names: int
) -> tuple[NDArray[Any], Ints]:
    """Return the requests of a block as an array of dtype EXCHANGE, and the row index of each.

    `packed`: their bytes. `of_rows`: requests per row. `actions`: actions of all rows
    (`Columns.actions`). `names`: how many names of actions there are. Raises ValueError for data
    that no worker of osbench sends.
    """
    found: NDArray[Any] = np.frombuffer(packed, EXCHANGE)
    if int(of_rows.sum(dtype=np.int64)) != len(found):
        raise ValueError("rows and requests do not fit together")
    rows: Ints = np.repeat(np.arange(len(of_rows)), of_rows)
    if not len(found):
        return found, rows
    begin = action_lines(rows, actions)
    room = np.searchsorted(actions[:, 0], rows, side="right") - begin
    place, client = found["action"], found["client"]
    if not ((place >= -1) & (place < room)).all():
        raise ValueError("a request of an unknown action")
    if not max(client.max(), servers_of(client).max()) < names:
        raise ValueError("a request of a client without a name")
    for phase in PHASES:
        lasted = found[phase]
        # a NaN is neither
        if not ((lasted >= 0) & (lasted < _LONGEST_NS)).all():
            raise ValueError(f"phase {phase} of a request: expected a time of 0 or more")
    for way in ("sent", "received"):
        if not 0 <= found[way].min() <= found[way].max() < _MOST_BYTES:
            raise ValueError("a request with an impossible number of bytes")
    status = found["status"] & ~FALSE_BODY
    if not 0 <= status.min() <= status.max() <= _LAST_STATUS:
        raise ValueError("a request with an impossible status code")
    return found, rows


def servers_of(client: NDArray[np.int32]) -> Ints:
    """Return the numbers of servers among the names of actions, by the field `client`.

    -1 if the server is not known, -2 for requests by other clients than osbench's.
    """
    own = (OWN - client.astype(np.int64)) // PER_SERVER - 1
    return np.where(client < 0, own, -2)


def sent_twice(client: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which requests osbench's client sent twice, by the field `client`."""
    found: NDArray[np.bool_] = (client < 0) & ((OWN_TWICE - client) % PER_SERVER == 0)
    return found


def action_lines(rows: Ints, actions: Ints) -> Ints:
    """Return for each index in `rows` the position of that row's first line in `actions`."""
    return np.searchsorted(actions[:, 0], rows).astype(np.int64)
