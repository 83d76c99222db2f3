"""Turns the requests of a HAR recording into steps of `HttpFlow.run`."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from osbench.common.errors import UsageError
from osbench.common.plugin.request_values import header_faults
from osbench.common.secrets.masking import holds_secret
from osbench.common.secrets.secret_names import (
    Place,
    is_secret,
    names_beside,
    secret_segments,
)
from osbench.coordinator.task.taskfile.flow_task import (
    Computed,
    FlowTask,
    RecordingOptions,
    WrittenStep,
    step_name,
)
from osbench.edges.recordings.har_file import Pairs, RecordedRequest, is_json, read_har
from osbench.edges.recordings.har_selection import Recording, origin, select
from osbench.edges.recordings.recorded_groups import grouped_steps
from osbench.edges.recordings.recorded_parts import MULTIPART, recorded_parts
from osbench.edges.recordings.response_values import ResponseValues, is_id
from osbench.edges.recordings.secret_arguments import (
    KnownSecrets,
    Parts,
    SecretArguments,
    joined_string,
    literal,
)

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"})
_FORM = "application/x-www-form-urlencoded"
#: Headers that the browser, or our own client, makes by itself.
_OWN_HEADERS = re.compile(
    r"^(:.*|host|connection|keep-alive|content-length|user-agent|cookie|origin|referer|accept-.*"
    r"|sec-.*|if-.*|cache-control|pragma|dnt|te|trailer|transfer-encoding|upgrade.*|priority"
    r"|proxy-.*|x-client-data|range|expect|x-osbench-.*)$"
)
#: Seconds: shorter waits are not the user's, longer ones are cut.
_LEAST_THINK_S, _MOST_THINK_S = 0.3, 60.0
_SCHEME = re.compile(r"(?i)(bearer|basic|token|digest|negotiate|apikey)\s+(\S.*)")
#: Hosts that a comment names.
_NAMED_HOSTS = 8
#: Cookies without a digit are secrets if they have twice as many characters.
_SEARCHED = KnownSecrets.LEAST
#: Shorter ones are known by their names only, and so are words, such as `admin`: a user, a role
#: and a part of a path have them, too, and do not say that they are a password elsewhere.
_LEAST_SECRET = 4
_WORD = re.compile(r"[A-Za-z]?[a-z]{0,11}")


class _NotSent(ValueError):
    """Raised if `HttpFlow.run` cannot make a request; the message is the reason."""


class _NoBody(_NotSent):
    """Raised if a request's body is not in the recording; the message has how to add a step."""


def read_task(file: str, options: RecordingOptions) -> FlowTask:
    """Read a HAR file and return a task that makes its requests; the reader "har" for `init`.

    `options` selects hosts and assets. Raises UsageError if the file is not a HAR file, or has no
    request that a flow can make.
    """
    recording = select(read_har(file), options.hosts, assets=options.assets, file=file)
    return task_of(recording, file)


def task_of(recording: Recording, file: str) -> FlowTask:
    """Return a task that makes the requests of a recording, one step each; `file` is its origin.

    Secrets become task arguments; values of earlier responses are saved and inserted. Raises
    UsageError if the flow could make none of the requests.
    """
    return _Steps(recording).task(file)


