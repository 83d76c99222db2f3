"""Envelopes of what is sent through Redis: sealed (signed) messages and encrypted records.

A sealed message is the msgpack array [version, kind, key id, HMAC-SHA256, packed body]. The key
of the HMAC is derived from the signing key, the version and the kind, so that a body sealed as
one kind is never accepted as another.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

import msgpack
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from osbench.common.errors import Untrusted
from osbench.common.protocol.keyring import Key, Keyring

#: Version of the format of sealed messages.
VERSION = 1

_UNPACK_ERRORS = (ValueError, TypeError, msgpack.UnpackException)


class Sealer:
    """Signs bodies with the current key, verifies them with any key of the ring."""

    def __init__(self, keyring: Keyring) -> None:
        self._current = keyring.keys[0]
        self._keys = {key.id: key for key in reversed(keyring.keys)}
        self._kind_keys: dict[tuple[bytes, str], bytes] = {}

    def seal(self, kind: str, body: dict[str, Any]) -> bytes:
        """Pack and sign a body of msgpack types. Raises TypeError for other types."""
        packed = msgpack.packb(body)
        key = self._current
        mac = hmac.digest(self._kind_key(key, kind), packed, "sha256")
        sealed: bytes = msgpack.packb((VERSION, kind, key.id, mac, packed))
        return sealed

    def open(self, kind: str, data: bytes) -> dict[str, Any]:
        """The body of a message that was sealed as `kind`; no other message is unpacked.

        Raises Untrusted where version, kind, key or signature is wrong.
        """
        key_id, mac, packed = _parts(kind, data)
        key = self._keys.get(key_id)
        if key is None:
            raise Untrusted(f"{kind} message signed with an unknown key ({key_id.hex()})")
        if not hmac.compare_digest(mac, hmac.digest(self._kind_key(key, kind), packed, "sha256")):
            raise Untrusted(f"{kind} message with a wrong signature")
        return _body(kind, packed)

    def _kind_key(self, key: Key, kind: str) -> bytes:
        # A key per kind, instead of the kind in the signed bytes, avoids a copy of the body.
        found = self._kind_keys.get((key.id, kind))
        if found is None:
            label = b"osbench sealed %d " % VERSION + kind.encode()
            found = self._kind_keys[key.id, kind] = hmac.digest(key.signing, label, "sha256")
        return found


def _parts(kind: str, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Key id, signature and packed body of an envelope that claims to be of `kind`."""
    try:
        parts = msgpack.unpackb(data)
    except _UNPACK_ERRORS:
        raise Untrusted(f"{kind} message that is not msgpack") from None
    match parts:
        case [int() as version, str() as named, bytes() as key_id, bytes() as mac, bytes() as body]:
            if version != VERSION:
                raise Untrusted(f"{kind} message of format {version}, not {VERSION}")
            if named != kind:
                raise Untrusted(f"message of kind {named[:32]!r} in place of {kind!r}")
            return key_id, mac, body
    raise Untrusted(f"malformed {kind} message")


def _body(kind: str, packed: bytes) -> dict[str, Any]:
    try:
        body = msgpack.unpackb(packed, strict_map_key=False)
    except _UNPACK_ERRORS:
        raise Untrusted(f"{kind} message whose body is not msgpack") from None
    if not isinstance(body, dict):
        raise Untrusted(f"{kind} message whose body is not a map")
    return body


class Vault:
    """Encrypts records with the current key, decrypts them with any key of the ring (Fernet)."""

    def __init__(self, keyring: Keyring) -> None:
        self._fernet = MultiFernet(
            [Fernet(base64.urlsafe_b64encode(key.encryption)) for key in keyring.keys]
        )

    def encrypt(self, record: dict[str, Any]) -> bytes:
        """Encrypt and sign a record of msgpack types. Raises TypeError for other types."""
        return self._fernet.encrypt(msgpack.packb(record))

    def decrypt(self, token: bytes) -> dict[str, Any]:
        """The record of a token. Raises Untrusted where no key of the ring decrypts it."""
        try:
            packed = self._fernet.decrypt(token)
        except InvalidToken:
            raise Untrusted("an encrypted record that none of our keys decrypts") from None
        return _body("encrypted", packed)
