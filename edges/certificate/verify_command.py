"""The command `verify`: checks a certificate, by a third party without access to the load."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import DamagedArchive
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    echo,
    echo_json,
    warn_of_plugins,
    with_settings,
)
from osbench.coordinator.front.cli.options.option_rules import Alternatives, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    file_option,
    option,
    option_set,
)
from osbench.coordinator.front.cli.options.shared_options import (
    archive_url,
    json_flag,
    page_file,
    plugin_paths,
    preferred_plugins,
    quiet_flag,
)
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.certificate.certificate_file import Certificate, read_certificate
from osbench.edges.certificate.certificate_page import certificate_markdown, certificate_page
from osbench.edges.certificate.certificate_sentences import headline, proved_facts, unproved_facts
from osbench.edges.certificate.certified_files import (
    PACKED,
    named_run,
    require_separate,
    unpacked_run,
)
from osbench.edges.certificate.output_files import replace_file
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.sealing import file_sha256
from osbench.edges.certificate.signing_key import PublicKey
from osbench.edges.certificate.verification import Verified, verify


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions(OptionSet):
    """Options for the key and the files that a certificate is compared with."""

    SECTION = "Compare with"

    public_key: Path | None = file_option(
        "--public-key", help="Public key of the sealer; another key is refused."
    )
    run: str | None = option(
        "--run",
        metavar="RUN|FOLDER|FILE",
        help=f"Files of the run: an id, the folder of a run, or a packed run ({PACKED}).",
    )
    archive: str | None = archive_url("Take the run from an archive")
    task: Path | None = file_option("--task", help="The task file, whose SHA-256 is compared.")
    #: Code of the files is executed.
    plugin_path: tuple[str, ...] = plugin_paths("runners and criteria of the run")
    prefer: str = preferred_plugins()


@dataclass(frozen=True, kw_only=True)
class VerifiedOutputOptions(OptionSet):
    """Options for the output of a verification."""

    SECTION = "Output"

    as_json: bool = json_flag()
    page: Path | None = page_file()
    markdown: Path | None = file_option(
        "--markdown", help="Write headline, checks and main tables as Markdown."
    )
    quiet: bool = quiet_flag("the result")


@click.command(
    "verify",
    cls=RuledCommand,
    rules=(
        Alternatives(of=("--run", "--archive"), single="--archive finds the run of FILE itself"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@option_set(EvidenceOptions, "known")
@option_set(VerifiedOutputOptions, "output")
@with_settings
def verify_certificate(
    settings: CommandSettings, file: Path, known: EvidenceOptions, output: VerifiedOutputOptions
) -> None:
    """Check a certificate, also against the files of its run.

    The output lists the facts that are proved, and facts that are not. Without options, the
    signature is checked by the public key in FILE, which anybody may have made. --public-key names
    the key of the sealer. With the files of the run, each digest is compared, the iterations are
    counted again from journal and blocks, and each sealed figure is compared. Neither Redis nor the
    deployment is needed.

    \b
    Examples:
      osbench-coord verify shop.certificate.json --public-key team.key.pub
      osbench-coord verify shop.certificate.json --public-key team.key.pub --run ./20260401-120000
      osbench-coord verify shop.certificate.json --archive s3://team-runs/shop --html verified.html

    \b
    Exit codes:
      0 verified, as far as the output says
      1 refused: each fault is named
      2 bad usage, or a file cannot be read
      130 interrupted
    """
    require_separate((output.page, output.markdown), (file, known.public_key, known.task))
    certificate = read_certificate(file)
    key = None if known.public_key is None else PublicKey.load(known.public_key)
    with ExitStack() as stack:
        directory = None
        if known.run is not None or known.archive is not None:
            # nothing of the verifier's own data is touched
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            directory = _files(settings, known, certificate, folder)
            progress = Progress(quiet=output.quiet or output.as_json)
            progress.say(f"counting run {certificate.evidence.run_id} again")
        verified = verify(
            certificate,
            key=key,
            directory=directory,
            plugins=_plugins(known),
            task_sha256="" if known.task is None else file_sha256(known.task),
        )
    _show(verified, file, output)


def _plugins(known: EvidenceOptions) -> Plugins:
    # configured paths are not used: only the verifier's own words execute code
    return warn_of_plugins(Plugins(known.plugin_path, known.prefer), faults=False)


def _files(
    settings: CommandSettings, known: EvidenceOptions, certificate: Certificate, folder: Path
) -> RunDirectory:
    """Return the files of the run; files of an archive are fetched into `folder`."""
    evidence = certificate.evidence
    if known.run is not None and known.run.endswith(PACKED):
        return unpacked_run(Path(known.run), evidence, folder)
    try:
        return named_run(settings, known.run or evidence.run_id, known.archive, folder)
    except DamagedArchive as error:
        raise CertificateRefused(str(error)) from None


def _show(verified: Verified, file: Path, output: VerifiedOutputOptions) -> None:
    try:
        document = _document(verified)
        page = certificate_page(verified, file.name) if output.page is not None else ""
        markdown = certificate_markdown(verified) if output.markdown is not None else ""
    # a sealer may sign any numbers
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = plain(f"{type(error).__name__}: {error}")
        raise CertificateRefused(
            f"{file} has figures that no run has ({reason}), although its signature holds"
        ) from None
    if output.as_json:
        echo_json(document, indent=1)
    else:
        _print(document)
    if output.page is not None:
        replace_file(output.page, page)
    if output.markdown is not None:
        replace_file(output.markdown, markdown)


def _document(verified: Verified) -> dict[str, Any]:
    """Return the result of a verification as JSON values."""
    certificate = verified.certificate
    evidence = certificate.evidence
    return {
        "verified": True,
        "run_id": evidence.run_id,
        "task": evidence.task,
        "sentence": headline(evidence),
        "key": certificate.key.fingerprint,
        "sealed_at": certificate.seal.sealed_at,
        "is_known_key": verified.is_known_key,
        "has_files": verified.has_files,
        "has_task": verified.has_task,
        "proved": list(proved_facts(verified)),
        "not_proved": list(unproved_facts(verified)),
    }


def _print(document: dict[str, Any]) -> None:
    echo(f"Verified: run {plain(document['run_id'])}, {plain(document['task'])}")
    echo(f"  {document['sentence']}")
    for title, key in (("Proved", "proved"), ("Not proved", "not_proved")):
        echo(f"{title}:")
        for sentence in document[key]:
            echo(f"  - {sentence}")