class _Steps:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._arguments = SecretArguments()
        self._values = ResponseValues()
        #: Names of secrets by value, for values that are secrets wherever they stand.
        self._secrets = {
            value: name
            for one in recording.everything
            for name, value in _secrets_of(one)
            if len(value) >= _LEAST_SECRET and not _WORD.fullmatch(value)
        }
        self._known = KnownSecrets(self._secrets)

    def task(self, file: str) -> FlowTask:
        """Convert all requests to steps and return the task; to be called once.

        Requests that a flow cannot make become notes and are counted in `left_out`. `file`: its
        origin. Raises UsageError if no request can be made.
        """
        made: list[WrittenStep] = []
        left_out = Counter(self._recording.left_out)
        thinks = _thinks(self._recording)
        for at, (one, think_s) in enumerate(zip(self._recording.requests, thinks, strict=True)):
            try:
                step = self._step(one)
            except _NotSent as error:
                shown = f"{_shown_request(one)}, whose body is not in the recording"
                left_out[shown if isinstance(error, _NoBody) else str(error)] += 1
                step = WrittenStep(keys=None, notes=[f"left out: {_shown_request(one)}: {error}"])
            else:
                self._values.add(at, one)
            if think_s and step.keys is not None:
                step.keys["think"] = min(think_s, _MOST_THINK_S)
                if think_s > _MOST_THINK_S:
                    step.notes.append(f"recorded think time: {think_s:g} s")
            made.append(step)
        for at, saved in self._values.saves.items():
            keys = made[at].keys
            assert keys is not None
            think = keys.pop("think", None)
            keys["save"] = dict(saved)
            if think is not None:
                keys["think"] = think
        task = FlowTask(
            notes=self._hosts_left_out(),
            title=f"Recorded requests to {self._recording.base}",
            origin=file,
            base=self._recording.base,
            steps=grouped_steps(self._recording.requests, made),
            arguments=self._arguments.hints,
            left_out=left_out,
        )
        if not task.made():
            raise UsageError(
                f"{file} has no request that a flow can make: {task.omissions()}; record others"
            )
        return task

    def _hosts_left_out(self) -> list[str]:
        """Return a note for the task with the options `--host` that keep requests of all hosts.

        Empty if requests of no other host were left out, or there are more than `_NAMED_HOSTS`
        hosts.
        """
        of = "of the host "
        left_out = [one.removeprefix(of) for one in self._recording.left_out if one.startswith(of)]
        here = dict.fromkeys(one.url.hostname or "" for one in self._recording.requests)
        names = [name for name in (*here, *left_out) if re.fullmatch(r"[\w.:-]+", name)]
        if not left_out or len(names) > _NAMED_HOSTS:
            return []
        options = " ".join(f"--host {name}" for name in names)
        return [f"To keep requests of all hosts: init {options}"]

    def _step(self, one: RecordedRequest) -> WrittenStep:
        if one.method not in _METHODS:
            raise _NotSent(f"the method {one.method}")
        notes: list[str] = []
        path, shown = self._path(one)
        keys: dict[str, Any] = {"name": _name(one, shown)}
        if one.method != "GET":
            keys["method"] = one.method
        keys["path"] = path
        if query := self._pairs(one, parse_qsl(one.url.query, keep_blank_values=True)):
            keys["query"] = query
        keys |= self._body(one, notes)
        if headers := self._headers(one):
            keys["headers"] = headers
        if 300 <= one.status < 400 and one.status != 304:
            notes.append(f"was redirected ({one.status}); the redirect is followed")
        elif one.status:
            keys["expect"] = 200 if one.status == 304 else one.status
        return WrittenStep(keys=keys, notes=notes)

    def _path(self, one: RecordedRequest) -> tuple[str | Computed, str]:
        """Return a request's path as the step requests it, and as the step's name shows it.

        The former is an absolute URL if the origin is not the base; saved values, and arguments for
        secrets, are inserted. The latter has [id] for ids and inserted parts.
        """
        here = origin(one)
        parts: Parts = [] if here == self._recording.base else [here]
        before, shown = "", []
        pieces = one.url.path.split("/")
        for number, (piece, secret) in enumerate(zip(pieces, _secret_pieces(pieces), strict=True)):
            parts.append("/" if number else "")
            plain = unquote(piece)
            name = f"{before}_token" if secret else before
            found = self._parts(plain, name, secret=secret, named=False)
            # what is recorded keeps its own escapes
            same = found == [literal(plain)]
            parts += [quote(piece, safe="%!$&'()*+,;=:@~")] if same else found
            before = plain if not is_id(plain) else before
            shown.append(plain if same and not is_id(plain) else "[id]")
        return joined_string(parts) or "/", "/".join(shown)

    def _pairs(self, one: RecordedRequest, pairs: Pairs) -> dict[str, Any]:
        """Return the pairs of a query or form as a mapping; saved values, arguments are inserted.

        A name that occurs several times has a list of values. Raises _NotSent for a name with a
        placeholder.
        """
        found: dict[str, Any] = {}
        for (name, value), secret in zip(pairs, _secret_pairs(one, pairs), strict=True):
            _check_name(name)
            made = joined_string(self._parts(value, name, secret=secret))
            if name in found:
                before = found[name] if isinstance(found[name], list) else [found[name]]
                found[name] = [*before, made]
            else:
                found[name] = made
        return found

    def _body(self, one: RecordedRequest, notes: list[str]) -> dict[str, Any]:
        if not one.body_type and not one.body:
            if one.body_bytes and one.method not in ("GET", "HEAD"):
                raise _NoBody(_missing(one))
            return {}
        if is_json(one.body_type):
            try:
                document = json.loads(one.body)
                # numbers that are not finite are none of JSON
                json.dumps(document, allow_nan=False)
            except (ValueError, RecursionError):
                raise _NotSent("its type is JSON, but not its body") from None
            return {"json": self._document(document, "", depth=0)}
        if one.body_type == _FORM:
            pairs = parse_qsl(one.body, keep_blank_values=True) if one.body else one.fields
            if form := self._pairs(one, pairs):
                return {"form": form}
        if one.body_type == MULTIPART and (one.body or one.parts):
            return {"multipart": self._multipart(one, notes)}
        raise _NotSent(
            f"its body is {_kind(one.body_type)}, a flow sends JSON, forms and multipart"
        )

    def _multipart(self, one: RecordedRequest, notes: list[str]) -> dict[str, Any]:
        """Return the parts of a multipart body by name; a list for a repeated name.

        A file whose content is missing or not printable gets a size in bytes instead, and a note in
        `notes`. Raises _NotSent if the body is not multipart, or a name has a placeholder.
        """
        try:
            parts = recorded_parts(one.body) if one.body else list(one.parts)
        except ValueError as error:
            raise _NotSent(f"its type is {MULTIPART}, but not its body: {error}") from None
        missing = one.body_bytes - len(one.body.encode())
        unknown = [part for part in parts if part.filename and not part.content]
        found: dict[str, Any] = {}
        for part in parts:
            _check_name(part.name)
            if part.filename is None:
                hidden = is_secret(part.name, part.content, Place.QUERY)
                made: Any = joined_string(self._parts(part.content, part.name, secret=hidden))
            else:
                made = {"filename": joined_string(self._parts(part.filename, "filename"))}
                if part.kind:
                    made["type"] = part.kind
                if part.content and part.content.isprintable() and "\ufffd" not in part.content:
                    made["content"] = joined_string(self._parts(part.content, part.name))
                else:
                    size = missing if len(unknown) == 1 and missing > 0 else len(part.content)
                    made["size"] = size
                    notes.append(
                        f"the recording does not have the file {_shown_text(part.filename)!r}:"
                        f" {size} bytes are sent for it; content or base64 instead of size sends"
                        " others"
                    )
            before = found.get(part.name)
            if part.name in found:
                made = [*(before if isinstance(before, list) else [before]), made]
            found[part.name] = made
        return found

    def _document(self, value: Any, name: str, *, depth: int, secret: bool = False) -> Any:
        if depth > 50:
            raise _NotSent("its body is nested too deeply")
        secret = secret or is_secret(name, value)
        if isinstance(value, dict):
            for key in value:
                _check_name(key)
            return {
                key: self._document(inner, key, depth=depth + 1, secret=secret)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._document(one, name, depth=depth + 1, secret=secret) for one in value]
        if isinstance(value, str):
            return joined_string(self._parts(value, name, secret=secret, typed=True))
        if isinstance(value, int | float) and not isinstance(value, bool):
            saved = self._values.source(value, name, typed=True)
            if saved:
                return f"{{saved.{saved}}}"
            if secret:
                argument = self._arguments.of(str(value), name, f"{name}, a number")
                return Computed(f"{argument.name} | tojson")
            self._values.sent(value)
        return value

    def _headers(self, one: RecordedRequest) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in one.headers:
            known = value.isprintable() and not any(header_faults({name: value}))
            if not known or _OWN_HEADERS.match(name):
                continue
            if name == "content-type" and (
                not one.body_type or one.body_type in ("application/json", _FORM, MULTIPART)
            ):
                continue
            if name == "accept" and ("," in value or value == "*/*"):
                continue
            _check_name(name)
            found[name.title()] = joined_string(self._parts(value, name))
        return found

    def _parts(
        self,
        value: str,
        name: str,
        *,
        secret: bool = False,
        typed: bool = False,
        named: bool = True,
    ) -> Parts:
        """Split a string that a request sends into literals, `{saved.NAME}`, arguments for secrets.

        `name`: under which it is sent. `secret`: the string is known to be secret; `named`: `name`
        may show that it is. `typed`: a saved value must be a string, too. Remembers a string as
        sent that is one literal or one secret.
        """
        scheme = _SCHEME.fullmatch(value)
        head, rest = (f"{scheme[1]} ", scheme[2]) if scheme else ("", value)
        saved = self._values.source(rest, name, typed=typed)
        if saved:
            return [head, f"{{saved.{saved}}}"] if head else [f"{{saved.{saved}}}"]
        if rest in self._secrets or secret or holds_secret(name if named else "", rest):
            wanted = self._secrets.get(rest, name)
            wanted = f"{scheme[1]}_token" if scheme and wanted == "authorization" else wanted
            hint = f"{wanted}, as in the request {_shown_text(name)!r}"
            self._values.sent(rest)
            found: Parts = [self._arguments.of(rest, wanted, hint)]
            return [head, *found] if head else found
        pieces = list(self._known.split(value))
        if value and len(pieces) == 1:
            self._values.sent(value)
        parts: Parts = []
        for before, known in pieces:
            parts.append(literal(before))
            if known:
                hint = self._secrets[known]
                parts.append(self._arguments.of(known, hint, hint))
        return parts


