"""Sealed messages and encrypted records: ours open, all others are refused."""

import msgpack
import pytest

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.keyring import Keyring

BODY = {"run": "r1", "numbers": [1, 2, 3], "columns": b"\x00\xff" * 8, "late": None, "by": {7: 0.5}}


@pytest.fixture(scope="module")
def ring():
    return Keyring.generate()


@pytest.fixture(scope="module")
def sealer(ring):
    return Sealer(ring)


def test_a_sealed_message_opens_as_it_was(ring, sealer):
    data = sealer.seal("batch", BODY)

    assert Sealer(ring).open("batch", data) == BODY


def test_a_message_of_another_kind_is_refused(sealer):
    data = sealer.seal("batch", BODY)

    with pytest.raises(Untrusted, match="'batch' instead of 'control'"):
        sealer.open("control", data)


def test_renaming_the_kind_does_not_help(sealer):
    version, _, key_id, mac, body = msgpack.unpackb(sealer.seal("batch", BODY))
    forged = msgpack.packb([version, "control", key_id, mac, body])

    with pytest.raises(Untrusted, match="wrong signature"):
        sealer.open("control", forged)


def test_a_message_of_a_foreign_key_is_refused(sealer):
    data = Sealer(Keyring.generate()).seal("batch", BODY)

    with pytest.raises(Untrusted, match="unknown key"):
        sealer.open("batch", data)


def test_a_foreign_signature_under_our_key_id_is_refused(sealer):
    ours = msgpack.unpackb(sealer.seal("batch", BODY))
    theirs = msgpack.unpackb(Sealer(Keyring.generate()).seal("batch", BODY))
    forged = msgpack.packb([*ours[:3], theirs[3], ours[4]])

    with pytest.raises(Untrusted, match="wrong signature"):
        sealer.open("batch", forged)


def test_another_version_is_refused(sealer):
    _, *rest = msgpack.unpackb(sealer.seal("batch", BODY))

    with pytest.raises(Untrusted, match="format 2"):
        sealer.open("batch", msgpack.packb([2, *rest]))


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
def test_what_is_not_an_envelope_is_refused(sealer, data):
    with pytest.raises(Untrusted):
        sealer.open("batch", data)


def test_a_signed_body_that_is_not_a_map_is_refused(sealer):
    data = sealer.seal("batch", [1, 2])

    with pytest.raises(Untrusted, match="not a map"):
        sealer.open("batch", data)


def test_old_messages_open_after_a_rotation_but_new_ones_not_before_it(ring, sealer):
    rotated = Sealer(ring.rotated())

    assert rotated.open("batch", sealer.seal("batch", BODY)) == BODY
    with pytest.raises(Untrusted, match="unknown key"):
        sealer.open("batch", rotated.seal("batch", BODY))


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
