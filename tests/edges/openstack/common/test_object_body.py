"""Bodies that are made as they are sent."""

from __future__ import annotations

import hashlib
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.openstack.common.object_body import (
    PERIOD,
    FileBody,
    GeneratedBody,
    ObjectBody,
    ZeroBody,
)


def test_a_body_of_five_terabytes_has_a_length_and_an_end() -> None:
    body = GeneratedBody(5 << 40, 7)

    assert len(body) == 5 << 40
    assert len(body[(5 << 40) - 10 : (5 << 40) + 10]) == 10


@given(st.integers(0, 3 * PERIOD), st.integers(0, PERIOD - 1), st.integers(1, 200_000))
def test_slices_and_reads_of_any_length_are_the_same_bytes(
    size: int, offset: int, step: int
) -> None:
    body = GeneratedBody(size, offset)

    sliced = b"".join(body[at : at + step] for at in range(0, size, step))
    read = b"".join(iter(lambda: body.read(step), b""))

    assert len(sliced) == size
    assert hashlib.sha256(sliced).hexdigest() == hashlib.sha256(read).hexdigest() == body.sha256()
    # the same again after `PERIOD`
    assert sliced[PERIOD:] == sliced[: max(0, size - PERIOD)] if size <= 2 * PERIOD else True


def test_bodies_begin_at_different_bytes() -> None:
    assert GeneratedBody(1000, 1)[:] != GeneratedBody(1000, 2)[:]


def test_a_file_is_read_by_pieces_and_from_the_beginning_again() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(256)) * 1000)
        file.flush()
        body: ObjectBody = FileBody(file)

        first = body.read()
        body.rewind()

        assert (len(body), body.read(), body.read()) == (256_000, first, b"")
        assert body[255:258] == bytes([255, 0, 1])
        file.truncate(10)
        with pytest.raises(ValueError, match="became shorter while it was sent"):
            body[0:11]


def test_zeros() -> None:
    assert ZeroBody(100_000)[:] == bytes(100_000)
