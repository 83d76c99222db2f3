"""A certificate: a statement, the public key of its sealer and a signature, in one JSON file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.files.regular_files import read_regular
from osbench.coordinator.formatting import plain
from osbench.coordinator.results.storage.frames import reason_of
from osbench.edges.certificate.canonical_json import canonical, parse_canonical
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.sealed_statement import (
    FORMAT,
    RunEvidence,
    Seal,
    SealedStatement,
)
from osbench.edges.certificate.signing_key import (
    PUBLIC_BYTES,
    SIGNATURE_BYTES,
    PublicKey,
    SealingKey,
)

#: Largest certificate that is read, bytes.
MOST_BYTES = 64 << 20
#: Ends the name of a certificate.
SUFFIX = ".certificate.json"
#: Begins the signed bytes: a signature of this key for another purpose is not one of these.
_PURPOSE = b"osbench certificate\n"
#: An id becomes the name of a folder.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_KEYS = {"certificate", "signature", "statement"}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A certificate whose signature holds for its own public key."""

    statement: SealedStatement
    key: PublicKey

    @property
    def evidence(self) -> RunEvidence:
        """The result of the run."""
        return self.statement.evidence

    @property
    def seal(self) -> Seal:
        """The sealer's own words."""
        return self.statement.seal


def sealed_content(statement: SealedStatement, key: SealingKey) -> bytes:
    """Return the content of a certificate's file: `statement`, signed by `key`."""
    document = statement.to_json()
    signature = key.sign(_PURPOSE + canonical(document))
    return canonical({"certificate": FORMAT, "signature": signature.hex(), "statement": document})


def read_certificate(path: Path) -> Certificate:
    """Read a certificate, and check its signature by the key that it names.

    Raises UsageError if the file cannot be read, CertificateRefused if it is not a certificate, was
    changed, or is of a later osbench.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UsageError(
            f"cannot read the certificate {path}: {reason_of(error)}; give the file that `certify`"
            " wrote"
        ) from None
    try:
        return parse_certificate(content)
    except ValueError as error:
        reason = plain(str(error), 300)
        raise CertificateRefused(
            f"{path} is not a certificate, or was changed: {reason}; get it again from its sealer"
        ) from None


def parse_certificate(content: bytes) -> Certificate:
    """Return the certificate in the content of a file. Raises ValueError with the reason."""
    document = parse_canonical(content)
    if not isinstance(document, dict) or document.keys() != _KEYS:
        raise ValueError("it is not an object with certificate, signature and statement")
    version = document["certificate"]
    if type(version) is not int or version != FORMAT:
        raise ValueError(
            f"its format is {plain(str(version), 40)}, and this osbench reads {FORMAT}"
        )
    statement = document["statement"]
    key = PublicKey(raw=_hexadecimal(_public_key(statement), PUBLIC_BYTES, "public_key"))
    signature = _hexadecimal(document["signature"], SIGNATURE_BYTES, "signature")
    if not key.is_signed(_PURPOSE + canonical(statement), signature):
        raise ValueError("the signature does not fit the statement")
    found = SealedStatement.from_json(statement)
    if found.format != FORMAT:
        raise ValueError(f"its statement has format {found.format}, expected {FORMAT}")
    if not RUN_ID.fullmatch(found.evidence.run_id):
        raise ValueError(f"{plain(found.evidence.run_id, 60)} is not the id of a run")
    return Certificate(statement=found, key=key)


def _public_key(statement: Any) -> Any:
    try:
        return statement["seal"]["public_key"]
    except (KeyError, TypeError, IndexError):
        raise ValueError("it names no public_key") from None


def _hexadecimal(text: Any, size: int, name: str) -> bytes:
    # letters of one case only: another case would be another file with the same meaning
    if not isinstance(text, str) or not re.fullmatch(rf"[0-9a-f]{{{2 * size}}}", text):
        raise ValueError(f"{name} is not {2 * size} hexadecimal digits in lower case")
    return bytes.fromhex(text)
