"""Access to an OpenStack cloud, for contexts that make objects in it and remove them.

Access:

- `PerProjectContext`: base of contexts that make a number of named objects in each project
- `CloudAccess`: the cloud as its administrator and as one user of each project; prefixes of names;
  `each`, which calls a function for many objects at the same time and again after transient
  errors, as `call_each` does without a cloud; `AT_ONCE`, how many at the same time
- `Cloud`: requests to services as one user; `CloudUser`: a user that iterations act as
- `makes_users`: whether a configuration of the context `users` makes some (`NEW_USERS`);
  `chosen_users`: those of the record that it takes otherwise (`CHOSEN`)
- `load_yaml`: the value of a YAML document, within bounds of size and depth
- `expanded`: a path with a home directory in the place of ~; `read_text`: the text of a file
- `sought`: the id of an image or a flavor by its name
- `SERVICES`: the services whose API versions are known, by name
- `neutron`: lists of Neutron, address ranges of subnets, external networks; the key `NETWORKS` of
  `made`, which has the networks that iterations use, by project
- `manila_api`: creation of objects of Manila, keys of `made` for share networks and their services
- `s3_server`: access to a server of S3, its buckets, keys of `made` for both

Removal, by name:

- `remove_resources`: lists and deletes until nothing is left
- `KIND_NAMES`: what it can remove: services, and kinds of objects in them; `kinds(name)` gives the
  kinds that a name means, and `probe` checks that a kind may be listed
- `SETTLE_S`, `SETTLE_LATE_S` after killed processes or timeouts: seconds until it looks again
- `is_from_iteration`: whether an iteration of the workload gave a name
- `ErrorSearch`: the search for resources of a workload that are in error

Keys of `made`, which workers read:

- `USERS`: users of the iterations, as `CloudUser.to_dict` gives them
- `CHOICE`: how an iteration chooses its user: `RANDOM` or `ROUND_ROBIN`
- `NAMES_KEY`: the key that marks names given by iterations

Errors, besides Python's TimeoutError and ConnectionError, and those of `osbench.plugin.errors`:

- `RequestFailed`: a service sent an unexpected response; it has the `status`
- `AuthenticationFailed`: Keystone gave no token
"""

from osbench.common.deployment.service_catalogue import SERVICES
from osbench.common.files.named_files import expanded, read_text
from osbench.common.files.yaml_documents import load_yaml
from osbench.edges.openstack.common import manila_api, neutron, s3_server
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.cloud_users import (
    CHOICE,
    CHOSEN,
    NAMES_KEY,
    NEW_USERS,
    RANDOM,
    ROUND_ROBIN,
    USERS,
    CloudUser,
    chosen_users,
    makes_users,
)
from osbench.edges.openstack.common.object_lists import sought
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.common.resource_names import is_from_iteration
from osbench.edges.openstack.coordinator.cloud_access import AT_ONCE, CloudAccess, call_each
from osbench.edges.openstack.coordinator.error_search import ErrorSearch
from osbench.edges.openstack.coordinator.per_project import PerProjectContext
from osbench.edges.openstack.coordinator.resource_cleanup import (
    SETTLE_LATE_S,
    SETTLE_S,
    remove_resources,
)
from osbench.edges.openstack.coordinator.resources import KIND_NAMES, kinds, probe

__all__ = [
    "AT_ONCE",
    "CHOICE",
    "CHOSEN",
    "KIND_NAMES",
    "NAMES_KEY",
    "NEW_USERS",
    "RANDOM",
    "ROUND_ROBIN",
    "SERVICES",
    "SETTLE_LATE_S",
    "SETTLE_S",
    "USERS",
    "AuthenticationFailed",
    "Cloud",
    "CloudAccess",
    "CloudUser",
    "ErrorSearch",
    "PerProjectContext",
    "RequestFailed",
    "call_each",
    "chosen_users",
    "expanded",
    "is_from_iteration",
    "kinds",
    "load_yaml",
    "makes_users",
    "manila_api",
    "neutron",
    "probe",
    "read_text",
    "remove_resources",
    "s3_server",
    "sought",
]
