"""Records for reports: when each context of a run was set up and undone, with its errors."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from osbench.common.plugin.plugin_names import NATIVE, RALLY, parse_name
from osbench.common.ports import clock as time
from osbench.common.secrets.masking import mask, mask_text

#: Characters of a message and of a traceback.
MESSAGE, DETAILS = 1000, 8000


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An exception raised by a context: its type name, message and traceback, secrets masked.

    Message and traceback are cut to `MESSAGE` and `DETAILS` characters.
    """

    etype: str
    msg: str
    details: str


@dataclass(frozen=True, kw_only=True)
class ContextStep:
    """A finished setup or cleanup: its start, its end, and the error if it failed.

    Times are seconds since 1970-01-01 UTC.
    """

    started_at: float
    finished_at: float
    error: Fault | None = None


@dataclass(kw_only=True)
class ContextRecord:
    """The setup and the cleanup of one context of one workload; both are None until they finish."""

    #: The name that unambiguously denotes it.
    name: str
    #: Its configuration, secrets hidden.
    config: Any
    #: None until it has finished.
    setup: ContextStep | None = None
    cleanup: ContextStep | None = None

    @property
    def source(self) -> str:
        """Return `RALLY` if the name ends with @rally or @PLATFORM, else `NATIVE`."""
        return RALLY if parse_name(self.name).source == RALLY else NATIVE


class History:
    """Records of when the contexts of a run were set up and undone.

    By workload, in order of setup. `saved` and `restore` carry them over to a resumed run.
    """

    def __init__(self) -> None:
        self._records: dict[int, list[ContextRecord]] = {}
        #: What is being done, as "setting up context users", and since when, monotonic seconds.
        self.under_way: tuple[str, float] | None = None

    def of(self, workload: int) -> tuple[ContextRecord, ...]:
        """Return the records of a workload's contexts; empty if none was set up."""
        return tuple(self._records.get(workload, ()))

    def saved(self, workload: int) -> list[dict[str, Any]]:
        """Return the records of a workload's contexts as JSON can store them, for `restore`."""
        return [asdict(record) for record in self.of(workload)]

    def restore(self, workload: int, saved: Iterable[Mapping[str, Any]]) -> None:
        """Replace a workload's records by `saved`, which an earlier `History.saved` returned."""
        self._records[workload] = [
            ContextRecord(
                name=one["name"],
                config=one["config"],
                setup=_step(one["setup"]),
                cleanup=_step(one["cleanup"]),
            )
            for one in saved
        ]

    @contextlib.contextmanager
    def setup(self, workload: int, name: str, config: Any) -> Iterator[None]:
        """Record start, end and error of a context's setup, which runs in the `with` block.

        Exceptions are noted and propagate. Secrets in `config` and in messages are masked in the
        record.
        """
        record = ContextRecord(name=name, config=mask(config))
        self._records.setdefault(workload, []).append(record)
        with self.noted(f"setting up context {name}"), _recording(record, "setup"):
            yield

    @contextlib.contextmanager
    def cleanup(self, workload: int, name: str) -> Iterator[None]:
        """Record start, end and error of a context's cleanup, which runs in the `with` block.

        Exceptions are noted and propagate. Belongs to the record of the last setup of that name;
        without one, the cleanup appears in no report.
        """
        found = [one for one in self._records.get(workload, ()) if one.name == name]
        record = found[-1] if found else ContextRecord(name=name, config=None)
        with self.noted(f"undoing context {name}"), _recording(record, "cleanup"):
            yield

    @contextlib.contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """Set `under_way` to `what` while the `with` block runs."""
        self.under_way = what, time.monotonic()
        try:
            yield
        finally:
            self.under_way = None


def _step(saved: Mapping[str, Any] | None) -> ContextStep | None:
    if saved is None:
        return None
    error = Fault(**saved["error"]) if saved["error"] else None
    return ContextStep(**{**saved, "error": error})


@contextlib.contextmanager
def _recording(record: ContextRecord, step: str) -> Iterator[None]:
    started_at, fault = time.time(), None
    try:
        yield
    except Exception as error:
        fault = Fault(
            etype=type(error).__name__,
            msg=mask_text(str(error))[:MESSAGE],
            details=mask_text(traceback.format_exc())[-DETAILS:],
        )
        raise
    finally:
        done = ContextStep(started_at=started_at, finished_at=time.time(), error=fault)
        setattr(record, step, done)
