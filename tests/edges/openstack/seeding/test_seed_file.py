"""Seed files: what is in them, and every mistake with its place, before the first request."""

from __future__ import annotations

from pathlib import Path

import pytest

from osbench.common.errors import TaskError, UsageError
from osbench.coordinator.task.taskfile.args import read_args
from osbench.edges.openstack.seeding.seed_file import SeedPlan, read_seed

FULL = """
name: full
resources:
  - projects: 2
  - users: {count: 50, of: projects}
  - networks: 10
  - subnets:
  - ports: {{ population }}
  - volumes: {count: 4, size: 2}
  - volumes: {count: 2, group: big, size: 100}
  - objects: {group: policy, count: 3, service: neutron, path: qos/policies, list: policies}
"""


def read(folder: Path, text: str, file: str = "seed.yaml", **more: object) -> SeedPlan:
    path = folder / file
    path.write_text(text, "utf-8")
    return read_seed(str(path), read_args(), **more)  # type: ignore[arg-type]


def wrong(folder: Path, resources: str) -> list[str]:
    """The problems of a list of resources, each with its place."""
    with pytest.raises(TaskError) as caught:
        read(folder, f"resources: {resources}\n")
    return [str(one) for one in caught.value.problems]


def test_a_file_has_its_groups_in_order_with_the_objects_they_belong_to(tmp_path: Path) -> None:
    plan = read(tmp_path, FULL, population=1000)

    assert plan.name == "full"
    assert [(one.group, one.count, one.of) for one in plan.entries] == [
        ("project", 2, ""),
        ("user", 50, "project"),
        ("network", 10, ""),
        # one for each network
        ("subnet", 10, "network"),
        # in the only group of networks
        ("port", 1000, "network"),
        ("volume", 4, ""),
        ("big", 2, ""),
        ("policy", 3, ""),
    ]
    assert plan.planned == 1081


def test_a_file_without_name_gives_its_own(tmp_path: Path) -> None:
    plan = read(tmp_path, "resources: [{users: 1}]", "nightly-2.yaml.j2")

    assert plan.name == "nightly-2"


def test_the_name_of_the_command_line_wins(tmp_path: Path) -> None:
    assert read(tmp_path, FULL, population=1, name="other").name == "other"


@pytest.mark.parametrize(
    "name", ["Full", "-a", "a-", "a b", "ä", "a.b", "x" * 25, "", "full\nname"]
)
def test_a_name_that_resources_cannot_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--name: must be 1 to 24 small letters"):
        read(tmp_path, FULL, population=1, name=name)


def test_a_file_whose_own_name_fits_no_resource_needs_one(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"write `name: \.\.\.`; it must be 1 to 24 small letters"):
        read(tmp_path, "resources: [{users: 1}]", "My Seed.yaml")


def test_an_empty_name_is_no_default(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="name: must be 1 to 24 small letters"):
        read(tmp_path, "name: ''\nresources: [{users: 1}]")


def test_a_population_that_the_file_does_not_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--population: .* has no argument 'population'; write"):
        read(tmp_path, "resources: [{users: 1}]", population=3)


def test_a_missing_population_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="needs the task argument population"):
        read(tmp_path, FULL)
    # counts do not matter
    assert read(tmp_path, FULL, for_removal=True).name == "full"


def test_all_problems_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    found = wrong(
        tmp_path,
        """
        - port: 3
        - networks: {count: -1}
        - volumes: {count: 2, siez: 1}
        - users: true
        - images: {}
        - {routers: 1, networks: 2}
        - servers: {count: 1, image: a}
        - ports: 1.5
        """,
    )

    assert found == [
        "resources[0].port: unknown kind (did you mean ports?)",
        "resources[1].networks.count: must be at least 0, got -1",
        "resources[2].volumes.siez: unknown key (did you mean size?), got 1",
        "resources[3].users: must be a count or an object, got true; an example: {users: 100}",
        "resources[4].images: count is missing",
        "resources[5]: must be one kind with its count, such as `ports: 100`, got an object with "
        "routers, networks: begin an entry of the list for each, with a hyphen",
        "resources[6].servers: flavor is missing",
        "resources[7].ports: must be a count or an object, got 1.5: round it, as in {{ (population "
        "* 0.5) | int }}; an example: {ports: 100}",
    ]


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("[{ports: 1}]", "resources[0].ports: needs an entry of networks above it, such as"),
        ("[{networks: 0}, {ports: 1}]", "resources[1].ports: is of network, of which there are"),
        (
            "[{networks: 1}, {networks: {count: 1, group: b}}, {ports: 1}]",
            "resources[2].ports: of: several entries are networks: name the group of one, "
            "network, b",
        ),
        (
            "[{networks: 1}, {ports: {count: 1, of: netwrok}}]",
            "resources[1].ports: of: there are no netwrok above it (did you mean network?)",
        ),
        ("[{networks: 1}, {networks: 2}]", "another entry has the group 'network': give this one"),
        ("[{networks: {count: 1, of: users}}]", "resources[0].networks.of: unknown key"),
        (
            "[{networks: {count: 1, fields: {name: a, mtu: 1400}}}]",
            "resources[0].networks.fields: osbench sets name itself",
        ),
        ("[{images: {count: 1, size: big}}]", "resources[0].images.size: must be a size from 1 B"),
        ("[{images: {count: 1, size: 0}}]", "resources[0].images.size: must be a size from 1 B"),
        ("[{images: {count: 1, file: none.img}}]", "images.file: there is no file none.img"),
        ("[{networks: 1}, {subnets: {start_cidr: 10/8/8}}]", "resources[1].subnets.start_cidr: "),
        ("[{users: {count: 1, group: a-b}}]", "resources[0].users.group: must match"),
        ("[{users: 1000001}]", "resources[0].users.count: must be at most 1000000"),
        ("[]", "resources: must hold at least 1"),
        ("{networks: 1}", "resources: must be a list, got an object with networks; an example"),
    ],
)
def test_mistakes_have_place_and_remedy(tmp_path: Path, resources: str, said: str) -> None:
    (problem,) = wrong(tmp_path, resources)

    assert said in problem


def test_ports_that_do_not_fit_into_their_subnets_are_refused(tmp_path: Path) -> None:
    few = "[{networks: 10}, {subnets: {start_cidr: 10.0.0.0/24}}, {ports: 2521}]"
    enough = few.replace("2521", "2520")

    assert wrong(tmp_path, few) == [
        "resources[2].ports: 253 ports in each network need as many addresses, and its subnets "
        "have 252: give the subnets a larger start_cidr, such as 10.0.0.0/16, or make more networks"
    ]
    assert read(tmp_path, f"resources: {enough}").planned == 2540


def test_unknown_keys_of_a_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"resuorces: unknown key \(did you mean resources\?\)"):
        read(tmp_path, "resuorces: [{users: 1}]")
    with pytest.raises(TaskError, match="quotas: must be one of"):
        read(tmp_path, "resources: [{users: 1}]\nquotas: none")
