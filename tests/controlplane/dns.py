"""A name server on loopback that gives one name several addresses, as a headless service gives each pod's."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Sequence

from controlplane.processes import LOOPBACK

# RFC 1035: an answer to a recursive query, no error; and the same, saying there is no such name.
FOUND, NO_SUCH_NAME = 0x8580, 0x8583
TYPE_A, CLASS_IN = 1, 1
# An answer's name as a pointer to the question's, which starts after the 12 bytes of the header.
NAME_OF_QUESTION = 0xC00C
SECONDS_TO_LIVE = 1


class NameServer:
    """Answers IPv4 queries for one name; every other name does not exist."""

    def __init__(self, name: str, addresses: Sequence[str]) -> None:
        self._server = socketserver.ThreadingUDPServer((LOOPBACK, 0), _handler(name, addresses))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """Host and port it answers on."""
        return f"{LOOPBACK}:{self._server.server_address[1]}"

    def start(self) -> None:
        """Serve from a thread of its own until `stop`."""
        threading.Thread(target=self._server.serve_forever, name="dns", daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def answer(query: bytes, name: str, addresses: Sequence[str]) -> bytes:
    """The reply to one query."""
    labels, end = [], 12
    while length := query[end]:
        labels.append(query[end + 1 : end + 1 + length].decode("ascii", "replace").lower())
        end += 1 + length
    question = query[12 : end + 5]
    (kind,) = struct.unpack("!H", query[end + 1 : end + 3])
    known = ".".join(labels) == name
    found = addresses if known and kind == TYPE_A else ()
    header = query[:2] + struct.pack("!HHHHH", FOUND if known else NO_SUCH_NAME, 1, len(found), 0, 0)
    records = (
        struct.pack("!HHHIH", NAME_OF_QUESTION, TYPE_A, CLASS_IN, SECONDS_TO_LIVE, 4) + socket.inet_aton(one)
        for one in found
    )
    return header + question + b"".join(records)


def _handler(name: str, addresses: Sequence[str]) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            query, reply_to = self.request
            reply_to.sendto(answer(query, name, addresses), self.client_address)

    return Handler
