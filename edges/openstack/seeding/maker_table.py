"""The kinds of a seed by their keys in files, in the order in which they are removed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from osbench.edges.openstack.seeding.compute_makers import SeedKeypairs, SeedServers
from osbench.edges.openstack.seeding.identity_makers import SeedProjects, SeedUsers
from osbench.edges.openstack.seeding.network_makers import (
    SeedNetworks,
    SeedPorts,
    SeedRouters,
    SeedSecurityGroups,
    SeedSubnets,
)
from osbench.edges.openstack.seeding.request_makers import SeedRequests
from osbench.edges.openstack.seeding.seed_maker import SeedMaker
from osbench.edges.openstack.seeding.storage_makers import SeedImages, SeedShares, SeedVolumes

#: Objects that use others go before them.
MAKERS: Mapping[str, type[SeedMaker]] = MappingProxyType(
    {
        maker.WORD: maker
        for maker in (
            SeedRequests,
            SeedServers,
            SeedKeypairs,
            SeedVolumes,
            SeedShares,
            SeedImages,
            SeedRouters,
            SeedPorts,
            SeedSubnets,
            SeedNetworks,
            SeedSecurityGroups,
            SeedUsers,
            SeedProjects,
        )
    }
)
