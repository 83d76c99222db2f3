"""Does the steps of an exchange from a script, without sockets and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osbench.worker.http.exchange_steps import Ask, HttpConnection, Step, Steps
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.response_parser import ResponseParser
from osbench.worker.http.wire.tls_channel import TlsChannel


class FakeConnection:
    """A connection that is only spoken of."""

    def __init__(self, *, untouched: bool = True, sent: bool = True) -> None:
        self.untouched = untouched
        self.in_body = not untouched
        self.sent = sent
        self.closed = False
        self.tls: TlsChannel | None = None
        self.peer = "10.0.0.1:80"

    def close(self) -> None:
        self.closed = True


class FakePool:
    """Notes what is taken and put."""

    def __init__(self, *kept: HttpConnection) -> None:
        self.kept = list(kept)
        #: Whether each connection that was taken was to be looked at in any case.
        self.certainly: list[bool] = []

    def take(
        self, _origin: object, _now_ns: int, *, certainly: bool = False
    ) -> HttpConnection | None:
        self.certainly.append(certainly)
        return self.kept.pop() if self.kept else None

    def put(self, _origin: object, connection: Any) -> None:
        self.kept.append(connection)


class FakeSocket:
    """A socket that is only closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


#: What comes of a step: a value, an error to raise, or a function of the step.
Outcome = Any


def answered(raw: bytes) -> Callable[[Ask], RawResponse]:
    """An outcome of `Ask`: the answer of these bytes."""

    def answer(step: Ask) -> RawResponse:
        request, _, limits, phases, keep_body = step.sending
        parser = ResponseParser()
        parser.expect(bodiless=request.bodiless, keep_body=keep_body, bound=limits.bound)
        if not parser.take(raw):
            parser.end()
        return parser.answer(request, phases)

    return answer


class Played:
    """Plays all steps of a generator."""

    def __init__(self, steps: Steps[Any], *outcomes: Outcome) -> None:
        self.steps: list[Step] = []
        self.result: Any = None
        self.error: BaseException | None = None
        left = list(outcomes)
        step = self._step(steps.send, None)
        while step is not None:
            self.steps.append(step)
            assert left, f"no outcome for {step}"
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                step = self._step(steps.throw, outcome)
            else:
                step = self._step(steps.send, outcome(step) if callable(outcome) else outcome)
        assert not left, "fewer steps than outcomes"

    def _step(self, call: Callable[[Any], Step], given: Any) -> Step | None:
        """The next step, None after the last one."""
        try:
            return call(given)
        except StopIteration as end:
            self.result = end.value
        except BaseException as error:  # noqa: BLE001 - for the test
            self.error = error
        return None

    @property
    def kinds(self) -> list[str]:
        """The names of the steps."""
        return [type(step).__name__ for step in self.steps]
