"""Reasons for which a run is not certified, or a certificate is not believed."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.errors import OsbenchError


class CertificateRefused(OsbenchError):
    """A run cannot be certified, or a certificate does not hold; the message names each reason."""

    exit_code = 1

    @classmethod
    def of(cls, begin: str, reasons: Sequence[str], advice: str = "") -> CertificateRefused:
        """Return an error: `begin`, a line for each of `reasons`, and `advice`, if any."""
        lines = [f"{begin}:", *(f"  - {reason}" for reason in reasons), *([advice] * bool(advice))]
        return cls("\n".join(lines))