def _kind(media_type: str) -> str:
    return re.sub(r"[^\w./+-]", "", media_type) or "unknown type"


def _missing(one: RecordedRequest) -> str:
    """Return why a request without a recorded body is left out, and how to add a step by hand."""
    kind = _kind(dict(one.headers).get("content-type", "").partition(";")[0].strip().lower())
    part = "{NAME: {filename: ..., type: ..., size: BYTES}}"
    add = f"multipart: {part}" if kind == MULTIPART else "json or form"
    return (
        f"the recording does not have its body ({one.body_bytes} bytes of {kind}): add a step with"
        f" method: {one.method}, path and {add}"
    )


def _check_name(name: str) -> None:
    """Raise _NotSent if `name` has a part that `HttpFlow` would take for a placeholder, as {a."""
    if re.search(r"\{[A-Za-z_]", name):
        raise _NotSent("a name in it has braces, which a flow fills in")


def _shown_request(one: RecordedRequest) -> str:
    """Return method and path of a request for messages; ids and possible secrets are [id]."""
    pieces = one.url.path.split("/")
    path = "/".join(
        "[id]" if secret or is_id(part) or holds_secret("", part) else part
        for part, secret in zip(pieces, _secret_pieces(pieces), strict=True)
    )
    return f"{_shown_text(one.method)} {_shown_text(path)}"


