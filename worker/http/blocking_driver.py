"""Driver for threads: does the steps of an HTTP exchange by blocking calls.

Time limits of sockets are socket options, which the kernel enforces.
"""

from __future__ import annotations

import socket
from typing import Any, TypeVar, assert_never

from osbench.worker.http.exchange_steps import (
    PIECE,
    Ask,
    Connect,
    LookAt,
    LookUp,
    Read,
    Receive,
    Send,
    Step,
    Steps,
    Wrap,
)
from osbench.worker.http.socket_connection import SocketConnection, bound_waits
from osbench.worker.http.wire.raw_response import RawResponse

T = TypeVar("T")


def drive(steps: Steps[T], first: RawResponse | BaseException | None = None) -> T:
    """Do all steps of a generator in this thread; return its return value, raise its exceptions.

    The outcome of each step is sent into the generator. The error of a step is thrown into it, a
    wait past its limit as TimeoutError; the generator decides on both. `first` is the outcome of
    the first step, a response or an error, if the caller has done that step; else None. The
    generator is closed at the end.
    """
    try:
        step = next(steps)
        if isinstance(first, BaseException):
            step = steps.throw(first)
        elif first is not None:
            step = steps.send(first)
        while True:
            try:
                outcome = _run_step(step)
            except BlockingIOError:
                # the kernel's word for a wait that took too long
                step = steps.throw(TimeoutError())
            except BaseException as error:  # noqa: BLE001 - the generator decides
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        # the engine may end a thread between two steps
        steps.close()
        # an error that is kept here would keep itself
        del first


def _run_step(step: Step) -> Any:  # noqa: PLR0911 - one for each step
    match step:
        case Ask():
            request, own, limits, phases, keep_body = step.sending
            return step.connection.exchange(request, own, limits, phases, keep_body=keep_body)
        case Connect():
            return _connect(step)
        case Wrap():
            return SocketConnection(step.socket, step.tls)
        case LookAt():
            return look_at(step.answer)
        case LookUp():
            return step.pending.result(step.limit_s)
        case Read():
            return step.function()
        case Send():
            if step.limit_s is not None:
                bound_waits(step.socket, step.limit_s)
            return step.socket.sendall(step.data)
        case Receive():
            if step.limit_s is not None:
                bound_waits(step.socket, step.limit_s)
            return step.socket.recv(PIECE)
        case _:
            assert_never(step)


def look_at(response: RawResponse) -> None:
    """Check the body of a response against its content codings, at once; set `phases.false_body`.

    Raises TooLongResponse if a body that is kept decodes to more bytes than are allowed.
    """
    for _ in response.look_at_body():
        pass


def _connect(step: Connect) -> socket.socket:
    sock = step.socket()
    try:
        if step.limit_s is not None:
            bound_waits(sock, step.limit_s)
        sock.connect(step.address[1])
    except BaseException:
        sock.close()
        raise
    return sock
