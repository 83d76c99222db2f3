"""Frames of Redis's protocol are cut where they end, however they arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.resp import Frames, NotResp, arguments, command

parts = st.lists(st.binary(max_size=40), min_size=1, max_size=6)
REPLIES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":17\r\n",
    b"$-1\r\n",
    b"_\r\n",
    b"$4\r\n\r\n\r\n\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
    b"%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n",
    b">2\r\n+message\r\n$1\r\nx\r\n",
]


@given(st.lists(parts, min_size=1, max_size=5), st.integers(1, 9))
def test_commands_are_found_in_pieces_of_any_size(commands: list[list[bytes]], size: int) -> None:
    sent = [command(*one) for one in commands]
    data = b"".join(sent)
    frames = Frames()

    found = [
        frame for at in range(0, len(data), size) for frame in frames.feed(data[at : at + size])
    ]

    assert found == sent
    assert [arguments(one) for one in found] == commands
    assert frames.rest() == b""


@given(st.lists(st.sampled_from(REPLIES)), st.integers(1, 9))
def test_replies_are_found_in_pieces_of_any_size(replies: list[bytes], size: int) -> None:
    data = b"".join(replies)
    frames = Frames()

    found = [
        frame for at in range(0, len(data), size) for frame in frames.feed(data[at : at + size])
    ]

    assert found == replies


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"$x\r\n", b"*\r\n"])
def test_what_is_no_resp_is_refused(data: bytes) -> None:
    with pytest.raises(NotResp):
        Frames().feed(data)