def _shown_text(text: str) -> str:
    return re.sub(r"[^\w ./:+-]", "_", text)[:60]


def _name(one: RecordedRequest, path: str) -> str:
    """Return a step's name: method, `path`, and the operation's name of a GraphQL request."""
    shown = step_name(one.method, path)
    operation = re.search(r'"operationName"\s*:\s*"(\w{1,60})"', one.body)
    return f"{shown} {operation[1]}" if operation else shown


def _thinks(recording: Recording) -> Iterator[float]:
    """Yield for each request the seconds of think time until the next, to 0.1; 0 for the last.

    It is the time from the latest end of all requests that began before, also omitted ones, to the
    next request's start. Times up to `_LEAST_THINK_S`, or unknown ones, count as 0.
    """
    kept = recording.requests
    spans = [
        (one.started_at, one.started_at + one.took_s)
        for one in recording.everything
        if one.started_at is not None
    ]
    at, latest = 0, 0.0
    for after in kept[1:]:
        begin = after.started_at
        if begin is None:
            yield 0.0
            continue
        while at < len(spans) and spans[at][0] < begin:
            latest = max(latest, spans[at][1])
            at += 1
        gap = begin - latest if latest else 0.0
        yield round(gap, 1) if gap > _LEAST_THINK_S else 0.0
    yield 0.0


