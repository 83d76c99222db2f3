"""Evaluates the SLA criteria of one workload on its results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from osbench.common.plugin.loading.checked_returns import plugin_error_text
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Sla, SpanFigures, SpanSelection, Statistics, Verdict
from osbench.common.protocol.columns import Columns
from osbench.common.task import Named


class Delay(Protocol):
    """The delay that the load generator may have added to some results."""

    @property
    def statistics_without(self) -> Statistics | None:
        """Return the results as they may have been without it; None if it means nothing."""

    @property
    def sentence(self) -> str:
        """Return the delay in words."""


class SlaEvaluator:
    """The SLA criteria of one workload: passes results to them and collects their verdicts.

    A criterion is a plug-in. If it raises an exception, its verdict is a failure with that as the
    reason, and it gets no further results.
    """

    def __init__(self, criteria: Sequence[Named], plugins: Plugins) -> None:
        #: By name in the task file; None for one that raised.
        self._criteria: dict[str, Sla | None] = {}
        #: Criteria that take rows, again, for rows without the generator's delays.
        self._undisturbed: dict[str, Sla] = {}
        self._raised: dict[str, Verdict] = {}
        self._limits = {named.name: limits_of(named.config) for named in criteria}
        #: Selections of criteria on spans; these are judged when the traces are read.
        self._selected: dict[str, tuple[SpanSelection, ...]] = {}
        for named in criteria:
            kind = plugins.get("sla", named.name)
            assert issubclass(kind, Sla)
            self._criteria[named.name] = None
            with self._guard(named.name):
                criterion = kind(named.config)
                if selections := tuple(criterion.selections()):
                    self._selected[named.name] = selections
                self._criteria[named.name] = criterion
                if kind.add is not Sla.add:
                    self._undisturbed[named.name] = kind(named.config)

    def __bool__(self) -> bool:
        return bool(self._criteria)

    @property
    def takes_rows(self) -> bool:
        """Return whether a criterion needs rows: more than statistics."""
        return bool(self._undisturbed)

    def add(self, columns: Columns, undisturbed: Columns | None = None) -> None:
        """Pass result rows to all criteria. Each iteration must be passed once.

        `undisturbed`: the rows as they may have been without the generator's delays, if they
        differ.
        """
        for name, criterion in self._criteria.items():
            with self._guard(name):
                if criterion is not None:
                    criterion.add(columns)
            # it says nothing that the criterion itself does not say, if that is met
            with contextlib.suppress(Exception):
                if name in self._undisturbed:
                    self._undisturbed[name].add(columns if undisturbed is None else undisturbed)

    def judge(
        self,
        statistics: Statistics,
        *,
        running: bool = False,
        delay: Delay | None = None,
    ) -> tuple[Verdict, ...]:
        """Return the verdicts on the results so far, in the order of the task file.

        A criterion that has raised is a failure. Criteria on trace spans are left out; if the load
        is `running`, also criteria that are judged only at its end. A failed criterion that would
        be met without the `delay` of the load generator is disputed, and its message says so.
        """
        found = []
        later = self.at_end if running else frozenset()
        for name, criterion in self._criteria.items():
            if name in self._selected or name in later:
                continue
            with self._guard(name):
                if criterion is not None:
                    verdict = criterion.check(statistics)
                    apart = self._undisturbed.get(name, criterion)
                    if delay is not None and _is_disputed(verdict, apart, delay):
                        why = f"may be the generator's own doing: {delay.sentence}"
                        verdict = replace(verdict, detail=f"{verdict.detail}; {why}", disputed=True)
                    found.append(verdict)
            if self._criteria[name] is None:
                found.append(self._raised[name])
        return self._with_limits(found)

    @property
    def on_spans(self) -> frozenset[str]:
        """Return the names of the criteria that are judged once traces have been read."""
        return frozenset(self._selected)

    @property
    def at_end(self) -> frozenset[str]:
        """Return the names of the criteria that are judged only at the end of the load."""
        return frozenset(
            name for name, one in self._criteria.items() if one is not None and one.AT_END
        )

    @property
    def selections(self) -> tuple[SpanSelection, ...]:
        """Return the spans that the criteria on spans judge, in their order."""
        return tuple(one for some in self._selected.values() for one in some)

    def judge_spans(self, figures: Sequence[SpanFigures], without: str) -> tuple[Verdict, ...]:
        """Return the verdicts of the criteria on trace spans.

        `figures`: one for each element of `selections`, in order. `without`: why there are no
        figures, else "": with a reason all these criteria fail with it.
        """
        found, left = [], list(figures)
        for name, selections in self._selected.items():
            mine, left = left[: len(selections)], left[len(selections) :]
            if without:
                found.append(Verdict(criterion=name, success=False, detail=without))
                continue
            with self._guard(name):
                criterion = self._criteria[name]
                if criterion is not None:
                    found.append(criterion.check_spans(mine))
            if self._criteria[name] is None:
                found.append(self._raised[name])
        return self._with_limits(found)

    def _with_limits(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        return tuple(replace(one, limits=self._limits.get(one.criterion, {})) for one in verdicts)

    def most_failures(self) -> float:
        """Return the percentage, 0 to 100, of failures that the criterion `failure_rate` allows.

        100 if the task has no such limit.
        """
        criterion = self._criteria.get("failure_rate")
        config = criterion.config if criterion is not None else None
        return float(config.get("max", 100)) if isinstance(config, Mapping) else 100.0

    def failing(self, statistics: Statistics, delay: Delay | None = None) -> tuple[Verdict, ...]:
        """Return the verdicts of `judge` that are failures."""
        judged = self.judge(statistics, delay=delay)
        return tuple(verdict for verdict in judged if not verdict.success)

    def breach(self, statistics: Statistics, plan: int | None) -> Verdict | None:
        """Return the verdict of the first criterion that is certain to fail; None without one.

        By `Sla.breach`. `plan`: number of planned iterations; None if unknown. Criteria on trace
        spans are left out; a criterion that raises is certain to fail.
        """
        for name, criterion in self._criteria.items():
            if name in self._selected:
                continue
            with self._guard(name):
                verdict = criterion.breach(statistics, plan) if criterion is not None else None
                if verdict is not None:
                    return verdict
            if self._criteria[name] is None:
                return self._raised[name]
        return None

    @contextlib.contextmanager
    def _guard(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
            self._criteria[name] = None
            self._raised[name] = Verdict(
                criterion=name,
                success=False,
                detail=f"cannot be judged: {plugin_error_text(error)}",
            )


def _is_disputed(verdict: Verdict, criterion: Sla, delay: Delay) -> bool:
    """Return whether a failed criterion is met without the delay of the load generator.

    `criterion`: has had rows without it. False if it cannot be judged without it.
    """
    if verdict.success or (statistics := delay.statistics_without) is None:
        return False
    # code of a plug-in may want more than there is: then its first verdict stands
    with contextlib.suppress(Exception):
        return criterion.check(statistics).success
    return False


def limits_of(config: Any) -> dict[str, float]:
    """Return the numbers in a criterion's configuration by their path of keys, joined by dots.

    A percentile `p` is in the path: {"p95.max_s": 0.5}. Other elements of lists have their index in
    it. A number alone has the key "limit".
    """
    return dict(_numbers(config, ()))


def _numbers(config: Any, path: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(config, bool):
        return
    if isinstance(config, int | float):
        yield ".".join(path) or "limit", float(config)
    elif isinstance(config, Mapping):
        inner = (*path, f"p{config['p']}") if "p" in config else path
        for key, value in config.items():
            if key != "p":
                yield from _numbers(value, (*inner, str(key)))
    elif isinstance(config, list | tuple):
        for place, value in enumerate(config):
            named = isinstance(value, Mapping) and "p" in value
            yield from _numbers(value, path if named else (*path, str(place)))
