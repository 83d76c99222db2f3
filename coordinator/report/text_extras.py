"""Hooks, contexts and outputs as lines of the text report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain, size, three_digits
from osbench.coordinator.results.core_use import host_uses
from osbench.coordinator.results.search.capacity_sentence import bound
from osbench.coordinator.results.totals import is_open_load

#: Charts that are described; the JSON object has all.
CHARTS = 10
#: Soft checks that did not always hold which are listed.
CHECKS = 10
#: Hosts whose load is shown.
_HOSTS = 4
#: Stages that have a line each.
STAGES = 20
#: Actions that grew at the end of a search, as many are shown.
GROWN = 3
#: Of outputs that are in no chart: key, and what one of them is.
_CUT = (
    ("charts", "item of too many charts", "items of too many charts"),
    ("values", "value of too many names", "values of too many names"),
    ("malformed", "value that is no number", "values that are no number"),
    ("not_additive", "item that cannot be added up", "items that cannot be added up"),
    ("too_large", "output or error too large", "outputs or errors too large"),
)

Line = tuple[str, Text]


def hook_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a hook: how its firings ended, and why the first bad one did."""
    label = "hooks"
    for hook in workload["hooks"]:
        (name,), (trigger,) = hook["action"], hook["trigger"]
        counts = hook["summary"]
        ended = ", ".join(f"{count(n)} {status.replace('_', ' ')}" for status, n in counts.items())
        bad = [result for result in hook["results"] if "error" in result]
        text = Text(f"{plain(name)} by {plain(trigger)}: {ended or 'did not fire'}")
        if bad:
            text.append(f"; {plain(bad[0]['error']['msg'])}", style="bold red")
        yield label, text
        label = ""


def context_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a context: how long it was set up and undone, or why it was not."""
    label = "contexts"
    # runs of older releases have none
    for context in workload.get("contexts", ()):
        text = Text(plain(context["name"]))
        for step, done in (("setup", "set up"), ("cleanup", "undone")):
            found = context[step]
            if found is None:
                text.append(f", not {done}", style="bold red")
            elif found["error"] is None:
                text.append(f", {done} in {duration(_span_s(found))}")
            else:
                text.append(f", not {done}: {plain(found['error']['msg'])}", style="bold red")
        yield label, text
        label = ""


def _span_s(step: Mapping[str, Any]) -> float:
    begun, ended = (datetime.fromisoformat(step[key]) for key in ("started_at", "finished_at"))
    return (ended - begun).total_seconds()


def stage_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a stage of the load, where it has several."""
    # runs of older releases do not say
    stages = workload.get("stages") or []
    unit = "/s" if is_open_load(workload["offered"]) else " users"
    label = "stages"
    for stage in stages[:STAGES]:
        begin, end = stage["begin"], stage["end"]
        asked = f"{end:g}{unit}" if begin == end else f"{begin:g} to {end:g}{unit}"
        parts = [f"{three_digits(stage['ok_per_s'])} ok/s"]
        parts += [
            f"{count(stage[state])} {state.replace('_', ' ')}"
            for state in ("failed", "timed_out", "dropped")
            if stage[state]
        ]
        if stage["ok"]:
            parts += [f"{key} {duration(stage[f'{key}_s'])}" for key in ("p50", "p95", "p99")]
        span = f"{stage['from_s']:.4g} s to {stage['to_s']:.4g} s"
        yield label, Text(f"{span}, {asked}: {', '.join(parts)}")
        label = ""
    if len(stages) > STAGES:
        yield "", Text(f"and {count(len(stages) - STAGES, 'more stage')}")


def search_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """What a search for the capacity has found, and a line a trial."""
    # runs of older releases do not say
    search = workload.get("search")
    if not search:
        return
    yield "capacity", Text(_capacity(search), style="bold")
    for grown in search["grown"][:GROWN]:
        before, after = duration(grown["before_s"]), duration(grown["after_s"])
        yield "", Text(f"{plain(grown['action'])} grew from {before} to {after} on average")
    # runs of older releases do not say
    if search.get("traces"):
        rates = f"{three_digits(search['held'])} to {three_digits(search['broke'])}/s"
        yield "", Text(f"from {rates}: {plain(search['traces'], 500)}")
    for grown in search.get("grown_spans", ()):
        before, after = duration(grown["before_s"]), duration(grown["after_s"])
        yield "", Text(f"{plain(grown['span'])}: {before} of a trace, then {after}")
    label = "trials"
    for trial in search["trials"][:STAGES]:
        told = f"{trial['rate']:g}/s {'held' if trial['held'] else 'did not hold'}"
        if trial["cause"] == "disturbed":
            told = f"{trial['rate']:g}/s says nothing"
        parts = [f"{three_digits(trial['ok_per_s'])} ok/s"]
        if trial["ok"]:
            parts += [f"{key} {duration(trial[f'{key}_s'])}" for key in ("p50", "p95", "p99")]
        parts += [plain(trial["detail"], 200)] if trial["detail"] else []
        yield label, Text(f"{told}: {', '.join(parts)}")
        label = ""
    if len(search["trials"]) > STAGES:
        yield "", Text(f"and {count(len(search['trials']) - STAGES, 'more trial')}")


