"""Values of a JSON document by path, as in RFC 9535: `$.servers[*].name`."""

from __future__ import annotations

import functools
from typing import Any

#: Paths that are kept ready.
READY = 1000


class BadPath(ValueError):
    """A JSONPath that is not valid; the message contains it."""


@functools.lru_cache(READY)
def compiled_query(path: str) -> Any:
    """Return the parsed query of a JSONPath, cached. Raises BadPath if it is not valid RFC 9535."""
    if not path.startswith("$"):
        raise BadPath(f"{path!r} does not begin with $")
    # few tasks have paths, and the library is slow to import
    from jsonpath.exceptions import JSONPathError  # noqa: PLC0415 - see above

    try:
        return _rfc_9535().compile(path)
    except JSONPathError as error:
        raise BadPath(f"{path!r} cannot be read: {str(error).splitlines()[0]}") from None


@functools.cache
def _rfc_9535() -> Any:
    import jsonpath  # noqa: PLC0415 - as above

    return jsonpath.JSONPathEnvironment(strict=True)


def values(document: Any, path: str) -> list[Any]:
    """Return all values that a JSONPath matches in a document; empty if none. Raises BadPath."""
    return matches(compiled_query(path), document)


def matches(query: Any, document: Any) -> list[Any]:
    """Return all values that a query (from `compiled_query`) matches in a document; empty if none.

    In a document that is a string, number, boolean or null only `$` matches.
    """
    if isinstance(document, dict | list):
        several: list[Any] = query.findall(document)
        return several
    # the library takes no text and no number for a document
    return [document] if str(query) == "$" else []
