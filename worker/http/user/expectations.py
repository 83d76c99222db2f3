"""Expectations of a scenario on a response: its status, and checks of its content."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from osbench.common.errors import KindError, kind_of
from osbench.common.secrets.hiding import without
from osbench.common.secrets.masking import mask, mask_field, mask_text
from osbench.common.secrets.secret_names import MASK, is_secret
from osbench.worker.http import jsonpath
from osbench.worker.http.user.http_response import HttpResponse

#: Characters of a body that a message shows, and bytes that are looked at for it.
SHOWN_CHARS = 200
_BODY_BYTES = 64 * 1024
#: Characters of it in which secrets are looked for.
_MASKED_CHARS = 10 * SHOWN_CHARS

#: Characters that are looked at of a text within a value.
_TEXT_CHARS = 1000

#: Checks by what is looked at: a JSONPath, "text", or "header NAME".
Checks = Mapping[str, Any] | Callable[[HttpResponse], Any]


class UnexpectedStatus(KindError, ValueError):
    """Error of a response whose status is not among the expected ones."""

    def __init__(self, name: str, status: int, expected: str, body: str = "") -> None:
        said = f"{name} answered {status}, expected {expected}"
        super().__init__(f"{said}: {body}" if body else said)
        self.status = status
        #: The same for similar failures, whatever the body says.
        self.kind = said


class CheckFailed(KindError, AssertionError):
    """Error of a response whose content fails a check."""

    def __init__(self, name: str, what: str, body: str) -> None:
        said = f"{name}: {what}"
        super().__init__(f"{said}; the response: {body}" if body else said)
        self.kind = kind_of(said)


def expected_statuses(expect: Any) -> str:
    """Return the expected statuses as text, for messages, such as "200 or 201", "200 to 299".

    Returns "less than 400" for None. Raises TypeError unless `expect` is None, a status code, a
    range, or a sequence or set of codes that is not empty.
    """
    if expect is None:
        return "less than 400"
    if isinstance(expect, int) and not isinstance(expect, bool):
        return str(expect)
    if isinstance(expect, range):
        return f"{expect.start} to {expect.stop - 1}"
    if isinstance(expect, Sequence | set | frozenset) and not isinstance(expect, str | bytes):
        codes = list(expect)
        if codes and all(type(code) is int for code in codes):
            return " or ".join(map(str, sorted(codes)))
    raise TypeError(f"expect must be a status code or several, got {expect!r}")


def fits(status: int, expect: Any) -> bool:
    """Return whether a status is among the expected ones; for None, whether it is below 400.

    Raises TypeError for another `expect` than `expected_statuses` takes.
    """
    if isinstance(expect, int) and not isinstance(expect, bool):
        return status == expect
    if expect is None:
        return status < 400
    expected_statuses(expect)
    return status in expect


def check_status(
    name: str, response: HttpResponse, expect: Any, hidden: Collection[str] = ()
) -> None:
    """Raise UnexpectedStatus if the status of a response is not among `expect`; else do nothing.

    `expect` as in `fits`. `name`: the action, for the message, which shows the beginning of the
    body with secrets and the values `hidden` masked. Raises TypeError if `expect` is not valid.
    """
    if not fits(response.status, expect):
        body = shown_body(response, hidden)
        raise UnexpectedStatus(name, response.status, expected_statuses(expect), body)


def check_content(
    name: str, response: HttpResponse, checks: Checks, hidden: Collection[str] = ()
) -> None:
    """Raise CheckFailed for the first check that fails; do nothing if all hold.

    `name`: the action, for the message, which shows the beginning of the body with secrets and the
    values `hidden` masked. `checks`, and other errors: see `outcomes`.
    """
    for _, problem in outcomes(response, checks):
        if problem:
            raise CheckFailed(name, without(hidden, problem), shown_body(response, hidden))


def outcomes(response: HttpResponse, checks: Checks) -> Iterator[tuple[str, str]]:
    """Yield for each check its subject, and the difference found there; "" if the check holds.

    `checks` maps subjects (a JSONPath, "text" or "header NAME") to expected values or functions of
    the value found, or is one function of the response. Raises TypeError for checks of another type
    and ValueError for an unknown subject or an invalid path; errors of functions and the body pass.
    """
    if callable(checks):
        name = getattr(checks, "__name__", "check")
        name = "check" if name == "<lambda>" else name
        yield name, "" if checks(response) else f"{name} does not hold"
        return
    if not isinstance(checks, Mapping):
        raise TypeError(f"checks must be a mapping or a function, got {checks!r}")
    for what, wanted in checks.items():
        yield str(what), _problem(response, str(what), wanted)


def _problem(response: HttpResponse, what: str, wanted: Any) -> str:
    """Return how the response differs from `wanted` at `what`, as text; "" if it does not.

    `what` is a JSONPath, of whose values one has to match; "text", which has to contain `wanted`;
    or "header NAME". `wanted` is a value, or a function of the value found. Raises ValueError for
    another subject or an invalid path; errors of functions and of the body pass.
    """
    if what.startswith("$"):
        return _json_problem(response, what, wanted)
    if what == "text":
        found: Any = response.text
        fine = wanted(found) if callable(wanted) else str(wanted) in found
        wrong = f"the text has no {shown_value(wanted)}"
    elif what.lower().startswith("header "):
        name = what[7:].strip()
        found = response.headers.get(name)
        fine = wanted(found) if callable(wanted) else found == wanted
        wrong = f"{what} is {_shown_field(name, found)}, not {_shown_field(name, wanted)}"
    else:
        raise ValueError(
            f"a check must look at a JSONPath ($...), text, or header NAME; got {what!r}"
        )
    return "" if fine else f"{what} does not hold" if callable(wanted) else wrong


def _json_problem(response: HttpResponse, path: str, wanted: Any) -> str:
    query = jsonpath.compiled_query(path)
    try:
        document = response.json()
    except (ValueError, RecursionError):
        return f"the response is not JSON, which {path} needs; correct the URL, or check text"
    found = jsonpath.matches(query, document)
    if callable(wanted):
        return "" if any(wanted(one) for one in found) else f"{path} does not hold"
    if wanted in found:
        return ""
    if any(is_secret(path, one) for one in [*found, wanted]):
        return f"{path} is {MASK if found else 'not there'}, which is not the one wanted"
    return f"{path} is {_value_list(found)}, not {shown_value(wanted)}"


def _value_list(values: Sequence[Any]) -> str:
    return ", ".join(map(shown_value, values[:3])) if values else "not there"


def _shown_field(name: str, value: Any) -> str:
    """Return the value of header `name` for a message, shortened, with secrets masked."""
    return shown_value(mask_field(name, value) if isinstance(value, str) else value)


def shown_body(response: HttpResponse, hidden: Collection[str] = ()) -> str:
    """Return the first 200 characters of a body in one line, with secrets masked.

    Returns "" if the body is empty, was not kept or cannot be decoded. `hidden` are further values
    that are masked. A longer text ends with "...".
    """
    try:
        body = response.body[:_BODY_BYTES]
    except (ValueError, ConnectionError):
        # not kept, or not whole: the status is what is wrong
        return ""
    if not body:
        return ""
    try:
        text = json.dumps(mask(json.loads(body)), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    # a response may repeat what it was sent, with cookies and the like
    text = mask_text(without(hidden, " ".join(text[:_MASKED_CHARS].split())))
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."


class _ShownValue(reprlib.Repr):
    """`repr` of JSON values, shortened and with secrets masked; omitted parts are "..."."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = 6
        self.maxstring = self.maxother = 200

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        # one more than is shown, so that "..." follows if there are others
        first = islice(value.items(), self.maxdict + 1)
        masked = {name: MASK if v and is_secret(str(name), v) else v for name, v in first}
        return super().repr_dict(masked, level)

    def repr_str(self, text: str, level: int) -> str:
        return super().repr_str(mask_text(text[:_TEXT_CHARS]), level)


_SHOWN = _ShownValue()


def shown_value(value: Any) -> str:
    """Return a value of a response as `repr` shows it, for a message: shortened, secrets masked."""
    return _SHOWN.repr(value)
