"""Finds resources of a workload that are in error, or in a change that does not end."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from osbench.common.plugin.context import (
    ContextEnvironment,
    ErrorSearchResult,
    ResourceInError,
)
from osbench.common.ports import clock as time
from osbench.common.secrets.masking import error_text
from osbench.common.text.escaping import escaped
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.resource_names import (
    is_from_iteration,
    iteration_in,
    of_workload,
)
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resources import Kind, beginning_with, kinds, names_of

LOG = logging.getLogger(__name__)

#: Longest wait for resources that are changing, and time between two looks at them, seconds.
CHANGING_S = 60.0
PAUSE_S = 2.0
#: No request is sent after so long; timeout of a request, seconds.
SEARCH_S, REQUEST_S = 120.0, 30.0
#: Characters of an error and of a state that are kept.
TEXT_CHARS, STATE_CHARS = 500, 60

#: States of resources in error, and states that end by themselves, of all services.
_ERROR = re.compile(r"error|failed|killed", re.IGNORECASE)
_CHANGING = re.compile(
    r"(re)?build|(revert_)?resize|(hard_)?reboot|password|pending_\w+|\w+_in_progress|"
    r"\w+ing|(restor|back)ing-(backup|up)|reserved|queued|idle",
    re.IGNORECASE,
)


class _SearchEnded(Exception):
    """The search has ended before all kinds were listed; the message says why."""


class _NoResponse(Exception):
    """A service did not respond within `REQUEST_S`; it gets no more requests."""


class ErrorSearch:
    """The search for resources of one workload that are in error or still change, by their names.

    Resources of iterations and of contexts count, in the services that iterations use. Removes
    nothing.
    """

    def __init__(self, environment: ContextEnvironment, services: Sequence[str], key: str) -> None:
        """`services`: services or kinds (`KIND_NAMES`); `key`: marks names given by iterations.

        Raises DeploymentError if there is no deployment of OpenStack.
        """
        self._tell = environment.tell
        self._access = CloudAccess(environment, "cleanup", REQUEST_S)
        self._key = key
        self._beginning = of_workload(environment.run, environment.workload)
        every = {kind.name: kind for service in services for kind in kinds(service)}
        self._kinds = [kind.detailed for kind in every.values() if kind.state]

    def run(self, patient: Callable[[], bool]) -> ErrorSearchResult:
        """Return the resources in error, and the ones changing at the last look at their kind.

        Kinds with changing ones are looked at again, for `CHANGING_S` and as long as `patient`
        returns true. No request is sent after `SEARCH_S`, or once `patient` returns false, if it
        was true at first. Kinds that cannot be listed are in `unlisted`, with the reason; resources
        found before stay.
        """
        result = ErrorSearchResult()
        begun, waits, changing = time.monotonic(), patient(), self._kinds
        #: Services that did not respond, and the message.
        silent: dict[str, str] = {}

        def check() -> None:
            if time.monotonic() - begun >= SEARCH_S:
                raise _SearchEnded(f"the search had ended after {SEARCH_S:g} s")
            if waits and not patient():
                raise _SearchEnded("Ctrl-C ended the search")

        while True:
            for kind in changing:
                self._look(kind, result, check, silent)
            result.waited_s = waited_s = time.monotonic() - begun
            counts = {
                kind.name: sum(not one.in_error for one in result.found[kind.name])
                for kind in changing
                if kind.name not in result.unlisted
            }
            changing = [kind for kind in changing if counts.get(kind.name)]
            if not changing or waited_s >= CHANGING_S or not patient():
                return result
            names = ", ".join(f"{counts[kind.name]} {kind.name}" for kind in changing)
            self._tell(f"seconds waited for changing {names}", int(waited_s), int(CHANGING_S))
            time.sleep(PAUSE_S)

    def _look(
        self,
        kind: Kind,
        result: ErrorSearchResult,
        check: Callable[[], None],
        silent: dict[str, str],
    ) -> None:
        if kind.service in silent:
            result.unlisted[kind.name] = silent[kind.service]
            return
        try:
            result.found[kind.name] = [
                found for one in self._objects(kind, check) for found in self._in_error(kind, one)
            ]
        except _SearchEnded as error:
            if kind.name not in result.found:
                result.unlisted[kind.name] = str(error)
        except Exception as error:
            LOG.debug("resources in error: %s", kind.name, exc_info=True)
            text = str(error) if isinstance(error, _NoResponse) else error_text(error)
            text = escaped(text.strip().partition("\n")[0][:TEXT_CHARS])
            result.unlisted[kind.name] = text
            if isinstance(error, (_NoResponse, ConnectionError)):
                silent[kind.service] = text

    def _objects(self, kind: Kind, check: Callable[[], None]) -> Iterable[Mapping[str, Any]]:
        """Return the objects of a kind, each once; `check` is called before each request.

        Raises the errors of `check` and `Cloud.request`, _NoResponse instead of TimeoutError.
        """

        def listed(cloud: Cloud) -> list[Mapping[str, Any]]:
            check()
            found = []
            try:
                for one in beginning_with(kind, cloud, self._beginning):
                    check()
                    found.append(one)
            except TimeoutError as error:
                raise _NoResponse(error_text(error)) from error
            return found

        owners = self._access.owners(kind)
        lists = self._access.each(f"looking for {kind.name}", owners, listed)
        # public objects are listed in every project
        return {kind.identity(one): one for some in lists for one in some}.values()

    def _in_error(self, kind: Kind, one: Mapping[str, Any]) -> Iterator[ResourceInError]:
        """Yield the resource if it is of the workload, and in error or changing."""
        names = names_of(one, kind)
        made = [name for name in names if is_from_iteration(name, self._key)]
        ours = made or [name for name in names if name.startswith(f"{self._access.beginning}-")]
        fields = (kind.state, kind.change)
        state, change = (escaped(str(one.get(name) or ""))[:STATE_CHARS] for name in fields)
        in_error = _ERROR.search(state) is not None
        if ours and (in_error or change or _CHANGING.fullmatch(state)):
            yield ResourceInError(
                kind=kind.name,
                state=state if in_error or not change else f"{state} ({change})",
                in_error=in_error,
                # a foreign name may have any number
                iteration=iteration_in(made[0]) if made else 0,
            )
