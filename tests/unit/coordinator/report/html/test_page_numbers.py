"""Numbers of the page: three digits, a narrow space, the unit."""

from __future__ import annotations

import math

import pytest

from osbench.coordinator.report.html import page_numbers as numbers

N = numbers.NARROW


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, numbers.DASH),
        (math.nan, numbers.DASH),
        (0, f"0{N}s"),
        (7.5e-7, f"750{N}ns"),
        (12.34e-6, f"12.3{N}µs"),
        (0.28, f"280{N}ms"),
        (0.9996, f"1.00{N}s"),
        (61.04, f"61.0{N}s"),
        (754, f"12{N}min{N}34{N}s"),
        (9000, f"2{N}h{N}30{N}min"),
        (-0.002, f"-2.00{N}ms"),
        (-754, f"-12{N}min{N}34{N}s"),
        (-9000, f"-2{N}h{N}30{N}min"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(
    seconds: float | None, said: str
) -> None:
    assert numbers.time_text(seconds) == said


def test_a_unit_is_smaller_and_grey() -> None:
    assert str(numbers.time_markup(0.28)) == f'280<span class="u">{N}ms</span>'


def test_what_somebody_wrote_down_has_no_zeros_at_its_end() -> None:
    assert numbers.limit_text(0.25) == f"250{N}ms"
    assert numbers.limit_text(2.0) == f"2{N}s"
    assert numbers.limit_text(200) == f"3{N}min{N}20{N}s"


def test_shares_and_rates() -> None:
    assert numbers.percent_text(0.0215, 3) == f"2.15{N}%"
    assert numbers.percent_text(0) == f"0{N}%"
    assert numbers.percent_text(None) == numbers.DASH
    assert numbers.rate_text(18.2) == f"18.2{N}/s"
    assert numbers.whole(7012) == "7,012"


def test_sentences_of_the_program_get_spaces_before_units() -> None:
    assert numbers.spaced_text("276ms of 12s, 5 % more, a -> b") == (
        f"276{N}ms of 12{N}s, 5{N}% more, a → b"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.25, f"250{N}ms"),
        (30, f"30{N}s"),
        (185, "3:05"),
        (3723, "1:02:03"),
        (-125, "-2:05"),
        (-3723, "-1:02:03"),
    ],
)
def test_instants_are_read_off_an_axis(seconds: float, said: str) -> None:
    assert numbers.instant_s(seconds) == said
