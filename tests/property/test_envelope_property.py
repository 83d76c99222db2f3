"""Properties of sealed messages, over any body and any damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring

RING = Keyring.generate()
SEALER = Sealer(RING)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)
bodies = st.dictionaries(st.text(), values, max_size=5)
kinds = st.text(max_size=40)


@given(kinds, bodies)
def test_what_is_sealed_opens_unchanged(kind, body):
    assert SEALER.open(kind, SEALER.seal(kind, body)) == body


@given(bodies, st.data())
def test_a_flipped_bit_anywhere_is_refused(body, data):
    sealed = bytearray(SEALER.seal("batch", body))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8

    with pytest.raises(Untrusted):
        SEALER.open("batch", bytes(sealed))


@given(bodies, st.data())
def test_a_cut_or_lengthened_message_is_refused(body, data):
    sealed = SEALER.seal("batch", body)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    extra = data.draw(st.binary(min_size=1, max_size=9))

    for damaged in (sealed[:cut], sealed + extra):
        with pytest.raises(Untrusted):
            SEALER.open("batch", damaged)


@given(kinds, kinds, bodies)
def test_a_message_opens_only_as_its_own_kind(sealed_as, opened_as, body):
    sealed = SEALER.seal(sealed_as, body)

    if sealed_as == opened_as:
        assert SEALER.open(opened_as, sealed) == body
    else:
        with pytest.raises(Untrusted):
            SEALER.open(opened_as, sealed)


@given(st.binary())
def test_any_bytes_are_refused_with_one_kind_of_error(data):
    with pytest.raises(Untrusted):
        SEALER.open("batch", data)


@given(bodies, st.integers(0, 2))
def test_messages_of_the_last_two_keys_open_after_rotations(body, rotations):
    ring = RING
    for _ in range(rotations):
        ring = ring.rotated()

    assert Sealer(ring).open("batch", SEALER.seal("batch", body)) == body
