"""Selects the requests of a recording that a task makes: by host, without images and scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urldefrag, urljoin, urlunsplit

from osbench.common.errors import UsageError
from osbench.common.plugin.request_values import address_fault
from osbench.edges.recordings.har_file import RecordedRequest

_ASSET_TYPES = (
    *("image/", "font/", "audio/", "video/", "text/css", "text/javascript"),
    *("application/javascript", "application/x-javascript", "application/ecmascript"),
    *("application/font", "application/x-font", "application/vnd.ms-fontobject"),
    *("application/wasm", "application/manifest+json", "application/vnd.apple.mpegurl"),
)
_ASSET_ENDS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp", ".css", ".js"),
    *(".mjs", ".map", ".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp3", ".mp4", ".m4a", ".m4s"),
    *(".ogg", ".wav", ".webm", ".mov", ".m3u8", ".ts", ".wasm", ".webmanifest"),
)
_ASSET_KINDS = frozenset({"image", "font", "stylesheet", "script", "media", "manifest"})
#: A redirect is followed within so many requests.
_SOON = 200
#: Hosts that a message names.
_NAMED_HOSTS = 5


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The requests of a HAR file that a task will make, and counts of the omitted ones."""

    #: Redirects are followed: a request has the response at their end.
    requests: Sequence[RecordedRequest]
    #: Scheme, host and port of the page.
    base: str
    #: How many others were left out, by the reason.
    left_out: Counter[str]
    #: All of the file, for the times at which they ended.
    everything: Sequence[RecordedRequest]


def origin(request: RecordedRequest) -> str:
    """Return SCHEME://HOST:PORT of a request's URL, without user; :PORT only if the URL has it."""
    return f"{request.url.scheme}://{request.url.netloc.rpartition('@')[2]}"


def select(
    found: Sequence[RecordedRequest], hosts: Collection[str], *, assets: bool, file: str
) -> Recording:
    """Select the requests to `hosts` from `found`; if `hosts` is empty, to the first page's host.

    A request with its redirects becomes one request. Requests that a flow cannot make are left out
    and counted by reason. `assets` keeps images, fonts, styles, scripts and media. `file` is named
    in messages. Raises UsageError if no request is left.
    """
    left_out: Counter[str] = Counter()
    web = [
        one
        for one in found
        if one.url.scheme in ("http", "https") and not address_fault(origin(one))
    ]
    left_out["not HTTP"] = len(found) - len(web)
    if not web:
        raise UsageError(
            f"{file} has no HTTP request: record the pages again, with the network panel open"
        )
    page = _page(web, hosts)
    wanted = {host.lower() for host in hosts} or {page.url.hostname or ""}
    kept: list[RecordedRequest] = []
    for one in _followed_requests(web, wanted):
        why = _reason_left_out(one, wanted, assets=assets)
        if why:
            left_out[why] += 1
        else:
            kept.append(one)
    if not kept:
        raise UsageError(f"{file} has no request to make: {_why_none(web, wanted, left_out)}")
    base = origin(page) if origin(page) in {origin(one) for one in kept} else origin(kept[0])
    return Recording(requests=kept, base=base, left_out=+left_out, everything=found)


def _why_none(
    web: Sequence[RecordedRequest], hosts: Collection[str], left_out: Counter[str]
) -> str:
    """Return why no request of `web` is left: its hosts, or reasons with counts; and an option.

    For the end of a message. `left_out`: counts by reason.
    """
    here = [one for one in web if _is_of(one, hosts)]
    if not here:
        names = Counter(one.url.hostname or "" for one in web).most_common(_NAMED_HOSTS)
        said = ", ".join(f"{name} ({count})" for name, count in names)
        return (
            f"none goes to {', '.join(sorted(hosts))}; requests by host: {said}; name one of them"
            " by --host"
        )
    why = ", ".join(f"{reason} ({count})" for reason, count in (+left_out).most_common())
    return f"left out: {why}" + ("; --with-assets keeps assets" if left_out["assets"] else "")


def _page(web: Sequence[RecordedRequest], hosts: Collection[str]) -> RecordedRequest:
    """Return the first HTML document that is not a redirect; without one, the first request.

    That is a redirect only if all are. Only requests to `hosts` are searched, unless it is empty or
    none goes there.
    """
    wanted = {host.lower() for host in hosts}
    here = [one for one in web if not wanted or _is_of(one, wanted)] or list(web)
    documents = [one for one in here if not 300 <= one.status < 400]
    for one in documents:
        if one.resource == "document" or one.response_type == "text/html":
            return one
    return (documents or here)[0]


def _is_of(one: RecordedRequest, hosts: Collection[str]) -> bool:
    return one.url.hostname in hosts or one.url.netloc.rpartition("@")[2].lower() in hosts


def _reason_left_out(request: RecordedRequest, hosts: Collection[str], *, assets: bool) -> str:
    """Return the reason why `request` is left out, such as "assets"; "" if it is not.

    Requests to other hosts than `hosts` are left out; images, styles and so on unless `assets`.
    """
    preflight = request.method == "OPTIONS" and "access-control-request-method" in dict(
        request.headers
    )
    reasons = (
        (not _is_of(request, hosts), f"of the host {request.url.hostname}"),
        (not request.status and not request.is_written, "without a response"),
        (request.cached, "served by the browser's cache"),
        (request.status == 101 or request.resource == "websocket", "WebSockets"),
        (request.response_type == "text/event-stream", "streams of events"),
        (preflight, "the browser's own OPTIONS"),
        (not assets and _is_asset(request), "assets"),
    )
    return next((why for holds, why in reasons if holds), "")


def _is_asset(one: RecordedRequest) -> bool:
    if one.method not in ("GET", "HEAD"):
        return False
    return (
        one.resource in _ASSET_KINDS
        or one.response_type.startswith(_ASSET_TYPES)
        or one.url.path.lower().endswith(_ASSET_ENDS)
    )


def _followed_requests(
    web: Sequence[RecordedRequest], hosts: Collection[str]
) -> list[RecordedRequest]:
    """Return the requests without targets of redirects, which `self.http` requests itself.

    A redirected request gets the response of its last target, and the cookies of all responses. If
    another host redirects to a host in `hosts`, the last target is returned instead.
    """
    followers: set[int] = set()
    requests = []
    for at, request in enumerate(web):
        if at in followers:
            continue
        end, cookies = at, [*request.cookies]
        while (after := _target(web, end)) is not None and after not in followers:
            end = after
            followers.add(end)
            cookies += web[end].cookies
        last = web[end]
        if not _is_of(request, hosts) and _is_of(last, hosts):
            requests.append(last)
        else:
            requests.append(
                replace(
                    request,
                    status=last.status,
                    response_type=last.response_type,
                    response_headers=last.response_headers,
                    document=last.document,
                    page=last.page,
                    cookies=tuple(cookies),
                    redirect=last.redirect,
                )
            )
    return requests


def _target(web: Sequence[RecordedRequest], at: int) -> int | None:
    """Return the index of the request to which the browser was redirected by response `at`.

    Searches the next `_SOON` requests for the URL. None if it is not among them, or the response is
    not a redirect.
    """
    one = web[at]
    if not 300 <= one.status < 400 or not one.redirect:
        return None
    try:
        target = urldefrag(urljoin(urlunsplit(one.url), one.redirect)).url
    except ValueError:
        return None
    after = range(at + 1, min(len(web), at + _SOON))
    return next((n for n in after if urldefrag(urlunsplit(web[n].url)).url == target), None)
