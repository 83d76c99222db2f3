"""Placeholders in arguments become the run and the iteration."""

from hypothesis import given
from hypothesis import strategies as st

from osbench.worker.engine.iteration_arguments import expander


def test_arguments_without_placeholder_are_the_same_object_each_time():
    expand = expander({"sleep": 1, "name": "a {thing} of {run}"}, "r1")

    assert expand(1) == {"sleep": 1, "name": "a {thing} of r1"}
    assert expand(1) is expand(2)


def test_iteration_is_filled_in_everywhere_and_other_braces_stay():
    args = {
        "url": "http://h/{iteration}?r={run}&x={0}",
        "json": {"list": ["{iteration}", 5, {"deep": "{iteration}{iteration}"}], "same": {"k": 1}},
        "n": 3,
    }
    expand = expander(args, "r1")

    first, second = expand(1), expand(22)

    assert first["url"] == "http://h/1?r=r1&x={0}"
    assert second["json"] == {"list": ["22", 5, {"deep": "2222"}], "same": {"k": 1}}
    assert second["json"]["same"] is first["json"]["same"]
    assert args["url"] == "http://h/{iteration}?r={run}&x={0}"


texts = st.lists(
    st.sampled_from(["{iteration}", "{run}", "{iteration", "{", "}", "run", " "]), max_size=5
).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, json_values, max_size=3), st.integers(min_value=1))
def test_expansion_is_plain_replacement(args, iteration):
    def replaced(value):
        if isinstance(value, str):
            return value.replace("{run}", "R").replace("{iteration}", str(iteration))
        if isinstance(value, dict):
            return {key: replaced(item) for key, item in value.items()}
        return [replaced(item) for item in value] if isinstance(value, list) else value

    assert expander(args, "R")(iteration) == replaced(args)
