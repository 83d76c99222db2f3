"""Action names made up from data do not make result blocks grow without end."""

from osbench.common.plugin.atomic import NAMES_LIMIT, OTHER, Names


def test_names_beyond_the_limit_share_one() -> None:
    names = Names()

    numbers = [names.number(f"get {item}") for item in range(NAMES_LIMIT + 50)]

    assert len(names.names) == NAMES_LIMIT + 1
    assert set(numbers[NAMES_LIMIT:]) == {names.ids[OTHER]}
    assert names.number("get 7") == 7
