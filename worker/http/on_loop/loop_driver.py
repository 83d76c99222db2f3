"""Driver for event loops: does the steps of an HTTP exchange without blocking the loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from concurrent.futures import Future
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
    Steps,
    Wrap,
)
from osbench.worker.http.name_lookups import Address
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.wire.raw_response import RawResponse

T = TypeVar("T")

_UNDER_WAY = (errno.EINPROGRESS, errno.EAGAIN)


async def drive_on_loop(steps: Steps[T], first: RawResponse | BaseException | None = None) -> T:
    """Do all steps of a generator on the event loop; return its return value, raise its exceptions.

    The outcome of each step is sent into the generator. The error of a step is thrown into it, a
    wait past its limit as TimeoutError, a cancellation too. `first` is the outcome of the first
    step, a response or an error, if the caller has done that step; else None.
    """
    try:
        step = next(steps)
        if isinstance(first, BaseException):
            step = steps.throw(first)
        elif first is not None:
            step = steps.send(first)
        while True:
            try:
                if isinstance(step, Ask):
                    # here, as most users wait at this point, and each frame of them takes memory
                    connection: LoopConnection = step.connection
                    request, own, limits, phases, keep_body = step.sending
                    waiter = connection.begin(request, own, limits, phases, keep_body=keep_body)
                    if request.rest:
                        await connection.send_rest(request.rest)
                    await waiter
                    outcome = connection.answer(request, phases)
                else:
                    outcome = await _run_step(step)
            except BaseException as error:  # noqa: BLE001 - the generator decides
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        # an error that is kept here would keep itself
        del first


async def _run_step(step: LookUp | Connect | Read | Send | Receive | Wrap | LookAt) -> Any:
    match step:
        case Wrap():
            return await _wrap(step)
        case LookAt():
            return await look_at(step.answer)
        case _:
            async with asyncio.timeout(step.limit_s):
                return await _within_limit(step)


async def _within_limit(step: LookUp | Connect | Read | Send | Receive) -> Any:
    loop = asyncio.get_running_loop()
    match step:
        case Connect():
            return await _connect(loop, step)
        case LookUp():
            return await _looked_up(loop, step.pending)
        case Read():
            return await asyncio.to_thread(step.function)
        case Send():
            return await loop.sock_sendall(step.socket, step.data)
        case Receive():
            return await loop.sock_recv(step.socket, PIECE)
        case _:
            assert_never(step)


async def look_at(response: RawResponse) -> None:
    """Check the body of a response against its content codings; set `false_body` of its phases.

    Done in slices between which other tasks run. Raises TooLongResponse if a body that is kept
    decodes to more bytes than are allowed.
    """
    for _ in response.look_at_body():
        # the other users of the loop have their turn
        await asyncio.sleep(0)


async def _wrap(step: Wrap) -> LoopConnection:
    loop = asyncio.get_running_loop()
    connection = LoopConnection(loop, step.socket, step.tls)
    await loop.create_connection(lambda: connection, sock=step.socket)
    return connection


async def _looked_up(
    loop: asyncio.AbstractEventLoop, pending: Future[list[Address]]
) -> list[Address]:
    found_out = loop.create_future()

    def tell(_: Future[list[Address]]) -> None:
        # the loop may have ended meanwhile
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_wake, found_out)

    # others wait for the same lookup: it must not be cancelled with this request
    pending.add_done_callback(tell)
    await found_out
    return pending.result()


async def _connect(loop: asyncio.AbstractEventLoop, step: Connect) -> socket.socket:
    # not by the loop's `sock_connect`: that of uvloop loses the scope of an IPv6 address
    sock = step.socket()
    try:
        sock.setblocking(False)
        code = sock.connect_ex(step.address[1])
        if code in _UNDER_WAY:
            writable = loop.create_future()
            loop.add_writer(sock, _wake, writable)
            try:
                await writable
            finally:
                loop.remove_writer(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
