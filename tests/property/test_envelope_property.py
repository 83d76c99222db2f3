"""Properties of signed messages, over any body and any damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring

RING = Keyring.generate()
SIGNER = Signer(RING)

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
def test_what_is_signed_opens_unchanged(kind, body):
    assert SIGNER.verify(kind, SIGNER.sign(kind, body)) == body


@given(bodies, st.data())
def test_a_flipped_bit_anywhere_is_refused(body, data):
    signed = bytearray(SIGNER.sign("batch", body))
    bit = data.draw(st.integers(0, len(signed) * 8 - 1))
    signed[bit // 8] ^= 1 << bit % 8

    with pytest.raises(Untrusted):
        SIGNER.verify("batch", bytes(signed))


@given(bodies, st.data())
def test_a_cut_or_lengthened_message_is_refused(body, data):
    signed = SIGNER.sign("batch", body)
    cut = data.draw(st.integers(0, len(signed) - 1))
    extra = data.draw(st.binary(min_size=1, max_size=9))

    for damaged in (signed[:cut], signed + extra):
        with pytest.raises(Untrusted):
            SIGNER.verify("batch", damaged)


@given(kinds, kinds, bodies)
def test_a_message_opens_only_as_its_own_kind(signed_as, opened_as, body):
    signed = SIGNER.sign(signed_as, body)

    if signed_as == opened_as:
        assert SIGNER.verify(opened_as, signed) == body
    else:
        with pytest.raises(Untrusted):
            SIGNER.verify(opened_as, signed)


@given(st.binary())
def test_any_bytes_are_refused_with_one_kind_of_error(data):
    with pytest.raises(Untrusted):
        SIGNER.verify("batch", data)


@given(bodies, st.integers(0, 2))
def test_messages_of_the_last_two_keys_open_after_rotations(body, rotations):
    ring = RING
    for _ in range(rotations):
        ring = ring.rotated()

    assert Signer(ring).verify("batch", SIGNER.sign("batch", body)) == body
