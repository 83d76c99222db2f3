"""Engines of both kinds of virtual users: tests that take `closed` or `opened` run over both."""

from __future__ import annotations

from functools import partial

import pytest

from helpers import engines


@pytest.fixture(params=[engines.THREADS, engines.COROUTINES])
def users(request):
    return request.param


@pytest.fixture
def closed(users):
    return partial(engines.closed, users=users)


@pytest.fixture
def opened(users):
    return partial(engines.opened, users=users)
