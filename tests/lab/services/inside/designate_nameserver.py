"""A name server for Designate's fake back end, which notifies no server.

Arguments: the UDP port of 127.0.0.1, and Designate's configuration file. The server reads serial
numbers of zones in Designate's database; a zone that is being deleted does not exist here.
"""

from __future__ import annotations

import configparser
import socket
import sys

import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rrset
import sqlalchemy

SERIAL = sqlalchemy.text(
    "SELECT serial FROM zones WHERE name = :name AND deleted = '0' AND action != 'DELETE'"
)
TTL_S = 60


def main() -> None:
    """Respond to each query and each NOTIFY, for ever."""
    given = configparser.ConfigParser(interpolation=None)
    given.read(sys.argv[2])
    engine = sqlalchemy.create_engine(given["storage:sqlalchemy"]["connection"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", int(sys.argv[1])))
        print("ready", flush=True)
        while True:
            data, sender = server.recvfrom(4096)
            query = dns.message.from_wire(data)
            server.sendto(_reply(query, engine).to_wire(), sender)


def _reply(query: dns.message.Message, engine: sqlalchemy.Engine) -> dns.message.Message:
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.AA
    if query.opcode() == dns.opcode.NOTIFY:
        return reply
    name = query.question[0].name.to_text()
    with engine.connect() as connection:
        serial = connection.execute(SERIAL, {"name": name}).scalar()
    if serial is None:
        reply.set_rcode(dns.rcode.NXDOMAIN)
        return reply
    authority = f"{name} hostmaster.{name} {serial} 3600 600 86400 3600"
    reply.answer.append(dns.rrset.from_text(name, TTL_S, "IN", "SOA", authority))
    return reply


if __name__ == "__main__":
    main()
