"""The command `certify`: seals the result of a run, and makes the keys for that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import OptionSet, file_option, option_set
from osbench.coordinator.front.cli.options.shared_options import archive_url, page_file, quiet_flag
from osbench.coordinator.front.cli.options.task_options import (
    TaskOptions,
    read_plugins,
    read_task,
)
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.edges.certificate.certificate_file import (
    SUFFIX,
    Certificate,
    parse_certificate,
    sealed_content,
)
from osbench.edges.certificate.certificate_page import certificate_markdown, certificate_page
from osbench.edges.certificate.certificate_sentences import headline
from osbench.edges.certificate.certified_files import named_run, require_separate
from osbench.edges.certificate.output_files import replace_file
from osbench.edges.certificate.passphrase import new_passphrase, passphrase_of
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.run_evidence import evidence_of
from osbench.edges.certificate.sealed_statement import SealedStatement
from osbench.edges.certificate.sealing import require_same_task, seal_of
from osbench.edges.certificate.signing_key import SealingKey, new_key, public_path
from osbench.edges.certificate.verification import Verified

#: File of the data directory with the key that is used without `--key`.
DEFAULT_KEY = "certificate.key"


@dataclass(frozen=True, kw_only=True)
class SealingOptions(OptionSet):
    """Options for the key, and for the run that is sealed."""

    SECTION = "Key and run"

    key: Path | None = file_option(
        "--key", help=f"Secret key that seals. Default: {DEFAULT_KEY} in the data directory."
    )
    new_key: Path | None = file_option(
        "--new-key", help="Write a new secret key and its public key, FILE.pub, and end."
    )
    archive: str | None = archive_url("Take the run from an archive")
    task: Path | None = file_option(
        "--task", help="Also seal the SHA-256 of the task file, if the run is of this task."
    )


@dataclass(frozen=True, kw_only=True)
class SealedOutputOptions(OptionSet):
    """Options for the files that a sealing writes."""

    SECTION = "Output"

    output: Path | None = file_option(
        "--output", help=f"The certificate. Default: RUN{SUFFIX} in this directory."
    )
    page: Path | None = page_file()
    markdown: Path | None = file_option(
        "--markdown", help="Also write headline and main tables as Markdown."
    )
    quiet: bool = quiet_flag("the headline")


@click.command(
    cls=RuledCommand,
    rules=(
        Alternatives(
            of=("RUN", "--new-key"),
            missing="a run to seal is missing",
            single="--new-key makes a key, and seals no run",
        ),
        Rule(
            option="--new-key",
            why="only makes a key",
            excludes=("--key", "--archive", "--task", "--output", "--html", "--markdown"),
        ),
    ),
)
@click.argument("run", required=False)
@option_set(SealingOptions, "sealing")
@option_set(SealedOutputOptions, "output")
@option_set(TaskOptions, "options")
@with_settings
def certify(
    settings: CommandSettings,
    run: str | None,
    sealing: SealingOptions,
    output: SealedOutputOptions,
    options: TaskOptions,
) -> None:
    """Seal the result of a run with a key.

    RUN is an id, the beginning of one, `last`, or the folder of a run. Its iterations are counted
    again from journal and blocks, and its criteria and load generator are judged again. A run whose
    report differs from that is refused. So is a run that was limited by its load generator, lost
    iterations, was disturbed, or did not end.

    Others can verify the certificate. It has ledger, load, verdicts, capacity, percentiles with
    intervals, versions, and SHA-256 of each file of the run. It has no secrets. The key may have a
    passphrase: the variable OSBENCH_CERTIFICATE_PASSPHRASE, or a prompt, asks for it.

    \b
    Examples:
      osbench-coord certify --new-key team.key
      osbench-coord certify last --key team.key --html capacity.html
      osbench-coord certify 20260401 --archive s3://team-runs/shop --output shop.certificate.json
      osbench-coord certify last --task task.yaml --task-args rate=100

    \b
    Exit codes:
      0 the certificate, or the new key, is written
      1 the run cannot be certified, as it is damaged or was limited: each reason is named
      2 bad usage, or key or run cannot be read
      130 interrupted; no certificate is written
    """
    if sealing.new_key is not None:
        _make_key(sealing.new_key)
        return
    assert run is not None, "a rule requires it"
    key_file = sealing.key or settings.data_dir / DEFAULT_KEY
    outputs = (output.output, output.page, output.markdown)
    require_separate(outputs, (key_file, public_path(key_file), sealing.task))
    # before minutes of counting
    key = SealingKey.load(key_file, lambda: passphrase_of(str(key_file)))
    directory = named_run(settings, run, sealing.archive, settings.data_dir)
    size = _size_of(directory.path / "blocks")
    progress = Progress(quiet=output.quiet)
    progress.say(f"counting run {directory.path.name} again: {size / 1e6:,.1f} MB of blocks")
    plugins = read_plugins(settings.conf, options)
    evidence = evidence_of(directory, plugins)
    if sealing.task is not None:
        task, task_plugins = read_task(str(sealing.task), settings.conf, options)
        require_same_task(evidence, task, task_plugins)
    seal = seal_of(evidence, key.public, plugins, sealing.task)
    try:
        content = sealed_content(SealedStatement(evidence=evidence, seal=seal), key)
        certificate = parse_certificate(content)
    except ValueError as error:
        raise CertificateRefused(f"run {evidence.run_id} cannot be sealed: {error}") from None
    _write(certificate, content, output)
    echo(headline(evidence))
    echo(f"Sealed with the key {key.public.fingerprint}")


def _write(certificate: Certificate, content: bytes, output: SealedOutputOptions) -> None:
    """Write a certificate, and its page and Markdown if they are wanted."""
    # a reader of the page does not know the key
    verified = Verified(certificate=certificate, is_known_key=False, has_files=True, has_task=False)
    path = output.output or Path(f"{certificate.evidence.run_id}{SUFFIX}")
    replace_file(path, content.decode("ascii"))
    if output.page is not None:
        replace_file(output.page, certificate_page(verified, path.name))
    if output.markdown is not None:
        replace_file(output.markdown, certificate_markdown(verified))


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _make_key(path: Path) -> None:
    if path.name.endswith(".pub"):
        raise UsageError(f"{path} ends as public keys do; name the secret key, such as team.key")
    passphrase = new_passphrase(str(path))
    public = new_key(path, passphrase)
    state = "encrypted by the passphrase" if passphrase else "without a passphrase, mode 0600"
    echo(f"Wrote the secret key {path}, {state}. Keep it secret.")
    echo(f"Wrote the public key {public_path(path)}. Give it to your verifiers:")
    echo(public.pem.decode("ascii").strip())
    echo(f"Its fingerprint: {public.fingerprint}")
