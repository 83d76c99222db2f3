"""Pages, terminal and guides use the words of the field and none that the project has made up."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from helpers.report_facts import facts_of
from helpers.sample_loads import all_kinds, search_workload
from helpers.sample_reports import constant_workload, full_report, run_report
from helpers.shown_page import page_of
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.text import render

REPOSITORY = Path(__file__).parents[3]
#: Instead: requested or target; in use or active; sustained or met; affected; scheduled; outlier.
WORDS = re.compile(r"\b(asked|busy|held|spoil\w*|due|odd)\b", re.IGNORECASE)
#: In guides, hosts and servers are busy, and locks are held.
GUIDE_WORDS = re.compile(r"\b(asked for|spoil\w*|due|odd)\b|\busers (?:are |were )?busy\b")
RUNS = {
    "full": full_report(),
    "all kinds": all_kinds(),
    "search": run_report(search_workload()),
    "fine": run_report(constant_workload()),
    "empty": run_report(),
}


class Shown(HTMLParser):
    """What readers of a page see or hear of it, without what a task or a scenario wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style", "pre", "code")
        told = ("aria-label", "title", "placeholder", "data-h")
        self.texts += [value for name, value in attrs if name in told and value]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "pre", "code")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def found_in(texts: list[str], words: re.Pattern[str]) -> list[str]:
    return [" ".join(text.split()) for text in texts if words.search(text)]


@pytest.mark.parametrize("report", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("state", [FINISHED, RUNNING, CRASHED])
def test_no_page_has_a_word_of_our_own(tmp_path: Path, report: RunOutcome, state: str) -> None:
    shown = Shown()

    shown.feed(page_of(facts_of(tmp_path, report, state=state), live=state == RUNNING))

    assert len(shown.texts) > 20
    assert found_in(shown.texts, WORDS) == []


@pytest.mark.parametrize("report", RUNS.values(), ids=RUNS)
def test_no_summary_of_the_terminal_has_one(tmp_path: Path, report: RunOutcome) -> None:
    console = Console(width=200, record=True, file=io.StringIO())

    render(facts_of(tmp_path, report).report, console)

    assert found_in(console.export_text().splitlines(), WORDS) == []


def test_no_script_of_the_page_has_one() -> None:
    scripts = [
        *(REPOSITORY / "coordinator" / "report" / "html" / "assets" / "scripts").glob("*.js"),
        *(REPOSITORY / "edges").rglob("*.js"),
    ]
    texts = [
        text
        for path in sorted(scripts)
        for text in re.findall(r'"([^"\n]*)"|`([^`\n]*)`', path.read_text("utf-8"))
    ]
    # of a template, what stands between its values
    shown = [re.sub(r"\$\{[^}]*\}", "", one or other) for one, other in texts]

    assert len(shown) > 100
    # names of columns and of kinds of marks
    assert set(found_in(shown, WORDS)) <= {"due", "spoilt"}


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/reading-a-report.md",
        "docs/comparing.md",
        "docs/tasks.md",
        "docs/contexts.md",
        "docs/hooks.md",
        "docs/flows.md",
        "docs/load.md",
        "docs/capacity.md",
        "docs/control.md",
        "docs/limits.md",
        "docs/results.md",
    ],
)
def test_no_guide_has_one(name: str) -> None:
    text = (REPOSITORY / name).read_text("utf-8")
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)

    assert found_in(prose.splitlines(), GUIDE_WORDS) == []
