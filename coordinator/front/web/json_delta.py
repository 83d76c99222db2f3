"""Changes from one JSON document to the next: charts grow at their ends.

Forms of a change:
  {"=": value}             a new value instead of the old one
  {"+": [kept, values]}    a list: the first `kept` values stay, these follow
  {"~": {key: change}}     changes of some members of an object, or of a list of equal length
`live.js` applies them. HTML goes as a list of its lines: most of them stay as they are.
"""

from __future__ import annotations

from typing import Any

Change = dict[str, Any]

#: Characters of overhead, about, to mark a changed member of a list.
_OVERHEAD = 12


def change(before: Any, after: Any) -> Change | None:
    """Return the change from one JSON value to the next, with the key "=", "+" or "~"; None if
    equal.

    The module's docstring describes these forms.
    """
    if before == after:
        return None
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return {"~": _members((key, before[key], after[key]) for key in after)}
    if isinstance(before, list) and isinstance(after, list) and before:
        return _of_lists(before, after)
    return {"=": after}


def apply_change(before: Any, how: Change | None) -> Any:
    """Apply a change to a JSON value as `live.js` does; return the new value. `before` is not
    modified.

    `how`: a result of `change`; None changes nothing. For tests and clients in Python.
    """
    if how is None:
        return before
    ((kind, what),) = how.items()
    if kind == "=":
        return what
    if kind == "+":
        return [*before[: what[0]], *what[1]]
    if isinstance(before, dict):
        return {key: apply_change(value, what.get(key)) for key, value in before.items()}
    return [apply_change(value, what.get(str(at))) for at, value in enumerate(before)]


def _of_lists(before: list[Any], after: list[Any]) -> Change:
    kept = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new),
        min(len(before), len(after)),
    )
    tail: Change = {"+": [kept, after[kept:]]}
    if len(before) != len(after):
        return tail
    differ = [at for at in range(kept, len(after)) if before[at] != after[at]]
    if not isinstance(after[kept], dict | list | str):
        return tail
    # numbers are sent again up to the end, texts only where that is longer than to point at some
    if isinstance(after[kept], str):
        again = sum(len(str(one)) for one in after[kept:])
        if again <= sum(len(str(after[at])) + _OVERHEAD for at in differ):
            return tail
    return {"~": _members((str(at), before[at], after[at]) for at in differ)}


def _members(triples: Any) -> dict[str, Change]:
    found = ((key, change(old, new)) for key, old, new in triples)
    return {key: how for key, how in found if how is not None}
