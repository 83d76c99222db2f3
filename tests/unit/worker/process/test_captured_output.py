"""What is printed and logged goes where it went before, and into the log book."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from osbench.worker.process.captured_output import CapturedStream, capture
from osbench.worker.session.log_book import ENTRY_CHARS, LogBook


@contextmanager
def captured() -> Iterator[tuple[LogBook, io.StringIO]]:
    """Everything is captured within the block; what stdout gets comes with the log book."""
    root = logging.getLogger()
    before = root.handlers[:], sys.stdout, sys.stderr
    # not in a fixture: pytest has streams of its own for each phase of a test
    sys.stdout, sys.stderr = out, _ = io.StringIO(), io.StringIO()
    book = LogBook()
    book.begin("r")
    try:
        capture(book)
        yield book, out
    finally:
        root.handlers, sys.stdout, sys.stderr = before


def entries(book: LogBook) -> list[tuple[str, str]]:
    return [(entry[1], entry[4]) for entry in book.take(final=True)[0]]


def test_whole_lines_are_entries() -> None:
    with captured() as (book, out):
        print("one", 2)
        print("a part", end="")
        print(" and the rest\nand more")
        sys.stderr.writelines(["to stderr\n"])

    assert entries(book) == [
        ("stdout", "one 2"),
        ("stdout", "a part and the rest"),
        ("stdout", "and more"),
        ("stderr", "to stderr"),
    ]
    assert out.getvalue() == "one 2\na part and the rest\nand more\n"


def test_the_lines_of_threads_do_not_mix() -> None:
    with captured() as (book, _):
        print("begun here ", end="")
        thread = threading.Thread(target=lambda: print("whole"))
        thread.start()
        thread.join()
        print("ended here")

    assert [text for _, text in entries(book)] == ["whole", "begun here ended here"]


def test_a_line_that_is_taken_half_way_is_not_torn() -> None:
    with captured() as (book, _):
        print("password: ", end="")
        taken = book.take()
        print("hunter22")

    assert taken == ([], 0)
    assert entries(book) == [("stdout", "password: ***")]


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    with captured() as (book, _):
        print("x" * (ENTRY_CHARS + 1), end="")

    ((_, text),) = entries(book)
    assert len(text) == ENTRY_CHARS


def test_log_records_are_entries_with_their_tracebacks() -> None:
    with captured() as (book, _):
        logging.getLogger("osbench.worker").warning("of %s", "ours")
        try:
            raise ValueError("planted")
        except ValueError:
            logging.getLogger("shop").exception("it broke")

    ours, theirs = entries(book)
    assert ours == ("WARNING", "of ours")
    assert theirs[0] == "ERROR"
    assert theirs[1].startswith("shop: it broke\nTraceback")
    assert theirs[1].endswith("ValueError: planted")


def test_what_goes_on_has_no_secrets() -> None:
    book, stream = LogBook(), io.StringIO()
    book.begin("run")
    book.hide(["planted-value"])
    captured = CapturedStream(stream, "stdout", book)

    print("it is planted-value", {"token": "planted"}, file=captured)

    assert stream.getvalue() == "it is *** {'token': '***'}\n"


def test_all_else_is_that_of_the_stream() -> None:
    stream = CapturedStream(io.TextIOWrapper(io.BytesIO(), "utf-8"), "stdout", LogBook())

    assert stream.encoding == "utf-8"
    assert stream.isatty() is False
    assert stream.write("four") == 4
