# SPDX-License-Identifier: GPL-2.0
"""The file `program`: registers events of this process, and records them in binary form."""

import errno
import fcntl
import os
import struct

R = os.environ.get("RTRACE_FILES") or "/sys/kernel/debug/rtrace"
REGISTER = 1 << 30 | 513 << 16 | 0xF7 << 8 | 9


class Program:
    def __init__(self, path=R + "/program"):
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def register(self, text):
        """Registers an event, and returns its index."""
        return fcntl.ioctl(self.fd, REGISTER, bytearray(text.encode() + b"\0"))

    def record(self, index, fields):
        """Records an event. Returns whether it is recorded."""
        data = struct.pack("<I", index) + fields
        try:
            assert os.write(self.fd, data) == len(data)
        except OSError as error:
            if error.errno == errno.EBADF:
                return False
            raise
        return True

    def write(self, text):
        return os.write(self.fd, text.encode())

    def why(self):
        """Why the last write was refused."""
        return os.read(self.fd, 4096).decode()

    def close(self):
        os.close(self.fd)


def refused(expected, function, *args):
    """The call must fail with this errno."""
    try:
        result = function(*args)
    except OSError as error:
        assert error.errno == expected, f"{args}: {error}, not {errno.errorcode[expected]}"
        return
    raise AssertionError(f"{args}: returned {result}")
