"""Renders a certificate as an HTML page in one file, without scripts, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import plain
from osbench.coordinator.report.html.single_page import page_environment
from osbench.coordinator.report.markdown_text import markdown_text
from osbench.edges.certificate.certificate_sentences import headline, proved_facts, unproved_facts
from osbench.edges.certificate.certificate_tables import CertificateTable, certificate_tables
from osbench.edges.certificate.verification import Verified

#: Package of the template and the style.
_PACKAGE = "osbench.edges.certificate"
#: Notes of the run that are shown, and characters of each.
_NOTES, _NOTE = 20, 1000
#: Tables of the Markdown: ledger, load and criteria.
_SHORT = 3
#: Sentence on the page itself.
ONLY_SHOWN = (
    "This is only a view of the certificate, and not a proof. `osbench-coord verify` checks"
    " the certificate's file."
)


def certificate_page(verified: Verified, name: str) -> str:
    """Return a certificate as an HTML page; `name`: of the certificate's file."""
    certificate, statement = verified.certificate, verified.certificate.statement
    evidence = certificate.evidence
    environment = page_environment(_PACKAGE, "certificate.css")
    return environment.get_template("certificate.html.j2").render(
        task=evidence.task,
        name=name,
        key=certificate.key.fingerprint,
        sealed_at=certificate.seal.sealed_at,
        answer=headline(evidence),
        missed=not all(one.is_met for one in evidence.workloads),
        proved=list(proved_facts(verified)),
        not_proved=list(unproved_facts(verified)),
        tables=list(certificate_tables(statement)),
        notes=[plain(note, _NOTE) for note in evidence.notes[:_NOTES]],
        only_shown=ONLY_SHOWN.replace("`", ""),
    )


def certificate_markdown(verified: Verified) -> str:
    """Return a certificate as Markdown: headline, facts that are proved, and the main tables."""
    return "\n".join(_lines(verified)) + "\n"


def _lines(verified: Verified) -> Iterator[str]:
    statement = verified.certificate.statement
    yield f"**{markdown_text(headline(statement.evidence))}**"
    for title, sentences in (
        ("Proved", proved_facts(verified)),
        ("Not proved", unproved_facts(verified)),
    ):
        yield ""
        yield f"{title}:"
        yield ""
        yield from (f"- {markdown_text(sentence)}" for sentence in sentences)
    for table in list(certificate_tables(statement))[:_SHORT]:
        yield from _table(table)
    yield ""
    yield ONLY_SHOWN


def _table(table: CertificateTable) -> Iterator[str]:
    yield ""
    yield f"{markdown_text(table.title)}:"
    yield ""
    yield f"| {' | '.join(map(markdown_text, table.headings))} |"
    yield "|---" * len(table.headings) + "|"
    for row in table.rows:
        yield f"| {' | '.join(map(markdown_text, row))} |"
