"""The root cause of a network error, worded the same for similar failures."""

from __future__ import annotations


def root_cause(error: BaseException) -> str:
    """The text of the innermost cause.

    The outer exceptions of requests and keystoneauth1 contain object addresses, request ids and
    whole URLs, so similar failures would not be grouped.
    """
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