def _capacity(search: Mapping[str, Any]) -> str:
    found, held, broke = search["rate"], search["held"], search["broke"]
    if found is None:
        # runs of older releases have no advice
        known = bound(held, broke, search.get("advice", ""))
        if known and search["kind"] == "unfinished":
            known += "; the search was stopped before its end"
        return known or "the search ended before its first trial"
    low, high = three_digits(search["low"]), three_digits(search["high"])
    text = f"{three_digits(found)}/s, with 95 % between {low} and {high}/s"
    if search["kind"] == "unfinished":
        text += "; the search was stopped before its end"
    elif not search["precise"]:
        text += "; less precise than asked for: hold longer, or allow more trials"
    if held is not None:
        text += f"; the highest rate that held was {three_digits(held)}/s"
    return text


def plan_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """What `plan` said beside what happened, where it said something; what differs much."""
    # runs of older releases do not say
    plan = workload.get("plan")
    if not plan:
        return
    shown = (
        ("workers", plan["workers"], "{:g}".format),
        ("CPU per iteration", plan["cost_s"], duration),
        ("service time", plan["service_s"], duration),
        ("users at once", plan["users"], three_digits),
        ("CPU of a worker", plan["cpu"], "{:.0%}".format),
    )
    parts = [
        f"{name} {text(one['measured'])} (plan {text(one['planned'])})"
        for name, one, text in shown
        if one["measured"] is not None
    ]
    yield "planned", Text("; ".join(parts))
    for sentence in plan["differences"]:
        yield "", Text(plain(sentence, 500))


def request_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line on the phases, connections and bytes of HTTP requests, where there were any."""
    # runs of older releases do not say
    requests = (workload.get("requests") or {}).get("total")
    if not requests or not requests["requests"]:
        return
    phases = {name: duration(times["mean"]) for name, times in requests["phases"].items()}
    opened = ""
    if requests["new_connections"]:
        tls = f", TLS {phases['tls']}" if requests["phases"]["tls"]["count"] else ""
        opened = f" (lookup {phases['lookup']}, connect {phases['connect']}{tls})"
    text = f"{count(requests['requests'])}: "
    if requests["phases"]["wait"]["count"]:
        text += f"first bytes after {phases['wait']}, the rest {phases['rest']} on average; "
    text += (
        f"{count(requests['new_connections'], 'new connection')}{opened}, "
        f"{count(requests['reused_connections'])} reused"
    )
    statuses = requests.get("statuses") or {}
    if statuses:
        text += f"; status {', '.join(f'{code} x {count(n)}' for code, n in statuses.items())}"
    if requests["unanswered"]:
        text += f"; {count(requests['unanswered'])} without an answer"
    if requests.get("sent_twice"):
        text += f"; {count(requests['sent_twice'])} sent twice"
    if requests.get("false_bodies"):
        text += f"; {count(requests['false_bodies'])} with a false body"
    sent, received = size(requests["sent_bytes"]), size(requests["received_bytes"])
    yield "requests", Text(f"{text}; {sent} sent, {received} received")


def bound_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line on the causes that bound the load; the notes of the run have the sentences."""
    # runs of older releases do not say
    bounds = workload.get("bounds") or []
    if bounds:
        told = [f"{plain(one['cause']).replace('_', ' ')} ({one['fault']})" for one in bounds]
        guilty = any(one["fault"] == "generator" for one in bounds)
        yield "bound by", Text(", ".join(told), style="bold red" if guilty else "bold yellow")


