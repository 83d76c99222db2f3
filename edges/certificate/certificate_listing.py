"""The commands of this edge as `--help` lists them: their section and first lines."""

from __future__ import annotations

from osbench.coordinator.front.cli.listed_command import SHARE, ListedCommand

CERTIFY = ListedCommand(
    "certify",
    "Seal the result of a run with a key.",
    place="osbench.edges.certificate.certify_command:certify",
    section=SHARE,
)
VERIFY = ListedCommand(
    "verify",
    "Check a certificate, also against the files of its run.",
    place="osbench.edges.certificate.verify_command:verify_certificate",
    section=SHARE,
)
