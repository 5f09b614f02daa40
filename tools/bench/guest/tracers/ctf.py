# SPDX-License-Identifier: GPL-2.0
"""Packets of a CTF trace on disk; LTTng's and rtrace's have the same headers."""

import os
import struct
from collections import namedtuple

# magic, uuid, stream id, stream instance; begin, end, content and packet size in bits, number,
# events discarded so far
HEADER = struct.Struct("=I16sIQQQQQQQ")
MAGIC = 0xC1FC1FC1

# A packet: bytes of content, its number in its stream, records discarded in the stream so far.
Packet = namedtuple("Packet", "content number discarded")


def packets(path):
    """The packets of a stream file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            file.seek(at)
            header = HEADER.unpack(file.read(HEADER.size))
            assert header[0] == MAGIC, f"{path}: no packet at {at}"
            yield Packet(header[6] // 8, header[8], header[9])
            at += header[7] // 8


def streams(directory, prefix):
    for at, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != "index"]
        for name in names:
            if name.startswith(prefix):
                yield os.path.join(at, name)


def content_of(directory, prefix):
    """Bytes of content in all packets."""
    return sum(packet.content for path in streams(directory, prefix) for packet in packets(path))


def discarded_of(directory, prefix):
    """Events that the packets say were discarded."""
    return sum(max((packet.discarded for packet in packets(path)), default=0)
               for path in streams(directory, prefix))