def core_lines(workers: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    """A line on the CPU of workers, their waits for cores, and the load of each host."""
    cpu = [one["cpu_mean"] for one in workers if one.get("cpu_mean") is not None]
    if not cpu:
        return
    text = f"CPU {sum(cpu):.2f} cores, {max(cpu):.2f} the busiest process"
    waiting = [one["waiting"] for one in workers if one.get("waiting") is not None]
    if waiting:
        text += f"; {sum(waiting):.2f} threads waited for a core on average"
    hosts = [
        f"{three_digits(host.used)} of {host.cores} cores of {plain(host.host)}"
        for host in host_uses(workers)[:_HOSTS]
    ]
    if hosts:
        text += f"; all programs used {', '.join(hosts)}"
    yield "", Text(text)


def loop_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line on how late event loops or threads were, and what blocked the loops most."""
    # runs of older releases do not say
    loops, threads = workload.get("loops"), workload.get("threads")
    if threads:
        yield "threads", Text(f"late by {_lateness(threads['lag'])}")
    if not loops:
        return
    text = f"late by {_lateness(loops['lag'])}"
    if loops["blocked"]:
        worst = loops["blocked"][0]
        text += (
            f"; the scenario blocked them for {duration(loops['blocked_s'])}, of that "
            f"{duration(worst['seconds'])} at {plain(worst['place'])}"
        )
    yield "loops", Text(text)


def _lateness(lag: Mapping[str, Any]) -> str:
    told = [f"{duration(lag[key])} at {key}" for key in ("p50", "p99") if lag[key] is not None]
    return ", ".join([*told, f"{duration(lag['max'])} at most"])


def user_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line on how virtual users began and ended, and one an error of that."""
    # runs of older releases do not say
    users = workload.get("users")
    if not users:
        return
    parts = [f"{count(users['started'])} started{_took(users['start_s'])}"]
    if users.get("never_started"):
        never, tried = count(users["never_started"]), count(users["tried"])
        parts.append(f"{never} of {tried} could never start")
    if users["start_failures"]:
        parts.append(f"{count(users['start_failures'])} attempts to start failed")
    if users["stopped"]:
        parts.append(f"{count(users['stopped'])} stopped{_took(users['stop_s'])}")
    if users["stop_failures"]:
        parts.append(f"{count(users['stop_failures'])} failed to stop")
    if users["replaced"]:
        parts.append(f"{count(users['replaced'])} replaced after a timeout")
    yield "users", Text("; ".join(parts))
    for error in users["errors"][:3]:
        said = f"{error['what']}: {error['type']}: {error['message']}".partition("\n")[0]
        yield "", Text(f"{count(error['count'])} x {plain(said)}")


def _took(times: Mapping[str, float] | None) -> str:
    if times is None:
        return ""
    return f" (in {duration(times['p50'])} at p50, {duration(times['max'])} at most)"


def check_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a soft check that did not always hold, and one for all others."""
    checks = workload.get("checks") or {}
    broken = {name: one for name, one in checks.items() if one["failed"]}
    lines = [
        f"{plain(name)}: failed {count(one['failed'])} of "
        f"{count(one['held'] + one['failed'])} times"
        for name, one in sorted(broken.items(), key=lambda item: -item[1]["failed"])
    ]
    if len(lines) > CHECKS:
        lines[CHECKS - 1 :] = [f"and {len(lines) - CHECKS + 1} others that did not always hold"]
    if len(checks) > len(broken):
        lines.append(f"{count(len(checks) - len(broken))} always held")
    for label, line in zip(["checks", *[""] * len(lines)], lines, strict=False):
        yield label, Text(line)


def output_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a chart that was not added up, and what was left out."""
    found = outputs(workload)
    texts = [
        f"{plain(chart['title'])} ({plain(chart['chart_plugin'])}) of "
        f"{count(chart['iterations'], 'iteration')}, the first {count(chart['first_iteration'])}"
        for chart in found["complete"]
    ]
    more = max(0, len(texts) - CHARTS) + max(0, len(found["additive"]) - CHARTS)
    texts = [*texts[:CHARTS], *([f"{count(more, 'more chart')}"] if more else [])]
    cut = [count(found["cut"][key], one, many) for key, one, many in _CUT if found["cut"][key]]
    texts += [f"left out: {', '.join(cut)}"] if cut else []
    for label, text in zip(["outputs", *[""] * len(texts)], texts, strict=False):
        yield label, Text(text)


def outputs(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The charts of a workload's object; runs of older releases have none."""
    nothing = {"additive": [], "complete": [], "cut": dict.fromkeys((key for key, *_ in _CUT), 0)}
    found: Mapping[str, Any] = workload.get("outputs", nothing)
    return found