def _secrets_of(one: RecordedRequest) -> Iterator[tuple[str, str]]:
    """Yield name and value of each secret in a request and its response.

    Searches headers, cookies, URL (also path and password), form, and JSON bodies of both.
    """
    for name, value in one.headers:
        if name == "cookie":
            yield from _cookies(value.split(";"))
        elif is_secret(name, value):
            scheme = _SCHEME.fullmatch(value)
            yield name, scheme[2] if scheme else value
            if scheme and scheme[1].lower() == "basic":
                yield from _basic(scheme[2])
    for name, value in one.response_headers:
        if name == "set-cookie":
            yield from _cookies(line.partition(";")[0] for line in value.splitlines())
        elif is_secret(name, value):
            yield name, value
    user = one.url.username, one.url.password
    yield from (("password", unquote(part)) for part in user[1:] if part)
    form = parse_qsl(one.body) if one.body_type == _FORM else []
    for pairs in (parse_qsl(one.url.query), one.fields, form):
        secret = _secret_pairs(one, pairs)
        yield from (pair for pair, is_one in zip(pairs, secret, strict=True) if is_one)
    if is_json(one.body_type):
        with contextlib.suppress(ValueError, RecursionError):
            yield from _secret_texts(json.loads(one.body), "", depth=0)
    yield from (pair for pair in _secret_texts(one.document, "", depth=0) if pair[0] != "key")
    before, pieces = "", one.url.path.split("/")
    for piece, is_one in zip(pieces, _secret_pieces(pieces), strict=True):
        if is_one:
            yield f"{before}_token", unquote(piece)
        elif not is_id(piece):
            before = piece


def _secret_pieces(pieces: list[str]) -> list[bool]:
    """Return for each part of a path, in order, whether it is a secret."""
    return secret_segments([unquote(piece) for piece in pieces])


def _secret_pairs(one: RecordedRequest, pairs: Pairs) -> list[bool]:
    """Return for each parameter of a query or a form, in order, whether its value is a secret.

    An empty value is not.
    """
    beside = names_beside((name for name, _ in pairs), one.url.path)
    return [bool(value) and is_secret(name, value, Place.QUERY, beside) for name, value in pairs]


def _cookies(cookies: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each cookie (NAME=VALUE) that is long enough for a secret.

    That is `_SEARCHED` characters with a digit, or twice as many without. Each is yielded as it is,
    and again with the value URL-decoded.
    """
    for cookie in cookies:
        name, _, value = cookie.strip().partition("=")
        if len(value) >= 2 * _SEARCHED or (len(value) >= _SEARCHED and re.search(r"\d", value)):
            yield name, value
            yield name, unquote(value)


def _basic(credentials: str) -> Iterator[tuple[str, str]]:
    try:
        user, _, password = base64.b64decode(credentials).decode().partition(":")
    except (ValueError, binascii.Error):
        return
    if user and password:
        yield "password", password


def _secret_texts(
    value: Any, name: str, *, depth: int, secret: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each secret string in a JSON document, down to 50 levels.

    `name`: key of `value`; `secret`: it is below a secret key. All strings below a secret key count
    as secret, under that key.
    """
    if depth > 50:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            below = name if secret else key
            hidden = secret or is_secret(key, inner)
            yield from _secret_texts(inner, below, depth=depth + 1, secret=hidden)
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_texts(inner, name, depth=depth + 1, secret=secret)
    elif isinstance(value, str) and value and secret:
        yield name, value
