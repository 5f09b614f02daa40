# SPDX-License-Identifier: GPL-2.0
"""The file `program`: registers events of this process, and records them in binary form."""

import ctypes
import errno
import fcntl
import os
import struct

R = os.environ.get("RTRACE_FILES") or "/sys/kernel/debug/rtrace"
REGISTER = 1 << 30 | 513 << 16 | 0xF7 << 8 | 9
SHARE = 2 << 30 | 56 << 16 | 0xF7 << 8 | 10
ADD_RING, NUMBER_THREAD, WAKE = (0xF7 << 8 | number for number in (11, 12, 13))

PROT_READ, PROT_WRITE, PROT_EXEC, MAP_SHARED, MAP_PRIVATE = 1, 2, 4, 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for function in LIBC.munmap, LIBC.madvise, LIBC.mprotect:
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int][:3 - (function is LIBC.munmap)]
LIBC.mremap.restype = ctypes.c_void_p
LIBC.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]


def checked(result):
    if result in (-1, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def mapped(fd, offset, size, protection=PROT_READ | PROT_WRITE, flags=MAP_SHARED):
    """The address of a mapping. (The module mmap looks at the size of the file, which is 0.)"""
    return checked(LIBC.mmap(None, size, protection, flags, fd, offset))


class Shared:
    """The memory that a program shares with the module. Its ring has the index 0, whatever the CPU is."""

    HEAD, LOST, LIMIT, MAY_WAKE = 0, 1, 8, 9

    def __init__(self, program):
        self.fd = program.fd
        layout = bytearray(56)
        fcntl.ioctl(self.fd, SHARE, layout)
        (self.words_at, self.words_size, self.headers_at, self.headers_size, self.data_at, self.size,
         self.count, version) = struct.unpack("<6Q2I", layout)
        assert version == 1

    def map_words(self):
        self.words = (ctypes.c_uint32 * 1024).from_address(mapped(self.fd, self.words_at, self.words_size, PROT_READ))

    def map_headers(self):
        self.headers = mapped(self.fd, self.headers_at, self.headers_size)

    def add_ring(self, index=0):
        fcntl.ioctl(self.fd, ADD_RING, index)

    def map_ring(self, index=0):
        self.data = mapped(self.fd, self.data_at + index * 2 * self.size, 2 * self.size)
        self.bytes = (ctypes.c_uint8 * (2 * self.size)).from_address(self.data)
        self.header = (ctypes.c_uint64 * 16).from_address(self.headers + 128 * index)

    def map(self):
        self.map_words()
        self.map_headers()
        self.add_ring()
        self.map_ring()
        return self

    def number_thread(self):
        return fcntl.ioctl(self.fd, NUMBER_THREAD)

    def wake(self, index=0):
        fcntl.ioctl(self.fd, WAKE, index)

    def write(self, data):
        """Writes bytes at the head. Returns whether there was room."""
        head = self.header[self.HEAD]
        if head + len(data) > self.header[self.LIMIT]:
            return False
        at = head % self.size
        ctypes.memmove(self.data + at, bytes(data), len(data))
        self.header[self.HEAD] = head + len(data)
        return True


def record(time, index, fields, thread=0, cpu=0, words=None):
    """The bytes of a record in a ring."""
    fields += bytes(-len(fields) % 8)
    words = 2 + len(fields) // 8 if words is None else words
    return struct.pack("<QQ", time, words | index << 10 | thread << 26 | cpu << 48) + fields


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
