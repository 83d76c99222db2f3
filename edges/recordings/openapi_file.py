"""Reads OpenAPI 3 descriptions of services, and Swagger 2 as far as it says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml

from osbench.common.errors import UsageError
from osbench.edges.recordings.har_file import read_bounded

METHODS = ("get", "head", "options", "query", "post", "put", "patch", "delete")
#: References that lead to references.
_DEPTH = 20
#: URL of a service whose description has none.
_NOWHERE = "http://127.0.0.1:8080"


@dataclass(frozen=True, kw_only=True)
class ServiceOperation:
    """An operation of an OpenAPI description: a method of a path, with parameters and bodies."""

    method: str
    path: str
    tag: str
    #: Its parameters, with the parameters of its path; references are resolved.
    parameters: tuple[Mapping[str, Any], ...]
    #: Bodies by media type.
    bodies: Mapping[str, Mapping[str, Any]]
    #: Status codes and other keys under which responses are listed.
    answers: tuple[str, ...]
    #: The security schemes that it needs.
    security: tuple[Mapping[str, Any], ...]
    #: Use of the connection apart from a response, in words; "" for none.
    lasting: str


class ServiceDescription:
    """An OpenAPI or Swagger description, read when created: title, base URL and operations.

    References within the file are resolved. References to other files are added to `elsewhere`
    while `operations` are read.
    """

    def __init__(self, file: str) -> None:
        """Read the description from `file`, JSON or YAML.

        Raises UsageError if it cannot be read or is not an OpenAPI 3 or Swagger 2 description.
        """
        self._file = file
        text = read_bounded(file)
        try:
            # YAML holds JSON, except for tabs before a line's text
            document = yaml.load(text.replace("\t", " "), Loader=_loader())  # noqa: S506 - safe
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            line = getattr(getattr(error, "problem_mark", None), "line", None)
            where = f"line {line + 1}" if line is not None else str(error).partition("\n")[0]
            raise UsageError(
                f"{file} is neither JSON nor YAML ({where}); correct it there"
            ) from None
        if not isinstance(document, Mapping) or not ({"openapi", "swagger"} & set(document)):
            raise UsageError(
                f"{file} is not an OpenAPI description: it has neither the key openapi nor "
                "swagger; give one of OpenAPI 3 or 2.0"
            )
        version = str(document.get("openapi", document.get("swagger")))
        if not version.startswith(("3.", "2.")):
            raise UsageError(f"{file} is OpenAPI {version[:20]}; convert it to 3 or 2.0")
        if not isinstance(document.get("paths"), Mapping):
            raise UsageError(
                f"{file}: expected a mapping `paths` with the operations of the service"
            )
        self._document: Mapping[str, Any] = document
        #: References to other files, which are not read.
        self.elsewhere: set[str] = set()

    @property
    def title(self) -> str:
        """Return the title of the service, at most 100 characters; "a service" if it has none."""
        return str(self.mapping(self._document.get("info")).get("title", "a service"))[:100]

    @property
    def base(self) -> str:
        """Return the URL of the first server, without user and without "/" at its end.

        It is `http://127.0.0.1:8080` if the file gives none or an invalid one; a relative URL is
        resolved against that. Variables in it get their defaults.
        """
        servers = self._document.get("servers")
        first = self.mapping(servers[0]) if isinstance(servers, list) and servers else {}
        url = first.get("url", "")
        url = url if isinstance(url, str) else ""
        for name, variable in self.mapping(first.get("variables")).items():
            url = url.replace(f"{{{name}}}", str(self.mapping(variable).get("default", "")))
        if "swagger" in self._document:
            schemes = self._document.get("schemes")
            scheme = schemes[0] if isinstance(schemes, list) and schemes else "http"
            host, path = (str(self._document.get(key, "")) for key in ("host", "basePath"))
            url = f"{scheme}://{host}{path}" if host else path
        try:
            whole = urlsplit(urljoin(_NOWHERE, url))
        except ValueError:
            return _NOWHERE
        host = whole.netloc.rpartition("@")[2]
        if whole.scheme not in ("http", "https") or not re.fullmatch(r"[\w.:\[\]-]+", host):
            return _NOWHERE
        return f"{whole.scheme}://{host}{whole.path.rstrip('/')}"

    def operations(self) -> Iterator[ServiceOperation]:
        """Yield the operations in the order of paths in the file, and of `METHODS` within a path.

        Paths in other files are left out and noted in `elsewhere`. Raises UsageError if a path or
        an operation is not a mapping.
        """
        for path, item in self._document["paths"].items():
            resolved = self.mapping(item)
            reference = item.get("$ref") if isinstance(item, Mapping) else None
            if not resolved and item not in ({}, None) and reference not in self.elsewhere:
                wrong = f"{reference} is not there; correct the reference"
                if not isinstance(reference, str):
                    wrong = "expected a mapping of operations by method, such as get and post"
                raise UsageError(f"{self._file}: paths.{path}: {wrong}")
            for method in METHODS:
                if method in resolved:
                    yield self._operation(method, str(path), resolved)

    def mapping(self, value: Any) -> Mapping[str, Any]:
        """Return `value` if it is a mapping; if it is a reference ($ref), the mapping referred to.

        {} for others. A reference to another file is added to `elsewhere`, and gives {}.
        """
        for _ in range(_DEPTH):
            if not isinstance(value, Mapping):
                break
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self._referred(reference)
        return {}

    def _referred(self, reference: str) -> Any:
        found: Any = self._document
        if not reference.startswith("#/"):
            self.elsewhere.add(reference)
            return None
        for piece in reference[2:].split("/"):
            key = piece.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _operation(self, method: str, path: str, item: Mapping[str, Any]) -> ServiceOperation:
        operation = item[method]
        if not isinstance(operation, Mapping):
            raise UsageError(f"{self._file}: paths.{path}.{method}: expected a mapping")
        given = [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
        # parameters of the operation replace parameters of its path
        parameters = {
            (str(one.get("in")), str(one.get("name"))): one
            for one in map(self.mapping, given)
            if isinstance(one.get("name"), str) or one.get("in") == "body"
        }
        tags = _list(operation.get("tags"))
        return ServiceOperation(
            method=method.upper(),
            path=path,
            tag=str(tags[0]) if tags else "other",
            parameters=tuple(
                p for p in parameters.values() if p.get("in") not in ("body", "formData")
            ),
            bodies=self._bodies(operation, list(parameters.values())),
            answers=tuple(str(code) for code in self.mapping(operation.get("responses"))),
            security=tuple(self._security(operation)),
            lasting=_lasting(path, operation),
        )

    def _bodies(
        self, operation: Mapping[str, Any], parameters: list[Mapping[str, Any]]
    ) -> Mapping[str, Mapping[str, Any]]:
        content = self.mapping(self.mapping(operation.get("requestBody")).get("content"))
        found = {str(kind).lower(): self.mapping(body) for kind, body in content.items()}
        fields = {str(one["name"]): one for one in parameters if one.get("in") == "formData"}
        if fields:
            takes = _list(operation.get("consumes", self._document.get("consumes")))
            file = any(one.get("type") == "file" for one in fields.values())
            multipart = file or takes == ["multipart/form-data"]
            kind = "multipart/form-data" if multipart else "application/x-www-form-urlencoded"
            found[kind] = {"schema": {"type": "object", "properties": fields}}
        for one in parameters:
            if one.get("in") == "body":
                found["application/json"] = {"schema": one.get("schema", {})}
        return found

    def _security(self, operation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the security schemes, to be used together, of an operation's first alternative.

        Yields nothing if the operation needs no login; unknown schemes are skipped.
        """
        ways = _list(operation.get("security", self._document.get("security")))
        components = self.mapping(self._document.get("components"))
        known = self.mapping(components.get("securitySchemes"))
        known = known or self.mapping(self._document.get("securityDefinitions"))
        for name in self.mapping(ways[0]) if ways else ():
            if scheme := self.mapping(known.get(name)):
                yield scheme


def _lasting(path: str, operation: Mapping[str, Any]) -> str:
    """Return why an operation does not end with a response, for a list of reasons; "" if it does.

    Recognizes watches and connections of Kubernetes.
    """
    action = operation.get("x-kubernetes-action")
    if action in ("watch", "watchlist") or "watch" in path.split("/"):
        return "watches, which do not end"
    if action == "connect":
        return "connections to containers and proxies"
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _loader() -> type[yaml.SafeLoader]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
