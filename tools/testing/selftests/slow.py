# SPDX-License-Identifier: GPL-2.0
"""Memory whose pages come late, and threads that wait for them."""

import ctypes
import fcntl
import os
import select
import struct
import threading

from rtrace import PAGE

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for function in libc.read, libc.write:
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    function.restype = ctypes.c_ssize_t

USERFAULTFD = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_COPY = 0xC018AA3F, 0xC020AA00, 0xC028AA03


class SlowMemory:
    """Memory that has no pages until fill(): whoever touches it waits, as for a page of a FUSE file."""

    def __init__(self, size):
        self.size = size
        self.uffd = libc.syscall(USERFAULTFD, os.O_CLOEXEC | os.O_NONBLOCK)
        assert self.uffd >= 0, os.strerror(ctypes.get_errno())
        fcntl.ioctl(self.uffd, UFFDIO_API, struct.pack("=QQQ", 0xAA, 0, 0))
        self.address = libc.mmap(None, size, 3, 0x22, -1, 0)
        fcntl.ioctl(self.uffd, UFFDIO_REGISTER, struct.pack("=QQQQ", self.address, size, 1, 0))

    def wait(self):
        """Until somebody waits for it."""
        poller = select.poll()
        poller.register(self.uffd, select.POLLIN)
        assert poller.poll(20000), "nobody touches the memory"
        os.read(self.uffd, 32)

    def fill(self, text=b""):
        """With a text, and with zeros after it."""
        source = ctypes.create_string_buffer(text, self.size)
        fcntl.ioctl(self.uffd, UFFDIO_COPY,
                    struct.pack("=QQQQq", self.address, ctypes.addressof(source), self.size, 0, 0))

    def bytes(self, n):
        return ctypes.string_at(self.address, n)


class Waiter(threading.Thread):
    """A thread that is in the call, and whose result is there after end()."""

    def __init__(self, call, *args):
        super().__init__(daemon=True)
        self.call = lambda: call(*args)
        self.start()

    def run(self):
        self.result = self.call()
        self.errno = ctypes.get_errno()

    def end(self):
        self.join(20)
        assert not self.is_alive(), "the call does not return"
        return self.result
