"""The command `trace`: analyses the traces of a run or of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import UsageError
from osbench.common.text.escaping import escaped
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    console,
    echo,
    echo_json,
    with_settings,
    write_file,
)
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    file_option,
    flag,
    option,
    option_set,
    options,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import (
    damaged_flag,
    json_flag,
    workload_name,
)
from osbench.coordinator.front.cli.run_views.damaged_runs import found_run
from osbench.edges.traces.analysis.comparison import compare_runs
from osbench.edges.traces.analysis.explanation import explain, members
from osbench.edges.traces.analysis.ranking import mistral_table
from osbench.edges.traces.analysis.span_changes import read_change
from osbench.edges.traces.analysis.what_if import Prediction, best_places, predict
from osbench.edges.traces.collection.lookup import find_trace, id_beginning
from osbench.edges.traces.collection.trace_set import (
    TraceSet,
    has_traces,
    of_file,
    of_iterations,
    of_run,
)
from osbench.edges.traces.model.critical_path import paused_on
from osbench.edges.traces.model.spans import Trace, uuid_form
from osbench.edges.traces.output import trace_formats, trace_text
from osbench.edges.traces.output.span_rows import duration_s, left_out, rows_of
from osbench.edges.traces.output.trace_view import print_trace
from osbench.edges.traces.output.what_if_text import show_predictions
from osbench.edges.traces.sources.otlp import to_otlp

_RANKED = 40

_ORDERS = ("total", "self", "critical", "mean", "p50", "p95", "p99", "max", "count")


@click.group(cls=Group)
def trace() -> None:
    """Show where iterations spent their time.

    \b
    A run whose deployment has an HMAC key collects its traces at its end. Start with
      osbench-coord trace explain last
    and then look at a trace that it names:
      osbench-coord trace show TRACE-ID
    """


@dataclass(frozen=True, kw_only=True)
class ShowOptions(OptionSet):
    """Options for `trace show`: run, workload or file of the trace, and the form of the output."""

    run: str | None = option(
        "--run", help="Run of the trace, if it is not a part of it; else the last one."
    )
    workload: str | None = workload_name()
    file: Path | None = option(
        "--from",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File to look in: a log of trace points, OSProfiler's JSON, or OTLP's.",
    )
    perfetto: Path | None = file_option(
        "--perfetto",
        help="Write the trace to FILE as trace events, which https://ui.perfetto.dev opens.",
    )
    as_json: bool = json_flag()
    damaged: bool = damaged_flag()


@trace.command(
    cls=RuledCommand,
    rules=(
        Rule(
            option="--perfetto",
            why="writes a file instead of showing the trace",
            excludes=("--json",),
        ),
    ),
)
@click.argument("which", metavar="[RUN:]ITERATION|[RUN:]TRACE-ID")
@option_set(ShowOptions, "wanted")
@with_settings
def show(settings: CommandSettings, which: str, wanted: ShowOptions) -> None:
    """Print one trace as a tree with its critical path marked.

    \b
    start    after the trace's start
    time     from start to stop
    own      time, less that of the spans within
    on path  part of the own time on the critical path; these sum to the duration of the trace

    \b
    Examples:
      osbench-coord trace show 17
      osbench-coord trace show 20260401-101500:17 --workload 1
      osbench-coord trace show last:f12e75d5
      osbench-coord trace show f12e75d5-5d59-4cbc-b74d-357f19290dd7 --json
      osbench-coord trace show f12e75d5 --from mistral_osprofile.log
      osbench-coord trace show --perfetto trace.json f12e75d5
    """
    found, trace_set, iteration = find_trace(
        settings, which, wanted.run, wanted.workload, wanted.file, damaged=wanted.damaged
    )
    if wanted.perfetto is not None:
        document = trace_formats.chrome(trace_set, [found])
        write_file(wanted.perfetto, json.dumps(document) + "\n")
        return
    if wanted.as_json:
        tree, paths = trace_set.tree_and_paths(found)
        rows = list(rows_of(tree, paths))
        attributes = {span.span_id: dict(span.attributes) for span in found.spans}
        _print_json(
            {
                "trace_id": uuid_form(found.trace_id),
                "iteration": iteration,
                "duration_s": duration_s(tree),
                "paused_s": sum(paused_on(tree, path) for path in paths) / 1e9,
                "spans": [{**asdict(row), "attributes": attributes[row.span_id]} for row in rows],
                "left_out": left_out(tree),
            }
        )
        return
    print_trace(found, trace_set, iteration, console())


@dataclass(frozen=True, kw_only=True)
class RankOptions(OptionSet):
    """Options for the rows of a ranking: their order and number, and the output."""

    by: str = option(
        "--by",
        type=click.Choice(_ORDERS),
        default="total",
        show_default=True,
        help="Order of rows.",
    )
    rows: int = option(
        "--rows",
        type=click.IntRange(min=0),
        default=_RANKED,
        metavar="N",
        show_default=True,
        help="Number of rows; 0 for all.",
    )
    #: Name of `--rows` in version 0.1.0.
    limit: int | None = option("--limit", type=click.IntRange(min=0), hidden=True)
    mistral: bool = flag("--mistral", help="Print the table of Mistral's guide instead.")
    as_json: bool = json_flag()
    damaged: bool = damaged_flag()


@trace.command(
    cls=RuledCommand,
    rules=(
        Rule(
            option="--mistral",
            why="prints a separate table",
            excludes=("--json", "--by", "--rows", "--limit"),
        ),
        Alternatives(of=("--rows", "--limit"), single="both are the number of rows"),
    ),
)
@click.argument("source", metavar="RUN|FILE")
@click.argument("out", required=False, type=click.Path(dir_okay=False, path_type=Path))
@option_set(RankOptions, "wanted")
@with_settings
def rank(settings: CommandSettings, source: str, out: Path | None, wanted: RankOptions) -> None:
    """Rank trace points by the time they took.

    With OUT, write a report in the format of Mistral's guide to profiling to that file: total,
    greatest and mean time in seconds, occurrences, name. Its times are from start to stop, so
    callers rank above their callees; `own` and `critical` show where time is spent.

    \b
    Examples:
      osbench-coord trace rank /tmp/mistral_osprofile.log report.txt
      osbench-coord trace rank last --by critical
      osbench-coord trace rank last --json | jq '.ranking[0]'
    """
    trace_set = _trace_set(settings, source, damaged=wanted.damaged)
    rows = list(trace_set.ranking)
    if out is not None:
        write_file(out, mistral_table(rows))
    if wanted.mistral:
        echo(escaped(mistral_table(rows), breaks=True), nl=False)
        return
    name = "count" if wanted.by == "count" else f"{wanted.by}_s"
    rows.sort(key=lambda row: -getattr(row, name))
    if wanted.as_json:
        _print_json(
            {
                "source": trace_set.name,
                "pauses": trace_set.pauses,
                "paused_s": trace_set.paused_s,
                "ranking": [asdict(row) for row in rows],
            }
        )
        return
    terminal = console()
    shown = wanted.rows if wanted.limit is None else wanted.limit
    trace_text.show_ranking(
        terminal, rows[: shown or None], len(rows), trace_set.pauses, trace_set.paused_s
    )
    trace_text.show_notes(
        terminal,
        trace_set.coverage,
        trace_set.clocks,
        trace_set.skipped,
        by_otlp=trace_set.by_otlp,
        queried=trace_set.queried,
    )


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(OptionSet):
    """Options for `trace explain`: changes whose effect is predicted instead, and the output."""

    changes: tuple[str, ...] = repeated_option(
        "--what-if",
        metavar="'SPAN: -N%'",
        help="Predict durations with this span faster: by N %, or with 0, in no time. `*` in SPAN"
        " is any text. Repeated changes apply together.",
    )
    as_json: bool = json_flag()
    damaged: bool = damaged_flag()


@trace.command("explain")
@click.argument("source", metavar="RUN|FILE", default="last")
@option_set(ExplainOptions, "wanted")
@with_settings
def explain_command(settings: CommandSettings, source: str, wanted: ExplainOptions) -> None:
    """Explain why the slow iterations of RUN were slow.

    The slowest iterations (p99 and above, and p95 to p99) are compared with iterations in the
    middle (p40 to p60). The differences of their spans sum to the difference in time. A star marks
    clear causes; other spans are not named as a cause. An explanation needs 30 slow traces. A run
    without traces is explained by measurements of each iteration: the phases of its HTTP requests,
    its actions, and its late start.

    The best place to work is the span that, if twice as fast, would shorten the slowest 5 % most.

    \b
    Examples:
      osbench-coord trace explain last
      osbench-coord trace explain 20260401 --json | jq -r .sentence
      osbench-coord trace explain spans.json
      osbench-coord trace explain last --what-if 'shop/web db SELECT*: -50%'
      osbench-coord trace explain last --what-if 'shop/web recompute: 0'
    """
    changes = [read_change(text) for text in wanted.changes]
    trace_set = _trace_set(settings, source, damaged=wanted.damaged, or_iterations=True)
    if changes:
        views = trace_set.predicted_loads()
        _show_predictions(trace_set, predict(trace_set.features, changes, views), wanted)
        return
    found = explain(trace_set.features, trace_set.clocks, counters=trace_set.counters())
    best = {one.name: best_places(trace_set.features, one.name) for one in found.answers}
    if wanted.as_json:
        _print_json(
            {
                "source": trace_set.name,
                **asdict(found),
                "best": {name: [asdict(one) for one in places] for name, places in best.items()},
                "census": trace_set.coverage.to_dict(),
                "clocks": [asdict(offset) for offset in trace_set.clocks.skews],
                "skipped": trace_set.skipped,
                "queried": list(trace_set.queried),
            }
        )
        return
    terminal = console()
    trace_text.show_explanation(terminal, found, best)
    trace_text.show_notes(
        terminal,
        trace_set.coverage,
        trace_set.clocks,
        trace_set.skipped,
        by_otlp=trace_set.by_otlp,
        queried=trace_set.queried,
    )


def _show_predictions(
    trace_set: TraceSet, found: Sequence[Prediction], wanted: ExplainOptions
) -> None:
    if wanted.as_json:
        _print_json(
            {
                "source": trace_set.name,
                "changes": list(wanted.changes),
                "predictions": [asdict(one) for one in found],
            }
        )
        return
    terminal = console()
    show_predictions(terminal, found)
    trace_text.show_notes(
        terminal,
        trace_set.coverage,
        trace_set.clocks,
        trace_set.skipped,
        by_otlp=trace_set.by_otlp,
        queried=trace_set.queried,
    )


@trace.command()
@click.argument("before", metavar="RUN|FILE")
@click.argument("after", metavar="RUN|FILE")
@options(as_json=json_flag(), damaged=damaged_flag())
@with_settings
def compare(
    settings: CommandSettings, before: str, after: str, as_json: bool, damaged: bool
) -> None:
    """Compare the traces of two runs.

    Workloads are matched by name. A star marks statistically significant differences.

    \b
    Examples:
      osbench-coord trace compare 20260401-101500 last
      osbench-coord trace compare before.json after.json --json
    """
    first, second = (_trace_set(settings, source, damaged=damaged) for source in (before, after))
    found = compare_runs(first.features, second.features)
    if not found:
        raise UsageError(
            f"{first.name} and {second.name} have no workload in common: "
            f"{', '.join(first.features.groups)}; {', '.join(second.features.groups)}. Give two "
            "runs of one task"
        )
    if as_json:
        _print_json(
            {
                "before": first.name,
                "after": second.name,
                "comparisons": [asdict(one) for one in found],
            }
        )
        return
    terminal = console()
    for one in found:
        trace_text.show_comparison(terminal, one)


@dataclass(frozen=True, kw_only=True)
class TraceExportOptions(OptionSet):
    """Options for an export of traces: which traces, in which format, to which file."""

    form: str = option(
        "--format",
        type=click.Choice(("chrome", "folded", "otlp")),
        default="chrome",
        show_default=True,
        help="Trace events for Perfetto and chrome://tracing; stacks for flame graphs; OTLP in"
        " JSON.",
    )
    to: Path | None = option(
        "--to", type=click.Path(dir_okay=False, path_type=Path), help="File to write; else stdout."
    )
    ids: tuple[str, ...] = repeated_option(
        "--trace", metavar="ID", help="Only this trace; may be repeated."
    )
    band: str | None = option(
        "--band", metavar="BAND", help="Only traces of this band: p99+, p95-p99, middle or failed."
    )
    damaged: bool = damaged_flag()


@trace.command()
@click.argument("source", metavar="RUN|FILE", default="last")
@option_set(TraceExportOptions, "wanted")
@with_settings
def export(settings: CommandSettings, source: str, wanted: TraceExportOptions) -> None:
    """Write traces in the formats of other tools.

    \b
    Examples:
      osbench-coord trace export last --to traces.json     (open it on ui.perfetto.dev)
      osbench-coord trace export last --format folded --band p99+ | flamegraph.pl > slow.svg
      osbench-coord trace export last --format otlp --trace f12e75d5 --to span.json
    """
    trace_set = _trace_set(settings, source, damaged=wanted.damaged)
    chosen = _chosen_traces(trace_set, wanted.ids, wanted.band)
    if wanted.form == "folded":
        written = "".join(f"{line}\n" for line in trace_formats.folded_stacks(trace_set, chosen))
    elif wanted.form == "otlp":
        written = json.dumps(to_otlp(chosen)) + "\n"
    else:
        written = json.dumps(trace_formats.chrome(trace_set, chosen)) + "\n"
    if wanted.to is None:
        echo(escaped(written, breaks=True), nl=False)
    else:
        write_file(wanted.to, written)


def _trace_set(
    settings: CommandSettings, source: str, *, damaged: bool, or_iterations: bool = False
) -> TraceSet:
    if Path(source).is_file():
        return of_file(Path(source), everything=settings.conf.traces.keep_arguments)
    try:
        directory = found_run(settings, source, damaged=damaged)
    except UsageError as error:
        raise UsageError(
            f"{error}; there is no file of that name either: give a run or a file of traces"
        ) from None
    if or_iterations and not has_traces(directory):
        return of_iterations(directory)
    found = of_run(directory)
    if or_iterations and found.queried and not (found.features.group >= 0).any():
        # the backend had none of them
        return replace(of_iterations(directory), queried=found.queried)
    return found


def _chosen_traces(trace_set: TraceSet, ids: Sequence[str], band: str | None) -> Iterable[Trace]:
    tests: list[Callable[[Trace], bool]] = []
    if ids:
        begins = tuple(map(id_beginning, ids))
        tests.append(lambda trace: trace.trace_id.startswith(begins))
    if band:
        try:
            wanted = members(trace_set.features, band)
        except ValueError as error:
            raise UsageError(f"--band: {error}") from None
        tests.append(lambda trace: trace.trace_id in wanted)
    traces = [trace for trace in trace_set.traces() if all(test(trace) for test in tests)]
    if not traces:
        raise UsageError(
            f"{trace_set.name} has no matching trace whose spans were kept; change --trace or "
            "--band"
        )
    return traces


def _print_json(document: dict[str, Any]) -> None:
    echo_json(document, indent=1)
