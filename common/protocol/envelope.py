"""Envelopes of data in Redis: signed messages and encrypted records.

A signed message is the msgpack array [version, kind, key id, HMAC-SHA256, packed body]. The key of
the HMAC is derived from the signing key, the version and the kind, so that a body signed as one
kind is never accepted as another.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
from collections.abc import Sequence
from typing import Any

import msgpack
from cryptography.fernet import Fernet, InvalidToken

from osbench.common.errors import OsbenchError, Untrusted
from osbench.common.protocol.keyring import Key, Keyring
from osbench.common.protocol.unpacking import unpack, unpack_parts
from osbench.common.text.escaping import escaped

#: Version of the format of signed messages.
VERSION = 1

#: Largest message of a kind, bytes; then of all other kinds.
SIZES = {"block": 64 << 20, "batch": 64 << 20, "specification": 64 << 20}
SIZE = 1 << 20

#: Bytes of a key id, and most bytes of the name of a kind, in an envelope.
_ID_BYTES = 4
_KIND_BYTES = 256


class Signer:
    """Signs message bodies with the current key of a keyring; verifies them with any of its keys.

    The ring may change while messages are signed and verified.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._kind_keys: dict[tuple[bytes, str], bytes] = {}

    def sign(self, kind: str, body: dict[str, Any]) -> bytes:
        """Return `body`, a dict of msgpack types, as a packed and signed message of `kind`.

        Raises TypeError for other types, OsbenchError if the message exceeds `size_of(kind)`.
        """
        packed = msgpack.packb(body)
        key = self._keyring.signing()
        mac = hmac.digest(self._kind_key(key, kind), packed, "sha256")
        signed: bytes = msgpack.packb((VERSION, kind, key.id, mac, packed))
        if len(signed) > size_of(kind):
            most = f"at most {size_of(kind):,} are sent"
            raise OsbenchError(
                f"{_shown_kind(kind)} message of {len(signed):,} bytes: {most}; shorten the data "
                "that the task gives to workers"
            )
        return signed

    def verify(self, kind: str, data: bytes) -> dict[str, Any]:
        """Return the body of a message if it was signed as `kind` with a key of the ring.

        The body is unpacked only after that. Raises Untrusted if size, version, kind, key or
        signature is wrong, or if the body is not a map or beyond the limits of
        `osbench.common.protocol.unpacking`. May read the key file again.
        """
        key_id, mac, packed = _parts(kind, data)
        key = self._keyring.find(key_id)
        if key is None:
            raise Untrusted(
                f"{_shown_kind(kind)} message signed with an unknown key ({key_id.hex()})"
            )
        if not hmac.compare_digest(mac, hmac.digest(self._kind_key(key, kind), packed, "sha256")):
            raise Untrusted(f"{_shown_kind(kind)} message with a wrong signature")
        return _body(kind, packed)

    def _kind_key(self, key: Key, kind: str) -> bytes:
        # A key per kind, instead of the kind in the signed bytes, avoids a copy of the body.
        found = self._kind_keys.get((key.signing, kind))
        if found is None:
            label = b"osbench sealed %d " % VERSION + kind.encode()
            found = hmac.digest(key.signing, label, "sha256")
            self._kind_keys[key.signing, kind] = found
        return found


def size_of(kind: str) -> int:
    """Return the greatest size in bytes of a signed message of a kind."""
    return SIZES.get(kind, SIZE)


def _shown_kind(kind: str) -> str:
    return escaped(kind[:32])


def _parts(kind: str, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return key id, unverified signature and packed body. Raises Untrusted."""
    if len(data) > size_of(kind):
        raise Untrusted(f"{_shown_kind(kind)} message of {len(data)} bytes: too large")
    try:
        parts = unpack_parts(data, parts=5, text=_KIND_BYTES)
    except ValueError:
        raise Untrusted(f"{_shown_kind(kind)} message that is not msgpack") from None
    match parts:
        case [int() as version, str() as named, bytes() as key_id, bytes() as mac, bytes() as body]:
            if version != VERSION:
                raise Untrusted(f"{_shown_kind(kind)} message of format {version}, not {VERSION}")
            if named != kind:
                shown = f"'{_shown_kind(named)}' instead of '{_shown_kind(kind)}'"
                raise Untrusted(f"message of kind {shown}")
            if len(key_id) == _ID_BYTES:
                return key_id, mac, body
    raise Untrusted(f"malformed {_shown_kind(kind)} message")


def _body(kind: str, packed: bytes) -> dict[str, Any]:
    try:
        body = unpack(packed)
    except ValueError:
        raise Untrusted(f"{_shown_kind(kind)} message whose body is not msgpack") from None
    if not isinstance(body, dict):
        raise Untrusted(f"{_shown_kind(kind)} message whose body is not a map")
    return body


class Vault:
    """Encrypts records with the current key of a keyring, decrypts with any of its keys (Fernet).

    The ring may change while records are encrypted and decrypted.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def encrypt(self, record: dict[str, Any]) -> bytes:
        """Pack and encrypt `record`, a dict of msgpack types; return the Fernet token.

        Raises TypeError for other types.
        """
        return _fernet(self._keyring.signing()).encrypt(msgpack.packb(record))

    def decrypt(self, token: bytes) -> dict[str, Any]:
        """Return the record of a Fernet token; if no key fits, reads a changed key file again.

        Raises Untrusted if no key of the ring decrypts it, or if the record is not a map in
        msgpack.
        """
        keys = self._keyring.keys
        packed = _decrypt(keys, token)
        if packed is None and self._keyring.changed(keys):
            packed = _decrypt(self._keyring.keys, token)
        if packed is None:
            raise Untrusted("an encrypted record that none of our keys decrypts")
        return _body("encrypted", packed)


def _decrypt(keys: Sequence[Key], token: bytes) -> bytes | None:
    for key in keys:
        with contextlib.suppress(InvalidToken, TypeError, ValueError):
            return _fernet(key).decrypt(token)
    return None


def _fernet(key: Key) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(key.encryption))
