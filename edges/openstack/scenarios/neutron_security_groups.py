"""Scenarios of Neutron's security groups and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.network_maker import Attributes
from osbench.edges.openstack.scenarios.neutron_scenario import NEEDS, NeutronScenario
from osbench.edges.openstack.scenarios.openstack_scenario import openstack

_GROUP, _RULE = "security_group", "security_group_rule"


class NeutronSecurityGroup(NeutronScenario):
    """Rally's `NeutronSecurityGroup` scenarios: security groups and their rules.

    Rules are for incoming TCP by default.
    """

    @openstack("NeutronSecurityGroup.create_and_list_security_groups", **NEEDS)
    def create_and_list_security_groups(
        self, security_group_create_args: Attributes = None
    ) -> None:
        """Create a security group, list all, and check that it is among them."""
        self.list_with(_GROUP, [self._group(security_group_create_args)])

    @openstack("NeutronSecurityGroup.create_and_show_security_group", **NEEDS)
    def create_and_show_security_group(self, security_group_create_args: Attributes = None) -> None:
        """Create a security group and get it."""
        self.show(_GROUP, self._group(security_group_create_args))

    @openstack("NeutronSecurityGroup.create_and_delete_security_groups", **NEEDS)
    def create_and_delete_security_groups(
        self, security_group_create_args: Attributes = None
    ) -> None:
        """Create a security group and delete it."""
        self.delete(_GROUP, self._group(security_group_create_args))

    @openstack("NeutronSecurityGroup.create_and_update_security_groups", **NEEDS)
    def create_and_update_security_groups(
        self,
        security_group_create_args: Attributes = None,
        security_group_update_args: Attributes = None,
    ) -> None:
        """Create a security group; change its name and the attributes in the update arguments."""
        group = self._group(security_group_create_args)
        fields = {**(security_group_update_args or {}), "name": self.new_name()}
        self.update(_GROUP, group, fields)

    @openstack("NeutronSecurityGroup.create_and_list_security_group_rules", **NEEDS)
    def create_and_list_security_group_rules(
        self,
        security_group_rules_count: int = 1,
        security_group_args: Attributes = None,
        security_group_rule_args: Attributes = None,
    ) -> None:
        """Create a security group with rules for ports 1 and up; check that the list has them."""
        group = self._group(security_group_args)
        rules = [
            self._rule(
                group,
                {
                    **(security_group_rule_args or {}),
                    "port_range_min": number,
                    "port_range_max": number,
                },
            )
            for number in range(1, security_group_rules_count + 1)
        ]
        self.list_with(_RULE, rules)

    @openstack("NeutronSecurityGroup.create_and_show_security_group_rule", **NEEDS)
    def create_and_show_security_group_rule(
        self,
        security_group_args: Attributes = None,
        security_group_rule_args: Attributes = None,
    ) -> None:
        """Create a security group with a rule, and get the rule."""
        group = self._group(security_group_args)
        self.show(_RULE, self._rule(group, security_group_rule_args or {}))

    @openstack("NeutronSecurityGroup.create_and_delete_security_group_rule", **NEEDS)
    def create_and_delete_security_group_rule(
        self,
        security_group_args: Attributes = None,
        security_group_rule_args: Attributes = None,
    ) -> None:
        """Create a security group with a rule, and delete the rule and the group."""
        group = self._group(security_group_args)
        self.delete(_RULE, self._rule(group, security_group_rule_args or {}))
        self.delete(_GROUP, group)

    def _group(self, args: Attributes) -> str:
        return self.create(_GROUP, args or {})

    def _rule(self, group: str, args: Mapping[str, Any]) -> str:
        """Create a rule, which has no name: the clean-up removes it with its group."""
        fields = {"direction": "ingress", "protocol": "tcp", **args, "security_group_id": group}
        with self.action("create", _RULE):
            return str(neutron.create(self.cloud, _RULE, fields)["id"])
