"""XML of servers, which may be hostile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.openstack.common import s3_xml
from osbench.edges.openstack.common.s3_xml import read_xml, s3_error

ERROR = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchBucket</Code>'
    b"<Message>The specified bucket\n does not exist</Message><Resource>/x</Resource></Error>"
)


def test_an_error_has_its_code_and_message() -> None:
    assert s3_error(ERROR) == "NoSuchBucket: The specified bucket does not exist"
    assert s3_error(b"<Error><Code>SlowDown</Code></Error>") == "SlowDown"
    assert len(s3_error(b"<Error><Message>" + b"x" * 5000 + b"</Message></Error>")) == 300


@pytest.mark.parametrize("other", [b"", b"oops", b"<html><body>502</body></html>", b"<Error>"])
def test_other_bodies_say_nothing(other: bytes) -> None:
    assert s3_error(other) == ""


def test_namespaces_are_left_out() -> None:
    root = read_xml(
        b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Contents><Key> a&amp;b'
        b"</Key></Contents><Contents><Key>\xc3\xbc</Key></Contents></ListBucketResult>"
    )

    assert root.name == "ListBucketResult"
    assert [one.find("Key") for one in root.all("Contents")] == ["a&b", "\xfc"]
    assert root.find("NextContinuationToken") == ""


def test_entities_are_refused() -> None:
    bomb = (
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        b"<Error><Code>&b;</Code></Error>"
    )
    outside = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><Error>&a;</Error>'

    for document in (bomb, outside, b'<!DOCTYPE x SYSTEM "http://example/x.dtd"><Error/>'):
        with pytest.raises(ValueError, match="document type"):
            read_xml(document)


def test_depth_and_size_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="levels"):
        read_xml(b"<a>" * 1000 + b"</a>" * 1000)
    monkeypatch.setattr(s3_xml, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="of XML"):
        read_xml(b"<a>" + b"x" * 100 + b"</a>")


@given(st.binary(max_size=200) | st.text("<>/&;! ae\"'=[]", max_size=100).map(str.encode))
def test_any_bytes_are_xml_or_one_error(document: bytes) -> None:
    try:
        root = read_xml(document)
    except ValueError as error:
        assert str(error)
    else:
        assert root.name
