"""Signed messages and encrypted records: ours open, all others are refused."""

import msgpack
import pytest

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring

BODY = {"run": "r1", "numbers": [1, 2, 3], "columns": b"\x00\xff" * 8, "late": None, "by": {7: 0.5}}


@pytest.fixture(scope="module")
def ring():
    return Keyring.generate()


@pytest.fixture(scope="module")
def signer(ring):
    return Signer(ring)


def test_a_signed_message_opens_as_it_was(ring, signer):
    data = signer.sign("batch", BODY)

    assert Signer(ring).verify("batch", data) == BODY


def test_a_message_of_another_kind_is_refused(signer):
    data = signer.sign("batch", BODY)

    with pytest.raises(Untrusted, match="'batch' instead of 'control'"):
        signer.verify("control", data)


def test_renaming_the_kind_does_not_help(signer):
    version, _, key_id, mac, body = msgpack.unpackb(signer.sign("batch", BODY))
    forged = msgpack.packb([version, "control", key_id, mac, body])

    with pytest.raises(Untrusted, match="wrong signature"):
        signer.verify("control", forged)


def test_a_message_of_a_foreign_key_is_refused(signer):
    data = Signer(Keyring.generate()).sign("batch", BODY)

    with pytest.raises(Untrusted, match="unknown key"):
        signer.verify("batch", data)


def test_a_foreign_signature_under_our_key_id_is_refused(signer):
    ours = msgpack.unpackb(signer.sign("batch", BODY))
    theirs = msgpack.unpackb(Signer(Keyring.generate()).sign("batch", BODY))
    forged = msgpack.packb([*ours[:3], theirs[3], ours[4]])

    with pytest.raises(Untrusted, match="wrong signature"):
        signer.verify("batch", forged)


def test_another_version_is_refused(signer):
    _, *rest = msgpack.unpackb(signer.sign("batch", BODY))

    with pytest.raises(Untrusted, match="format 2"):
        signer.verify("batch", msgpack.packb([2, *rest]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x95\x01",
        b"\x91" * 5000,
        msgpack.packb({"version": 1}),
        msgpack.packb([1, "batch"]),
        msgpack.packb([1, "batch", "key", "mac", "body"]),
        msgpack.packb("text"),
        msgpack.packb({(1, 2): 3}),
    ],
)
def test_what_is_not_an_envelope_is_refused(signer, data):
    with pytest.raises(Untrusted):
        signer.verify("batch", data)


def test_a_signed_body_that_is_not_a_map_is_refused(signer):
    data = signer.sign("batch", [1, 2])

    with pytest.raises(Untrusted, match="not a map"):
        signer.verify("batch", data)


def test_old_messages_open_after_a_rotation_but_new_ones_not_before_it(ring, signer):
    rotated = Signer(ring.rotated())

    assert rotated.verify("batch", signer.sign("batch", BODY)) == BODY
    with pytest.raises(Untrusted, match="unknown key"):
        signer.verify("batch", rotated.sign("batch", BODY))


def test_an_encrypted_record_decrypts_as_it_was_and_hides_its_content(ring):
    record = {"name": "cloud", "password": "s3cret-word"}

    token = Vault(ring).encrypt(record)

    assert b"s3cret" not in token
    assert Vault(ring).decrypt(token) == record
    assert Vault(ring.rotated()).decrypt(token) == record


def test_a_record_of_a_foreign_key_or_a_changed_one_is_refused(ring):
    token = Vault(ring).encrypt({"name": "cloud"})
    changed = token[:40] + bytes([token[40] ^ 1]) + token[41:]

    with pytest.raises(Untrusted):
        Vault(Keyring.generate()).decrypt(token)
    with pytest.raises(Untrusted):
        Vault(ring).decrypt(changed)
    with pytest.raises(Untrusted):
        Vault(ring).decrypt(b"no token")
