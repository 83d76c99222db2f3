"""What went wrong on the network, in words that are the same for like failures."""

from __future__ import annotations


def root_cause(error: BaseException) -> str:
    """The text of the innermost cause.

    The outer ones of requests and keystoneauth1 print addresses of objects, ids of requests and
    whole URLs, which would keep like failures apart.
    """
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
