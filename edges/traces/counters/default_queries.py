"""Default queries for the metrics of exporters of hosts, MySQL, RabbitMQ and memcached.

The exporters are prometheus/node_exporter, prometheus/mysqld_exporter,
prometheus/memcached_exporter and the plug-in rabbitmq_prometheus.
"""

from __future__ import annotations

from osbench.coordinator.results.accounting.counter_figures import SHARE_UNIT, CounterKind
from osbench.edges.traces.counters.counter_query import CounterQuery

_QUEUE = CounterKind.QUEUE


def _share(name: str, query: str) -> CounterQuery:
    return CounterQuery(name=name, query=query, kind=CounterKind.SHARE, unit=SHARE_UNIT)


def _link(direction: str) -> CounterQuery:
    return _share(
        f"network link {direction}",
        f'max by (instance) (rate(node_network_{direction}_bytes_total{{device!="lo"}}[$window])'
        " / (node_network_speed_bytes > 0))",
    )


def _pressure(of: str) -> CounterQuery:
    return CounterQuery(
        name=f"{of} pressure",
        query=(
            f"max by (instance) (rate(node_pressure_{of.lower()}_waiting_seconds_total[$window]))"
        ),
        kind=_QUEUE,
        unit=SHARE_UNIT,
    )


def _network(direction: str) -> CounterQuery:
    return CounterQuery(
        name=f"network {direction}",
        query=(
            f"sum by (instance) (rate(node_network_{direction}_bytes_total"
            '{device!="lo"}[$window]))'
        ),
        unit="bytes/s",
    )


DEFAULT_QUERIES: tuple[CounterQuery, ...] = (
    _share(
        "CPU",
        '1 - sum by (instance) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[$window]))'
        " / sum by (instance) (rate(node_cpu_seconds_total[$window]))",
    ),
    _share(
        "memory",
        "1 - max by (instance) (node_memory_MemAvailable_bytes)"
        " / max by (instance) (node_memory_MemTotal_bytes)",
    ),
    # of the busiest disk
    _share("disk", "max by (instance) (rate(node_disk_io_time_seconds_total[$window]))"),
    # of the busiest interface whose speed is known: that of most virtual ones is not
    _link("transmit"),
    _link("receive"),
    _share(
        "MySQL connections",
        "max by (instance) (mysql_global_status_threads_connected)"
        " / max by (instance) (mysql_global_variables_max_connections)",
    ),
    _share(
        "RabbitMQ memory",
        "max by (instance) (rabbitmq_process_resident_memory_bytes)"
        " / max by (instance) (rabbitmq_resident_memory_limit_bytes)",
    ),
    _share(
        "memcached connections",
        "max by (instance) (memcached_current_connections)"
        " / max by (instance) (memcached_max_connections)",
    ),
    _pressure("CPU"),
    _pressure("IO"),
    _pressure("memory"),
    CounterQuery(
        name="MySQL threads running",
        query="max by (instance) (mysql_global_status_threads_running)",
        kind=_QUEUE,
    ),
    CounterQuery(
        name="MySQL row lock waits",
        query="sum by (instance) (rate(mysql_global_status_innodb_row_lock_waits[$window]))",
        kind=_QUEUE,
        unit="/s",
    ),
    CounterQuery(
        name="RabbitMQ messages ready",
        query="sum by (instance) (rabbitmq_queue_messages_ready)",
        kind=_QUEUE,
    ),
    CounterQuery(
        name="RabbitMQ messages unacknowledged",
        query="sum by (instance) (rabbitmq_queue_messages_unacked)",
        kind=_QUEUE,
    ),
    CounterQuery(
        name="memcached evictions",
        query="sum by (instance) (rate(memcached_items_evicted_total[$window]))",
        kind=_QUEUE,
        unit="/s",
    ),
    CounterQuery(
        name="memcached hits",
        query=(
            "sum by (instance)"
            ' (rate(memcached_commands_total{command="get",status="hit"}[$window]))'
            ' / sum by (instance) (rate(memcached_commands_total{command="get"}[$window]))'
        ),
        unit=SHARE_UNIT,
    ),
    _network("receive"),
    _network("transmit"),
)
