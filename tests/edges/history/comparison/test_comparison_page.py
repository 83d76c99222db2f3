import base64
import dataclasses
import hashlib
import re
import shlex

import numpy as np
from click.testing import CliRunner
from markupsafe import Markup

from bench.evidence import trend_runs
from helpers.queue_runs import Queue, compared_run, side
from osbench.coordinator.formatting import spaced
from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.edges.history.commands.compare import compare
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import (
    compare_command,
    compare_page,
    trends_page,
)
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.findable_changes import signed_percent
from osbench.edges.history.comparison.trends import trend_of

QUEUE = Queue(duration_s=60)
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m"


def chance():
    return np.random.default_rng(1)


def result(**options):
    random = chance()
    before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3, slower=1.3)
    return compare_sides(Evidence(before=before, after=after), **options)


def words(page):
    """What is read of a page without styles."""
    body = page[page.index("<body>") :]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_the_verdict_comes_first_and_every_row_is_there():
    page = compare_page(result())

    assert "✕ Worse: p" in words(page)[:120]
    assert page.count('<svg class="forest"') == 3
    for name in ("A0", "A2", "B0", "B2"):
        assert f"<code>{name}</code>" in page


def test_the_policy_allows_the_style_sheet_and_nothing_else():
    for page in (compare_page(result()), trends_page([trend_of(trend_runs(QUEUE, chance()))])):
        (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)

        assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
        assert "<script" not in page
        assert not re.search(r"\sstyle=|\son\w+=|https?://", page)


def test_foreign_text_stays_text():
    random = chance()
    at, values = QUEUE.run(random)
    runs = [
        compared_run(name, (at, values), actions={HOSTILE: values // 2}, name=HOSTILE)
        for name in "AB"
    ]
    found = compare_sides(
        Evidence(before=runs[:1], after=runs[1:]), names=(HOSTILE, HOSTILE), anyway=True
    )
    trend = trend_of([dataclasses.replace(runs[0], manifest={**runs[0].manifest, "task": HOSTILE})])

    for page in (compare_page(found), trends_page([trend])):
        assert "<img" not in page
        assert "&lt;img src=x" in page
        assert "<script" not in page


def test_two_calls_give_the_same_page():
    assert compare_page(result()) == compare_page(result())


def test_the_command_of_a_page_is_one_that_is_understood():
    program, name, *args = shlex.split(compare_command(result(margin=0.03)))

    context = compare.make_context("compare", args)

    assert (program, name) == ("osbench-coord", "compare")
    assert context.params["runs"] == ("A0", "A1", "A2")
    assert context.params["against"] == ("B0", "B1", "B2")
    assert context.params["chosen_margin"] == 0.03


def test_a_bad_margin_is_refused():
    for text in ("3", "0%", "many", "-1%"):
        found = CliRunner().invoke(compare, ["A", "B", f"--margin={text}"])

        assert found.exit_code == 2
        assert "is not a share such as 3% or 0.03" in found.output


def test_changes_of_a_trend_stand_in_a_table_with_the_command_that_says_more():
    trend = trend_of(trend_runs(Queue(rate=500, duration_s=60), chance(), step=1.2))
    page = trends_page([trend])

    assert "<code>osbench-coord compare run14 run15</code>" in page
    assert page.count('<svg class="series"') == len(trend.series)
    # every number is in the table
    assert page.count('<tr><th scope="row"><code>run') == 30


def test_a_trend_of_one_run_has_a_page():
    page = trends_page([trend_of(side(QUEUE, chance(), "A", 1))])

    assert "too few to look for changes" in page


def dated(day, *, name="Queue.get"):
    return compared_run(f"2026040{day}-101500-abcd", QUEUE.run(chance()), name=name)


def test_a_comparison_is_headed_by_workloads_and_dates():
    page = compare_page(compare_sides(Evidence(before=[dated(1)], after=[dated(2)]), anyway=True))

    (heading,) = re.findall("<h1>(.*?)</h1>", page)
    assert heading == "Queue.get: 2026-04-02 10:15 UTC against 2026-04-01 10:15 UTC"
    # the change is seen on a narrow screen
    assert page.index('scope="col">change<') < page.index('scope="col">before<')


def test_commands_in_messages_are_code_and_ids_are_links_of_the_server():
    found = compare_sides(Evidence(before=[dated(1)], after=[dated(2)]), anyway=True)
    frame = PageFrame(style="/s.css", script="", bar=Markup(""))

    page, served = compare_page(found), compare_page(found, frame)

    assert "<code>run --repeat 5</code>" in page
    assert "`" not in words(page)
    assert '<a href="/runs/20260401-101500-abcd">20260401-101500-abcd</a>' in served
    assert "/runs/" not in page


def test_a_change_of_a_trend_is_marked_with_its_size():
    trend = trend_of(trend_runs(QUEUE, chance(), step=1.3))

    page = trends_page([trend])

    change = next(change for one in trend.series for change in one.changes)
    sizes = re.findall(r'<path class="step" d="[^"]*"><title>([^<]*)</title>', page)
    assert signed_percent(change.ratio) in sizes
    assert f"; {signed_percent(change.ratio)} since {change.after_run}" in page


def test_a_trend_has_an_axis_from_0_and_points_with_values():
    trend = trend_of([dated(day) for day in range(1, 4)])
    frame = PageFrame(style="/s.css", script="", bar=Markup(""))
    (one, *_) = trend.series

    page, served = trends_page([trend]), trends_page([trend], frame)

    text = f"20260401-101500-abcd: {spaced(one.values_s[0])}"
    assert f"<title>{text}</title>" in page
    assert f'<a href="/runs/20260401-101500-abcd" aria-label="{text}">' in served
    assert "<a " not in page
    # percentiles of one time have one axis, from 0 to the greatest of them
    alike = [each for each in trend.series if each.workload == one.workload]
    top_s = max(value for each in alike for value in each.values_s if value is not None)
    assert f'<div class="axis"><span>{spaced(top_s)}</span><span>0</span></div>' in page
    lines = re.findall(r'<polyline class="line" points="([^"]*)"', page)
    for each, line in zip(trend.series, lines, strict=True):
        height = 100 - 92 * (each.values_s[0] or 0.0) / top_s
        assert {float(place) for place in line.split()[1::2]} == {round(height, 1)}
    assert "<span>2026-04-01 10:15 UTC</span><span>2026-04-03 10:15 UTC</span>" in page
