"""Colours of the page: what is told apart by colour is told apart by readers of all kinds."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from osbench.coordinator.report.html import page_assets

#: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
#: Deficiency" (2009), severity 1: what is seen of linear RGB.
VISIONS = {
    "all": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
#: Colours of percentiles: p50 has the accent.
LINES = ("accent", "p90", "p95", "p99")


def linear(colour: str) -> Any:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(values: Any) -> Any:
    """CIE L*a*b* of linear RGB, D65."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    scaled = (to_xyz @ np.clip(values, 0, 1)) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])  # fmt: skip


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_lines_of_percentiles_stand_out_from_the_page(theme: int) -> None:
    tokens = json.loads(page_assets.text("tokens.json"))
    paper = luminance(tokens["paper"][theme])

    for name in LINES:
        high, low = sorted((luminance(tokens[name][theme]), paper), reverse=True)
        # WCAG 1.4.3: what the labels of the lines need
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_lines_of_percentiles_are_told_apart_by_the_colour_blind(theme: int, vision: str) -> None:
    tokens = json.loads(page_assets.text("tokens.json"))
    seen = {name: lab(VISIONS[vision] @ linear(tokens[name][theme])) for name in LINES}

    for one, other in itertools.combinations(LINES, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 15, (one, other)
