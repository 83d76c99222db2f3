"""Sets up the contexts of a workload in order, and undoes them in reverse order.

A context is a plug-in that creates resources before the load and removes them afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from osbench.common.errors import ConfigError, ContextError, OsbenchError
from osbench.common.plugin.cloud_platform import cloud_of, installed_cloud
from osbench.common.plugin.context import (
    Context,
    ContextEnvironment,
    ErrorSearchResult,
    no_progress,
)
from osbench.common.plugin.left_behind import LeftBehind
from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.secrets.masking import mask_text
from osbench.common.task import Named, Workload
from osbench.common.text.escaping import one_line
from osbench.coordinator.plugins.contexts.history import History
from osbench.coordinator.plugins.contexts.state_store import (
    ContextStateStore,
    Entry,
    PreparedWorkload,
    drop_unstorable,
)

LOG = logging.getLogger(__name__)

T = TypeVar("T")
#: Reports the progress of a context.
Tell = Callable[[str, int, int], None]
#: Called twice per second while a context runs in a thread; its argument says whether it is being
#: undone. Raises KeyboardInterrupt to stop waiting for the context: objects that it made are left.
Poll = Callable[[bool], None]

#: Interval at which the run is polled while contexts are running, seconds.
POLL_S = 0.5
#: After so many seconds without progress a context is named in the display.
SILENT_S = 3.0
#: Longest message of a foreign exception that is shown.
MAX_MESSAGE_CHARS = 500


def contexts_of(workload: Workload, plugins: Plugins) -> list[Named]:
    """Return a workload's contexts with their configurations, the lowest `ORDER` first.

    They are the contexts of the scenario and of the task; if both configure one, the task wins.
    Names of native contexts have no `@` part. Raises PluginError for unknown names.
    """
    scenario = plugins.scenario(workload.scenario)
    given = [*scenario.context.items(), *((one.name, one.config) for one in workload.contexts)]
    found: dict[str, Any] = {}
    for name, config in given:
        # a context may have two names, such as users and users@openstack
        address = plugins.find("context", name, beside=scenario).address
        found[address.removesuffix(f"@{NATIVE}")] = config
    return sorted(
        (Named(name=name, config=config) for name, config in found.items()),
        key=lambda named: _class(plugins, named.name).ORDER,
    )


class ContextStack:
    """Sets up the contexts of a run's workloads before their loads, and undoes them afterwards.

    One for each run, in the coordinator. `left` has messages on contexts that could not be undone.
    """

    def __init__(
        self, store: ContextStateStore, plugins: Plugins, tell: Tell = no_progress
    ) -> None:
        self._store = store
        self._plugins = plugins
        self._shown = tell
        #: The last progress of a context, and its time, monotonic seconds.
        self._told = (0, 1, 0.0)
        #: Why some contexts could not be undone.
        self.left: list[str] = []
        #: Times and errors of setup and cleanup.
        self.history = History()
        for number, prepared in store.prepared.items():
            self.history.restore(number, prepared.history)

    @contextlib.contextmanager
    def around(
        self,
        number: int,
        workload: Workload,
        *,
        check: Callable[[], None],
        poll: Poll,
        unanswered: Callable[[], bool] = lambda: False,
        kept: Callable[[BaseException], bool] = lambda _: False,
    ) -> Iterator[dict[str, Any]]:
        """Set up contexts of workload `number`, yield their results by key, undo them at the end.

        If an earlier coordinator of a resumed run set them all up, they are not set up again;
        contexts set up in part are undone first.

        `check` is called before each setup and after the last, and may raise to stop. `unanswered`
        is called after the load: has an iteration failed or timed out? Raises ContextError if a
        context cannot be set up, or was set up in part and cannot be undone, KeyboardInterrupt if
        `poll` does. At the end, failures to undo are only added to `left`. Contexts are not undone
        if `kept` is true for the exception that ends this, or if `poll` interrupted a setup.
        """
        keep = left = False
        if not self._is_ready(number) and self._store.of(number):
            self._undo_begun(number, poll)
        try:
            if not self._is_ready(number):
                chain = contexts_of(workload, self._plugins)
                environment = self._environment(workload, chain, number)
                for named in chain:
                    check()
                    try:
                        run_polling(partial(self._set_up, number, named, environment), poll)
                    except KeyboardInterrupt:
                        # it may still be making things, with results of the others
                        left = True
                        raise
                check()
            yield self._store.made(number)
        except BaseException as error:
            keep = left or kept(error)
            raise
        finally:
            if left:
                self._leave(number, "one was being set up when Ctrl-C ended the run")
            if not keep:
                self.finish(number, poll=poll, unanswered=unanswered)

    def finish(
        self,
        number: int,
        *,
        poll: Poll,
        unanswered: Callable[[], bool] = lambda: False,
    ) -> None:
        """Undo the contexts of workload `number` after its load; failures are added to `left`.

        First notes on disk that the workload is over, so that it cannot be resumed. `unanswered`
        returns whether some iteration failed or timed out: cleanup then waits longer for late
        resources. If `poll` raises KeyboardInterrupt, the remaining contexts are not undone and
        added to `left`.
        """
        prepared = self._store.prepared.get(number)
        if prepared is not None:
            # on disk before the first is undone: a workload cannot be resumed with some of them
            prepared.over = True
            self._note_prepared()
        if self._store.of(number):
            try:
                work = partial(self._undo, number, unanswered=unanswered())
                run_polling(work, poll, undoing=True)
            except KeyboardInterrupt:
                self._leave(number, "Ctrl-C ended the run before that was done")
        if prepared is not None:
            prepared.history = self.history.saved(number)
            self._note_prepared()

    def in_error(
        self, number: int, *, poll: Poll, patient: Callable[[], bool]
    ) -> ErrorSearchResult | None:
        """Search the resources of workload `number` that are in error after its load.

        The first context with a search (`Context.in_error`) is asked. None if there is no such
        context, or undoing them has begun. Changing resources are awaited while `patient`
        returns true. If `poll` raises KeyboardInterrupt, or the search an exception, the result has
        that as its problem.
        """
        searching = (entry for entry in self._store.of(number) if self._searches(entry))
        entry = next(searching, None)
        if entry is None or self.is_over(number):
            return None
        environment = ContextEnvironment(
            run=self._store.run,
            deployment=self._store.deployment,
            context=self._store.made(number),
            workload=number,
            tell=self._tell,
        )

        def search() -> ErrorSearchResult:
            try:
                cls = _class(self._plugins, entry.name)
                return cls(entry.config, environment, entry.made).in_error(patient)
            except Exception as error:
                LOG.debug("resources in error", exc_info=True)
                problem = f"resources in error could not be searched: {_reason(error)}"
                return ErrorSearchResult(problem=one_line(problem))

        try:
            with self.history.noted("looking for resources in error"):
                return run_polling(search, poll)
        except KeyboardInterrupt:
            return ErrorSearchResult(problem="Ctrl-C ended the search for resources in error")

    def _searches(self, entry: Entry) -> bool:
        return _class(self._plugins, entry.name).in_error is not Context.in_error

    def _tell(self, what: str, done: int, planned: int) -> None:
        self._told = done, planned, time.monotonic()
        self._shown(what, done, planned)

    @property
    def silent(self) -> tuple[str, int, int, float] | None:
        """Return the step of a context without progress for `SILENT_S` seconds; None without one.

        A tuple: description such as "setting up context users", items done, items planned, and
        seconds since the step began. Items are 0 of 1 if the step has reported no progress.
        """
        under_way, now = self.history.under_way, time.monotonic()
        if under_way is None:
            return None
        what, begun = under_way
        done, planned, told = self._told
        if now - max(begun, told) < SILENT_S:
            return None
        return (what, done, planned, now - begun) if told > begun else (what, 0, 1, now - begun)

    def _leave(self, number: int, why: str) -> None:
        names = [entry.name for entry in self._store.of(number)]
        self.left += [f"context {name} is not undone: {why}" for name in names]

    def _note_prepared(self) -> None:
        try:
            self._store.save_prepared()
        except ContextError as error:
            # only another coordinator would miss it, and what was made has to go all the same
            LOG.warning("%s", error)

    @property
    def holds(self) -> bool:
        """Return whether the store has a context of the run that is not undone."""
        return bool(self._store.entries)

    def is_over(self, number: int) -> bool:
        """Return whether undoing a workload's contexts has begun: it has no more load."""
        prepared = self._store.prepared.get(number)
        return prepared is not None and prepared.over

    def _is_ready(self, number: int) -> bool:
        prepared = self._store.prepared.get(number)
        return prepared is not None and not prepared.over

    def _undo_begun(self, number: int, poll: Poll) -> None:
        """Undo contexts that a killed coordinator set up. Raises ContextError if some are left."""
        before = len(self.left)
        work = partial(self._undo, number, unanswered=True, crashed=True)
        run_polling(work, poll, undoing=True)
        if len(self.left) > before:
            raise ContextError(
                "the contexts cannot be set up again: their resources from before the coordinator "
                "was killed still exist; remove them, then run the task again"
            )
        self.history.restore(number, [])

    def ready(
        self, number: int, workload: Workload, made: Mapping[str, Any], poll: Poll
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arguments and context of workload `number` for its workers; called after setup.

        The scenario's `prepare` makes both from the results `made`; without `prepare` they are the
        task's arguments and `made`. Both are saved in the run directory; in a resumed run the saved
        ones are returned. `poll` is called every `POLL_S` meanwhile. Raises ContextError if they
        cannot be saved, and the exceptions of `prepare` and `poll`.
        """
        if self._is_ready(number):
            prepared = self._store.prepared[number]
            return dict(prepared.args), dict(prepared.context)
        args, context = self._prepare(workload, made, poll)
        self._store.keep_prepared(
            number, PreparedWorkload(args=args, context=context, history=self.history.saved(number))
        )
        return args, context

    def _prepare(
        self, workload: Workload, made: Mapping[str, Any], poll: Poll
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        plugin = self._plugins.scenario(workload.scenario)
        made, prepare = {**made, **self._of_host(plugin)}, plugin.prepare
        if prepare is None:
            return dict(workload.args), made
        environment = self._environment(workload, contexts_of(workload, self._plugins))
        return run_polling(
            partial(prepare, workload.args, dataclasses.replace(environment, context=made)), poll
        )

    def _of_host(self, plugin: ScenarioPlugin) -> dict[str, Any]:
        """Return keys of the context from this host's configuration; {} without a cloud.

        Also {} for scenarios of Rally, which get them otherwise. Raises ContextError if they are
        invalid.
        """
        cloud = cloud_of(self._store.deployment) if plugin.source == NATIVE else None
        try:
            return cloud.context() if cloud is not None else {}
        except ConfigError as error:
            raise ContextError(str(error)) from error

    def _environment(
        self, workload: Workload, chain: Sequence[Named], number: int = 0
    ) -> ContextEnvironment:
        return ContextEnvironment(
            run=self._store.run,
            deployment=self._store.deployment,
            scenario=workload.scenario,
            contexts={named.name: named.config for named in chain},
            workload=number,
            tell=self._tell,
        )

    def _set_up(self, number: int, named: Named, environment: ContextEnvironment) -> None:
        before = [one.name for one in self._store.of(number)]
        entry = Entry(workload=number, name=named.name, config=named.config, after=before)
        self._store.add(entry)
        name = named.name
        try:
            with self.history.setup(number, name, named.config):
                _instance(self._store, self._plugins, entry, environment).setup()
        except Exception as error:
            LOG.debug("context %s", name, exc_info=True)
            raise ContextError(
                f"context {name} cannot be set up: {_reason(error)}; check contexts.{name} of the "
                "task"
            ) from error
        finally:
            unstorable = drop_unstorable(entry)
        if unstorable:
            raise ContextError(f"context {name}: {unstorable}")
        self._store.save()

    def _undo(self, number: int, *, unanswered: bool, crashed: bool = False) -> None:
        self.left += undo(
            self._store,
            self._plugins,
            number,
            self.history,
            crashed=crashed,
            unanswered=unanswered,
            tell=self._tell,
        )


def run_polling(work: Callable[[], T], poll: Poll, *, undoing: bool = False) -> T:
    """Return the result of `work`, called in a daemon thread, or raise its exception.

    Meanwhile calls `poll(undoing)` every `POLL_S` seconds. An exception of `poll` is raised at
    once; the thread then goes on, and its result is lost.
    """
    over, found, failed = threading.Event(), list[T](), list[BaseException]()

    def call() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            failed.append(error)
        over.set()

    # the process does not wait for one that is given up
    threading.Thread(target=call, name="contexts", daemon=True).start()
    while not over.wait(POLL_S):
        poll(undoing)
    if failed:
        raise failed[0]
    return found[0]


def undo(
    store: ContextStateStore,
    plugins: Plugins,
    workload: int | None = None,
    history: History | None = None,
    *,
    crashed: bool = False,
    unanswered: bool = False,
    tell: Tell = no_progress,
) -> list[str]:
    """Undo the contexts of one workload, or of all if None, last first; return failure messages.

    A context that could not be undone stays in the store, to be undone by a later call. So do the
    contexts of its workload set up before it, because it needs their results. `crashed`: the run
    did not finish; `unanswered`: iterations failed or timed out. In both cases cleanups may wait
    longer for late resources. `history`: gets a record of each cleanup. `tell` is called with the
    progress.
    """
    problems = []
    history = history or History()
    environment = ContextEnvironment(
        run=store.run,
        deployment=store.deployment,
        crashed=crashed,
        unanswered=unanswered,
        tell=tell,
    )
    # by workload: the context that could not be undone
    stuck: dict[int, str] = {}
    for entry in reversed(store.entries[:]):
        if workload not in (None, entry.workload):
            continue
        if entry.workload in stuck:
            problems.append(f"context {entry.name} is kept for context {stuck[entry.workload]}")
            continue
        problem = _clean_up(store, plugins, entry, environment, history)
        if problem:
            stuck[entry.workload] = entry.name
        problem = problem or _remove(store, entry)
        if problem:
            problems.append(problem)
    return problems


def _clean_up(
    store: ContextStateStore,
    plugins: Plugins,
    entry: Entry,
    environment: ContextEnvironment,
    history: History,
) -> str:
    """Call `cleanup` of the context of `entry`; return a message if it fails, else ""."""
    environment = dataclasses.replace(environment, workload=entry.workload)
    try:
        with history.cleanup(entry.workload, entry.name):
            _check_before(store, entry)
            try:
                _instance(store, plugins, entry, environment).cleanup()
            except LeftBehind as left:
                installed_cloud().remove_left(left, environment)
    except Exception as error:
        LOG.debug("context %s", entry.name, exc_info=True)
        return f"context {entry.name} cannot be undone: {_reason(error)}"
    return ""


def _remove(store: ContextStateStore, entry: Entry) -> str:
    try:
        store.remove(entry)
    except ContextError as error:
        return f"context {entry.name} is undone, and that cannot be noted: {error}"
    return ""


def _check_before(store: ContextStateStore, entry: Entry) -> None:
    """Raise ContextError if an earlier context, whose result this may need, is already undone."""
    there = {other.name for other in store.entries if other.workload == entry.workload}
    gone = ", ".join(name for name in entry.after if name not in there)
    if gone:
        raise ContextError(
            f"it needs the result of {gone}, which is already undone: remove the resources of "
            "this context by hand"
        )


def _instance(
    store: ContextStateStore, plugins: Plugins, entry: Entry, environment: ContextEnvironment
) -> Context:
    before = []
    for other in store.entries:
        if other is entry:
            break
        before.append(other.name)
    environment = dataclasses.replace(environment, context=store.made(entry.workload, before))
    return _class(plugins, entry.name)(entry.config, environment, entry.made, store.save)


def _class(plugins: Plugins, name: str) -> type[Context]:
    address = name if "@" in name else f"{name}@{NATIVE}"
    return cast(type[Context], plugins.get("context", address))


def _reason(error: Exception) -> str:
    text = mask_text(str(error).strip().partition("\n")[0])
    if isinstance(error, OsbenchError):
        return text
    text = text[:MAX_MESSAGE_CHARS]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
