"""Several scenarios as one: what is drawn, what the parts share, and what cannot be mixed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.loading import mixed_scenario
from osbench.common.plugin.loading.mixed_scenario import MixedScenario, MixPart
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario import Scenario
from osbench.coordinator.front.cli.commands.plugin import scenario_text


class Shop(Scenario):
    @classmethod
    def warm_up(cls, context):
        context["warm"] = (context["scenario"], context["args"])

    def on_start(self):
        self.user.met = [*getattr(self.user, "met", []), "shop"]

    def look(self, item=0):
        self.verify("seen", True)
        return "look", item, self.context["warm"], self.context["iteration"]

    def ask(self, item=0):
        return "ask", item, self.context["warm"], self.context["iteration"]


class Till(Scenario):
    def __init__(self, context):
        super().__init__(context)
        self.open = True

    def on_start(self):
        self.user.met = [*getattr(self.user, "met", []), "till"]

    def buy(self):
        assert self.open
        return "buy", self.user.met


class Stall(Scenario):
    async def on_start(self):
        self.user.met = ["stall"]

    async def buy(self):
        await asyncio.sleep(0)


class Reader(Scenario):
    FILES = ("script",)

    def read(self, script):
        pass


def part(cls: type[Scenario], method: str, **more: Any) -> MixPart:
    name = f"{cls.__name__}.{method}"
    kept = {"source_hash": name, "context": {}, "check": lambda args: [f"{name}: {args}"]}
    return MixPart(name=name, cls=cls, method=method, **kept | more)


SHOP = (part(Shop, "look"), part(Shop, "ask"), part(Till, "buy"))


def given(**weights: float) -> dict[str, Any]:
    return {
        name.replace("_", "."): {"weight": weight, "args": {} if "buy" in name else {"item": 3}}
        for name, weight in weights.items()
    }


def instance(cls: type[MixedScenario], args: dict[str, Any]) -> MixedScenario:
    context: dict[str, Any] = {"args": args}
    cls.warm_up(context)
    return cls(context | {"iteration": 17})


def test_scenarios_are_drawn_by_their_weights():
    args = given(Shop_look=3, Shop_ask=1, Till_buy=1e-9)
    mix = mixed_scenario.mix_class(SHOP)

    drawn = Counter(instance(mix, args).run(**args)[0] for _ in range(4000))

    # 3 of 4, eleven standard deviations wide
    assert 2700 < drawn["look"] < 3300
    assert drawn["look"] + drawn["ask"] == 4000


def test_a_scenario_has_its_own_arguments_and_warm_up_and_the_state_of_the_iteration():
    args = given(Shop_look=1, Shop_ask=1e-9, Till_buy=1e-9)
    scenario = instance(mixed_scenario.mix_class(SHOP), args)

    assert scenario.run(**args) == ("look", 3, ("Shop.look", {"item": 3}), 17)
    assert scenario._checks == {"seen": [1, 0]}
    assert list(scenario._recorder.names.ids) == ["Shop.look"]


def test_a_virtual_user_begins_once_with_each_class():
    args = given(Shop_look=1e-9, Shop_ask=1e-9, Till_buy=1)
    scenario = instance(mixed_scenario.mix_class(SHOP), args)

    scenario.on_start()

    assert scenario.run(**args) == ("buy", ["shop", "till"])


def test_a_mix_of_coroutines_is_one():
    mix = mixed_scenario.mix_class([part(Stall, "buy")])
    args = given(Stall_buy=1)
    scenario = instance(mix, args)

    asyncio.run(scenario.on_start())
    asyncio.run(scenario.run(**args))

    assert scenario.user.met == ["stall"]
    assert list(scenario._recorder.names.ids) == ["Stall.buy"]


def test_a_mix_has_a_life_only_where_a_part_has_one():
    mix = mixed_scenario.mix_class(SHOP)

    assert mix.on_start is not Scenario.on_start
    assert mix.on_stop is Scenario.on_stop


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            [part(Shop, "look"), part(Stall, "buy")],
            "a mix needs scenarios of one kind: Shop.look is `def`, Stall.buy is `async def`",
        ),
        ([part(Shop, "look"), part(Reader, "read")], "Reader.read reads files"),
    ],
)
def test_what_cannot_be_mixed_is_refused(parts, said):
    with pytest.raises(PluginError, match=said):
        mixed_scenario.mix_class(parts)


def test_contexts_of_the_parts_are_those_of_the_mix():
    users, more = {"users": {"tenants": 1}}, {"users": {"tenants": 2}}
    one, same = part(Shop, "look", context=users), part(Till, "buy", context=users)

    assert mixed_scenario.contexts([one, same]) == users
    with pytest.raises(PluginError, match=r"Till.buy needs the context users in another way"):
        mixed_scenario.contexts([one, part(Till, "buy", context=more)])


def test_the_name_of_a_mix_finds_it():
    plugins = Plugins()

    found = plugins.scenario("Dummy.dummy + Dummy.failure")

    assert found.name == "Dummy.dummy + Dummy.failure"
    assert list(found.cls.PARTS) == ["Dummy.dummy", "Dummy.failure"]
    assert found.source_hash != plugins.scenario("Dummy.dummy").source_hash
    with pytest.raises(PluginError, match=r"no scenario 'Dummy.dumy'; did you mean Dummy.dummy"):
        plugins.scenario("Dummy.dumy + Dummy.failure")


def test_arguments_of_each_part_are_checked():
    cls = mixed_scenario.mix_class(SHOP)

    assert cls.check_arguments("run", given(Shop_look=1, Till_buy=1)) == [
        "Shop.look: {'item': 3}",
        "Shop.ask: {}",
        "Till.buy: {}",
    ]


def test_a_mix_is_described_by_its_scenarios():
    shown = scenario_text(Plugins(), "Dummy.dummy + Dummy.failure")

    assert shown.startswith("scenario Dummy.dummy\n")
    assert "\n\nscenario Dummy.failure\n" in shown
