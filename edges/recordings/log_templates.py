"""Templates of the requests of an access log: method and path, with {id} for ids and secrets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from osbench.common.secrets.masking import holds_secret
from osbench.common.text import plain_paths
from osbench.coordinator.task.taskfile.flow_task import step_name

ID = "{id}"
#: Requests that are kept with their templates, and templates at most; others are counted together.
_MOST_REQUESTS = 200_000
_MOST_TEMPLATES = 50_000
#: Characters of a path that is looked at.
_LONGEST = 2000
#: More different parts of a path in one place are ids: user names, for example.
_MOST_PARTS = 50
#: Pattern of names of resources; all else may be of a person.
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
#: Files that belong to the site, whatever digits their names have.
_ASSET = re.compile(r"[A-Za-z0-9_.~-]{1,100}\.(?:css|js|mjs|woff2?|ttf|ico|map)", re.I)

#: Parts that `plain_paths.path` takes for ids, except parts with a dot, which may be assets.
#: Nothing is given back: a part of any length takes linear time.
_CLEAR_ID = re.compile(rb"/(?!v\d+/|v\d+$)[^/.\d]*+\d[^/.]*+(?=/|$)")

#: A method, and the parts of a path before the one that is looked at.
Place = tuple[str, tuple[str, ...]]

#: The template of requests beyond the limit.
OTHER = 0


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """The template of similar requests: method and parts of the path, `ID` for ids, secrets."""

    method: str
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of a step with such requests: method and path, with [id] for `ID`."""
        return step_name(self.method, "/".join(self.parts).replace(ID, "[id]"))


class TemplateTable(dict[bytes, int]):
    """Numbers of templates (indexes in `templates`) by request, b"METHOD PATH" as in a log.

    A missing request gets its number on access. Memory is bounded: after `_MOST_TEMPLATES`
    templates, requests of new templates get the number 0 (`OTHER`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.templates = [RequestTemplate(method="", parts=())]
        self._numbers: dict[RequestTemplate, int] = {}
        self._parts: defaultdict[Place, set[str]] = defaultdict(set)
        self._full: set[Place] = set()

    def __missing__(self, request: bytes) -> int:
        # most requests with an id are made once, and need not be kept
        alike = _CLEAR_ID.sub(b"/0", request)
        return self._added(request) if alike == request else self[alike]

    def _added(self, request: bytes) -> int:
        if len(self) >= _MOST_REQUESTS:
            self.clear()
        template = template_of(request.decode("utf-8", "replace"), self._full)
        number = self._numbers.get(template)
        if number is None:
            if len(self.templates) > _MOST_TEMPLATES:
                return OTHER
            number = self._numbers[template] = len(self.templates)
            self.templates.append(template)
            self._note(template)
        # longer ones would fill the memory
        if len(request) <= _LONGEST:
            self[request] = number
        return number

    def _note(self, template: RequestTemplate) -> None:
        """Count the parts of a template's path; a place with more than `_MOST_PARTS` is full.

        A place is a method and the parts before. All later parts in a full place count as ids.
        """
        for depth in range(1, len(template.parts)):
            if _may_be_id(template, depth):
                place = (template.method, template.parts[:depth])
                parts = self._parts[place]
                parts.add(template.parts[depth])
                if len(parts) > _MOST_PARTS:
                    self._full.add(place)


def template_of(request: str, full: Container[Place] = frozenset()) -> RequestTemplate:
    """Return the template of `request`, "METHOD PATH": `ID` for ids, secrets, personal parts.

    `full`: places (method and parts before) in which all parts but names of assets are ids. Of an
    absolute URL only the path counts; it is cut to `_LONGEST` characters.
    """
    method, _, path = request.partition(" ")
    if "://" in path:
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    parts: list[str] = []
    for part in path[:_LONGEST].split("/"):
        if _ASSET.fullmatch(part):
            parts.append(part if not holds_secret(parts[-1] if parts else "", part) else ID)
        elif parts and part and (method, tuple(parts)) in full:
            parts.append(ID)
        else:
            parts.append(_without_values(parts[-1] if parts else "", part))
    return RequestTemplate(method=method, parts=tuple(parts))


def _without_values(before: str, part: str) -> str:
    """Return a part of a path, or `ID` if it is an id, a secret or not a plain word.

    `before`: the part before it, which may show that a secret follows.
    """
    # parts with digits and long ones are ids, as in analyses of traces
    shown = plain_paths.path(part)
    if shown == ID or not _PLAIN.fullmatch(shown) or holds_secret(before, shown):
        return ID
    return shown


def merged_templates(templates: Sequence[RequestTemplate]) -> list[RequestTemplate]:
    """Return the templates, in order, with `ID` for parts that have many values in one place.

    Many: more than `_MOST_PARTS`. Several elements of the result may be equal.
    """
    found = list(templates)
    for depth in range(1, max((len(template.parts) for template in found), default=0)):
        found = list(_merged_at(found, depth))
    return found


def _merged_at(templates: Sequence[RequestTemplate], depth: int) -> Iterator[RequestTemplate]:
    """Yield the templates, in order, with `ID` for part `depth` if its place has many values."""
    places: defaultdict[Place, set[str]] = defaultdict(set)
    for one in templates:
        if _may_be_id(one, depth):
            places[one.method, one.parts[:depth]].add(one.parts[depth])
    for one in templates:
        many = _may_be_id(one, depth) and len(places[one.method, one.parts[:depth]]) > _MOST_PARTS
        parts = (*one.parts[:depth], ID, *one.parts[depth + 1 :]) if many else one.parts
        yield RequestTemplate(method=one.method, parts=parts)


def _may_be_id(template: RequestTemplate, depth: int) -> bool:
    if depth >= len(template.parts):
        return False
    return template.parts[depth] not in (ID, "") and not _ASSET.fullmatch(template.parts[depth])
