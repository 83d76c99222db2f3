"""Runs of equal siblings, and the rows that are shown of many."""

from __future__ import annotations

from osbench.edges.traces.output.equal_siblings import SHOWN, chosen_rows, folds, parents


def test_the_row_around_a_row_is_the_last_one_that_is_less_deep() -> None:
    assert parents([0, 1, 2, 2, 1, 2]) == [-1, 0, 1, 1, 0, 4]


def test_three_equal_siblings_in_a_row_are_a_fold_with_all_within_them() -> None:
    #        root a  x  a  a  b  a  a
    depths = [0, 1, 2, 1, 1, 1, 1, 1]
    keys = "raxaabaa"

    assert folds(parents(depths), keys) == [-1, 0, 0, 0, 0, -1, -1, -1]


def test_folds_of_several_parents_stand_apart_and_hold_no_further_ones() -> None:
    #         r  a  c  c  c  a  a  b  c  c  c
    depths = [0, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]

    found = folds(parents(depths), "racccaabccc")

    assert found == [-1, 0, 0, 0, 0, 0, 0, -1, 1, 1, 1]


def test_a_fold_leaves_room_for_others() -> None:
    depths = [0, *[1] * 1000, 1]
    keys = ["root", *["step"] * 1000, "other"]
    around = parents(depths)

    found = chosen_rows(range(len(depths)), around, folds(around, keys), 200)

    assert {0, 1001} <= found
    assert len(found) == 2 + SHOWN


def test_few_rows_are_all_shown() -> None:
    around = parents([0, *[1] * 99])

    assert chosen_rows(range(100), around, folds(around, ["s"] * 100), 100) == set(range(100))
