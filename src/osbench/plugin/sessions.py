"""HTTP for plug-ins of the coordinator.

- `bounded_session()`: a `requests.Session` whose exchanges are limited: 64 MiB of a response, 120 s
- `download(url, file)`: writes the body of a URL to a file, limited in time and bytes
- `read_json(text, most_values)`: parses JSON of others, without numbers beyond floats
"""

from osbench.common.files.foreign_json import read_json
from osbench.common.network.bounded_adapter import bounded_session
from osbench.common.network.download import download

__all__ = ["bounded_session", "download", "read_json"]
