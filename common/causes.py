"""The root cause of a network error, worded the same for similar failures."""

from __future__ import annotations


def root_cause(error: BaseException) -> str:
    """The text of the innermost cause.

    The outer exceptions of requests and keystoneauth1 contain object addresses, request ids and
    whole URLs, so similar failures would not be grouped. What was raised `from None` has no cause.
    """
    while (inner := _cause(error)) is not None:
        error = inner
    return str(error) or type(error).__name__


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
