"""Scenarios of Neutron's firewalls (FWaaS v2): rules, policies and groups."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.network_maker import Attributes
from osbench.edges.openstack.scenarios.neutron_scenario import NEEDS, NeutronScenario
from osbench.edges.openstack.scenarios.openstack_scenario import openstack

#: Attributes of a rule that the task does not give: Rally's.
_RULE: Mapping[str, Any] = MappingProxyType(
    {
        "protocol": "tcp",
        "action": "allow",
        "destination_port": "22",
        "ip_version": 4,
        "enabled": True,
    }
)


class NeutronFWaaS(NeutronScenario):
    """Rally's `NeutronFWaaS` scenarios: create, list, change and delete rules, policies, groups.

    A rule allows TCP to port 22, unless its arguments say otherwise.
    """

    def _create_rule(self, firewall_rule_create_args: Attributes = None) -> str:
        return self.create("firewall_rule", {**_RULE, **(firewall_rule_create_args or {})})

    def _create_policy(self, firewall_policy_create_args: Attributes = None) -> str:
        return self.create("firewall_policy", firewall_policy_create_args or {})

    def _create_group(self, firewall_group_create_args: Attributes = None) -> str:
        return self.create("firewall_group", firewall_group_create_args or {})

    @openstack("NeutronFWaaS.create_and_list_firewall_rules", takes=_create_rule, **NEEDS)
    def create_and_list_firewall_rules(self, **kwargs: Any) -> None:
        """Create a firewall rule, list all, and check that it is among them."""
        self.list_with("firewall_rule", [self._create_rule(**kwargs)])

    @openstack("NeutronFWaaS.create_and_delete_firewall_rules", takes=_create_rule, **NEEDS)
    def create_and_delete_firewall_rules(self, **kwargs: Any) -> None:
        """Create a firewall rule and delete it."""
        self.delete("firewall_rule", self._create_rule(**kwargs))

    @openstack("NeutronFWaaS.create_and_update_firewall_rules", takes=_create_rule, **NEEDS)
    def create_and_update_firewall_rules(
        self, firewall_rule_update_args: Attributes = None, **kwargs: Any
    ) -> None:
        """Create a firewall rule; change its name, and the attributes of the update."""
        self._update("firewall_rule", self._create_rule(**kwargs), firewall_rule_update_args)

    @openstack("NeutronFWaaS.create_and_list_firewall_policies", takes=_create_policy, **NEEDS)
    def create_and_list_firewall_policies(self, **kwargs: Any) -> None:
        """Create a firewall policy, list all, and check that it is among them."""
        self.list_with("firewall_policy", [self._create_policy(**kwargs)])

    @openstack("NeutronFWaaS.create_and_delete_firewall_policies", takes=_create_policy, **NEEDS)
    def create_and_delete_firewall_policies(self, **kwargs: Any) -> None:
        """Create a firewall policy and delete it."""
        self.delete("firewall_policy", self._create_policy(**kwargs))

    @openstack("NeutronFWaaS.create_and_update_firewall_policies", takes=_create_policy, **NEEDS)
    def create_and_update_firewall_policies(
        self, firewall_policy_update_args: Attributes = None, **kwargs: Any
    ) -> None:
        """Create a firewall policy; change its name, and the attributes of the update."""
        self._update("firewall_policy", self._create_policy(**kwargs), firewall_policy_update_args)

    @openstack("NeutronFWaaS.create_policy_add_and_remove_rules", takes=_create_policy, **NEEDS)
    def create_policy_add_and_remove_rules(
        self, firewall_rule_create_args: Attributes = None, **kwargs: Any
    ) -> None:
        """Create a firewall policy and a rule, insert the rule into the policy and remove it."""
        path = neutron.path_of("firewall_policy", self._create_policy(**kwargs))
        body = {"firewall_rule_id": self._create_rule(firewall_rule_create_args)}
        for change, ending in (("insert", "in_policy"), ("remove", "from_policy")):
            with ActionTimer(self, f"neutron.{change}_firewall_rule_{ending}"):
                self.cloud.document("PUT", neutron.SERVICE, f"{path}/{change}_rule", json=body)

    @openstack("NeutronFWaaS.create_and_list_firewall_groups", takes=_create_group, **NEEDS)
    def create_and_list_firewall_groups(self, **kwargs: Any) -> None:
        """Create a firewall group, list all, and check that it is among them."""
        self.list_with("firewall_group", [self._create_group(**kwargs)])

    @openstack("NeutronFWaaS.create_and_delete_firewall_groups", takes=_create_group, **NEEDS)
    def create_and_delete_firewall_groups(self, **kwargs: Any) -> None:
        """Create a firewall group and delete it."""
        self.delete("firewall_group", self._create_group(**kwargs))

    @openstack("NeutronFWaaS.create_and_update_firewall_groups", takes=_create_group, **NEEDS)
    def create_and_update_firewall_groups(
        self, firewall_group_update_args: Attributes = None, **kwargs: Any
    ) -> None:
        """Create a firewall group; change its name, and the attributes of the update."""
        self._update("firewall_group", self._create_group(**kwargs), firewall_group_update_args)

    def _update(self, kind: str, identity: str, changes: Attributes) -> None:
        self.update(kind, identity, {**(changes or {}), "name": self.new_name()})
