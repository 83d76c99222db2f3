"""Virtual users in stages."""

import jsonschema
import pytest

from osbench.common.plugin.runner import Totals
from osbench.coordinator.plugins.runners.user_stages import StagedUsers

CLIMB = StagedUsers(
    {
        "stages": [
            {"duration": 10, "users": 20},
            {"duration": 5, "users": 20},
            {"duration": 0, "users": 0},
            {"duration": 5, "users": 0},
            {"duration": 0, "users": 7},
            {"duration": 5, "users": 2},
        ]
    }
)


@pytest.mark.parametrize(
    ("elapsed_s", "users"),
    [
        (-0.3, 0),
        (0, 0),
        (0.25, 1),
        (5, 10),
        (9.99, 20),
        (12, 20),
        (15, 0),
        (19.9, 0),
        (20, 7),
        (22.5, 5),
        (25, 2),
        (99, 2),
    ],
)
def test_users_climb_stay_pause_and_fall(elapsed_s, users):
    assert CLIMB.users(elapsed_s) == users
    step = CLIMB.step(elapsed_s, Totals(allotted=0, settled=0), [8, 8, 8])
    assert sum(step.users) == users
    assert max(step.users) - min(step.users) <= 1


def test_the_load_ends_with_the_last_stage_once_all_is_settled():
    assert CLIMB.lasts_s == 25
    assert CLIMB.step(24.9, Totals(allotted=9, settled=9), [8]).stop_s == 25
    assert not CLIMB.step(24.9, Totals(allotted=9, settled=9), [8]).done
    assert not CLIMB.step(25, Totals(allotted=9, settled=8), [8]).done
    assert CLIMB.step(25, Totals(allotted=9, settled=9), [8]).done


def test_as_many_users_are_carried_as_any_instant_asks_for():
    jump = StagedUsers(
        {
            "stages": [
                {"duration": 0, "users": 90},
                {"duration": 0, "users": 5},
                {"duration": 1, "users": 3},
            ]
        }
    )

    assert CLIMB.concurrency == 20
    assert jump.concurrency == 5
    assert CLIMB.planned is None


def test_charts_show_the_stages():
    assert CLIMB.asked()[:4] == [(0.0, 0.0), (10.0, 20.0), (15.0, 20.0), (15.0, 0.0)]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"stages": []},
        {"stages": [{"duration": 1}]},
        {"stages": [{"duration": 1, "target": 1}]},
        {"stages": [{"duration": 1, "users": 1.5}]},
        {"stages": [{"duration": 1, "users": -1}]},
        {"stages": [{"duration": -1, "users": 1}]},
        {"stages": [{"duration": 1, "users": 10**9}]},
        {"stages": [{"duration": 1, "users": 1}], "times": 3},
    ],
)
def test_the_schema_refuses(config):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, StagedUsers.CONFIG_SCHEMA)


@pytest.mark.parametrize(
    "stages",
    [
        [{"duration": 0, "users": 5}],
        [{"duration": 5, "users": 0}],
        [{"duration": 0, "users": 5}, {"duration": 0, "users": 0}, {"duration": 5, "users": 0}],
    ],
)
def test_stages_without_a_user_at_any_time_are_refused(stages):
    (problem,) = StagedUsers.check({"stages": stages})

    assert "no virtual user at any time" in problem


def test_stages_with_users_are_accepted():
    assert StagedUsers.check(CLIMB.config) == []
