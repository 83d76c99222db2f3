"""Lines of access logs: what is read, and what is unreadable."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from osbench.edges.recordings.log_formats import JsonFormat, LogFormat, combined_format, haproxy

AT_S = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC).timestamp()


def test_combined_and_common_lines_are_read() -> None:
    block = "\n".join(
        [
            '10.0.0.1 - - [01/Mar/2026:12:00:05 +0000] "GET /a?x=1 HTTP/1.1" 200 17 "-" "curl/8"',
            '::1 - ann [x] [01/Mar/2026:12:00:05 +0000] "GET /never HTTP/1.1" 200 17',
            '10.0.0.1 - ann [01/Mar/2026:14:00:05 +0200] "POST /b HTTP/2.0" 201 -',
            'shop:443 ::1 - - [01/Mar/2026:06:30:05 -0530] "HEAD / HTTP/1.1" 304 0 "-" "a \\"b\\""',
            '10.0.0.1 - - [01/Mar/2026:12:00:05 +0000] "\\x16\\x03\\x01" 400 150 "-" "-"',
            '10.0.0.1 - - [01/Mai/2026:12:00:05 +0000] "GET /a HTTP/1.1" 200 17 "-" "-"',
            "",
            "cut off [01/Mar/2026:12:00",
        ]
    )

    lines = combined_format().read(block.encode() + b"\n")

    assert lines.requests == [b"GET /a", b"POST /b", b"HEAD /"]
    assert lines.times_us == [AT_S * 1e6] * 3
    assert lines.statuses == [200, 201, 304]
    assert lines.queries == 1
    assert lines.unreadable == [1, 4, 5, 7]


def test_quotes_of_apache_and_quoted_fields_are_read() -> None:
    start = "10.0.0.1 - - [01/Mar/2026:12:00:05 +0000]"
    lines = combined_format().read(
        "\n".join(
            [
                rf'{start} "GET /items?q=a\"b HTTP/1.1" 200 571 "-" "agent"',
                rf'{start} "GET /a\"b\\ HTTP/1.1" 200 571 "-" "agent \"x\""',
                '"10.0.0.7, 10.0.0.8" - - [01/Mar/2026:12:00:05 +0000] "GET /c HTTP/1.1" 200 5',
                r'"a [\"" ::1 "-" ann [01/Mar/2026:12:00:05 +0000] "GET /d HTTP/1.1" 200 5',
                f'{start} "GET /e HTTP/1.1" 200 5 "-" "agent" "10.0.0.7, 10.0.0.8"',
                rf'{start} "GET /cut\" 200 5',
                '"open - - [01/Mar/2026:12:00:05 +0000] GET /f HTTP/1.1" 200 5',
            ]
        ).encode()
        + b"\n"
    )

    assert lines.requests == [b"GET /items", rb"GET /a\"b\\", b"GET /c", b"GET /d", b"GET /e"]
    assert (lines.queries, lines.unreadable) == (1, [5, 6])


def test_a_block_without_faults_is_read_as_line_by_line() -> None:
    line = '10.0.0.1 - - [01/Mar/2026:12:00:{:02} +0000] "GET /{}?{} HTTP/1.1" {} 1 "-" "a"\n'
    block = "".join(line.format(k % 60, k, "q" * (k % 2), 200 + k) for k in range(90)).encode()

    whole, marred = combined_format().read(block), combined_format().read(block + b"marred\n")

    assert len(whole.requests) == 90
    assert (whole.times_us, whole.requests) == (marred.times_us, marred.requests)
    assert (whole.statuses, whole.queries) == (marred.statuses, marred.queries)
    assert (whole.unreadable, marred.unreadable) == ([], [90])


def test_lines_of_haproxy_are_read_with_milliseconds() -> None:
    block = (
        b"Mar  1 12:00:05 lb haproxy[14389]: 10.0.1.2:33317 [01/Mar/2026:12:00:05.655] http-in"
        b' static/srv1 10/0/30/69/+109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /i?n=1'
        b' HTTP/1.1"\n'
        b"10.0.1.2:33318 [01/Mar/2026:12:00:05.001] http-in~ http-in/<NOSRV> -1/-1/-1/-1/0 503 212"
        b' - - SC-- 1/1/1/1/0 0/0 "GET https://shop.example/api HTTP/2.0"\n'
        b'10.0.1.2:33318 [01/Mar/2026:12:00:05.001] http-in~ http-in/<NOSRV> 0/0 400 - "<BADREQ>"\n'
    )

    lines = haproxy().read(block)

    assert lines.requests == [b"GET /i", b"GET https://shop.example/api"]
    assert lines.times_us == [AT_S * 1e6 + 655_000, AT_S * 1e6 + 1000]
    assert lines.statuses == [200, 503]
    assert lines.unreadable == [2]


def test_requests_without_a_response_are_arrivals() -> None:
    closed = (
        b'10.0.0.1 - - [01/Mar/2026:12:00:05 +0000] "GET /a HTTP/1.1" 000 0 "-" "-"\n'
        b'10.0.0.1 - - [01/Mar/2026:12:00:05 +0000] "GET /b HTTP/1.1" 099 0 "-" "-"\n'
    )
    aborted = (
        b"10.0.1.2:33318 [01/Mar/2026:12:00:05.000] http-in static/srv1 0/0/1/-1/53 -1 0 - - CH--"
        b' 1/1/1/1/0 0/0 "GET /a HTTP/1.1"\n'
    )

    whole, marred = combined_format().read(closed), combined_format().read(closed + b"marred\n")
    lines = haproxy().read(aborted)

    assert (whole.requests, whole.statuses, whole.unreadable) == (
        [b"GET /a", b"GET /b"],
        [0, 99],
        [],
    )
    assert (marred.statuses, marred.unreadable) == ([0, 99], [2])
    assert (lines.requests, lines.statuses, lines.unreadable) == ([b"GET /a"], [0], [])


@pytest.mark.parametrize(
    "document",
    [
        # nginx, log_format escape=json
        {"msec": f"{AT_S + 0.25:.3f}", "request": "GET /a?b HTTP/1.1", "status": "200"},
        {"time_iso8601": "2026-03-01T13:00:05.250+01:00", "request_method": "GET",
         "request_uri": "/a?b", "status": 200},
        {"time_local": "01/Mar/2026:12:00:06 +0000", "request": "GET /a?b HTTP/1.1",
         "status": 200, "request_time": "0.750"},
        # Caddy
        {"ts": AT_S + 0.25, "request": {"method": "GET", "uri": "/a?b"}, "status": 200},
        # Traefik
        {"StartUTC": "2026-03-01T12:00:05.25Z", "RequestMethod": "GET", "RequestPath": "/a?b",
         "DownstreamStatus": 200},
        # Envoy, and the Elastic Common Schema
        {"start_time": "2026-03-01T12:00:05.250Z", "method": "get", "path": "/a?b",
         "response_code": 200},
        {"@timestamp": int((AT_S + 0.25) * 1000), "http": {"request": {"method": "GET"},
         "response": {"status_code": 200}}, "url": {"path": "/a?b"}},
    ],
)  # fmt: skip
def test_json_of_known_servers_is_read(document: dict[str, object]) -> None:
    lines = JsonFormat({}).read(json.dumps(document).encode() + b"\n")

    assert lines.times_us == [AT_S * 1e6 + 250_000]
    assert lines.requests == [b"GET /a"]
    assert (lines.statuses, lines.queries) == ([200], 1)


def test_fields_of_json_can_be_named() -> None:
    document = {"when": {"at": AT_S}, "verb": "PUT", "where": "/x", "time": "no"}
    names = {"time": "when.at", "method": "verb", "path": "where"}

    lines = JsonFormat(names).read(json.dumps(document).encode())

    assert (lines.times_us, lines.requests, lines.statuses) == ([AT_S * 1e6], [b"PUT /x"], [0])


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[1]",
        "null",
        '{"time": 1e400, "method": "GET", "path": "/"}',
        '{"time": "0", "method": "GET", "path": "/"}',
        '{"time": true, "method": "GET", "path": "/"}',
        '{"time": 1772366405, "method": "GET /", "path": "/ b"}',
        '{"time": 1772366405, "method": ["GET"], "path": {"a": 1}}',
        '{"time": 1772366405, "request": "GET"}',
        '{"time": {"time": []}, "request": {"method": 1}}',
        '{"time": "99/Mar/2026:12:00:05 +0000", "method": "GET", "path": "/"}',
        '{"time": NaN, "method": "GET", "path": "/"}',
        "[" * 10_000,
        "\udce4",
    ],
)
def test_json_that_is_no_request_is_unreadable(line: str) -> None:
    lines = JsonFormat({}).read(line.encode("utf-8", "surrogateescape"))

    assert (lines.requests, lines.unreadable) == ([], [0])


_TO_REQUEST = b'[01/Mar/2026:12:00:05 +0000] "GET /'
#: What took time by the square of its length, hours at this one.
HOSTILE = [
    b"[01/Mar/2026:12:00:05.1] a b 0 200 " * 20_000,
    _TO_REQUEST * 20_000,
    b'"GET /a?' * 20_000,
    b'{"time": [' * 20_000,
    b'" 200 ' * 20_000,
    _TO_REQUEST + b"a" * 400_000,
    _TO_REQUEST + b'\\"' * 200_000,
    _TO_REQUEST + b"a?" * 200_000,
    b'"a" ' * 100_000 + b'"',
    b'[01/Mar/2026:12:00:05.1] a b 0 200 "GET /' + b"a" * 400_000,
    b"[01/Mar/2026:12:00:05.1] " + b"a" * 400_000,
    b"[01/Mar/2026:12:00:05.1] a b " + b"0" * 400_000,
    b"[" * 400_000,
]


@pytest.mark.parametrize(
    "form", [combined_format(), haproxy(), JsonFormat({})], ids=lambda one: one.NAME
)
@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_lines_are_unreadable(form: LogFormat, at: int) -> None:
    lines = form.read(HOSTILE[at] + b"\n")

    assert (lines.requests, lines.unreadable) == ([], [0])
