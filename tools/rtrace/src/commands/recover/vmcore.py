# SPDX-License-Identifier: GPL-2.0
"""Reads a dump of a kernel's memory with drgn, without the kernel's debugging information, for `rtrace recover`.

Usage: vmcore.py FILE

Serves requests, one per line, numbers in hexadecimal:

  find ALIGN BYTES  where these stand in the memory of modules, within a page, at a multiple of ALIGN
  read AT LENGTH    what is at an address

Each reply is a byte, the length of what follows (8 bytes, little endian), and that: "+" and what was asked for
(addresses as words); "-" and nothing: it is not in the dump; "!" and a text: nothing can be read. The first reply
comes unasked, as soon as the dump is open.
"""

import re
import signal
import struct
import sys

# Every kernel's page is a multiple of it.
PAGE = 4096
# Addresses of modules on x86-64, with and without KASLR (Documentation/arch/x86/x86_64/mm.rst). They begin after the
# kernel's image, which takes half or all of the room for the image.
MODULES_X86 = 0xFFFFFFFFA0000000, 0xFFFFFFFFFF000000
# How far from the kernel's image a module can be on arm64 (module_init_limits() in arch/arm64/mm/init.c).
REACH_ARM64 = 1 << 31


def reply(kind, data=b""):
    sys.stdout.buffer.write(kind + struct.pack("<Q", len(data)) + data)
    sys.stdout.buffer.flush()


def modules(program):
    """Returns the first and the last address where modules can be."""
    if program.platform.arch != Architecture.AARCH64:
        return MODULES_X86
    info = program["VMCOREINFO"].string_()
    image = int(re.search(rb"^SYMBOL\(_stext\)=(.*)$", info, re.MULTILINE)[1], 16) & -PAGE
    return image - REACH_ARM64, image + REACH_ARM64


def find(program, align, wanted):
    found = []
    for page in range(*modules(program), PAGE):
        try:
            data = program.read(page, PAGE)
        except FaultError:
            continue
        start = 0
        while (start := data.find(wanted, start)) >= 0:
            if start % align == 0:
                found.append(page + start)
            start += 1
    return found


def serve(path):
    program = Program()
    try:
        program.set_core_dump(path)
    # drgn has no exception class for errors of the libraries of ELF and makedumpfile.
    except Exception as error:
        return reply(b"!", str(error).encode())
    reply(b"+")
    for line in sys.stdin:
        request, *arguments = line.split()
        try:
            if request == "find":
                found = find(program, int(arguments[0], 16), bytes.fromhex(arguments[1]))
                reply(b"+", struct.pack(f"<{len(found)}Q", *found))
            else:
                at, length = (int(number, 16) for number in arguments)
                reply(b"+", program.read(at, length))
        # KeyError: a dump of a program, which has no VMCOREINFO.
        except (FaultError, KeyError, MemoryError):
            reply(b"-")
        except OSError as error:
            return reply(b"!", str(error).encode())


# The process ends without a message on Ctrl-C, and when the process that reads its replies has ended.
for number in signal.SIGPIPE, signal.SIGINT:
    signal.signal(number, signal.SIG_DFL)
try:
    from drgn import Architecture, FaultError, Program
except ImportError as error:
    reply(b"!", f"drgn is needed to read it (apt install python3-drgn): {error}".encode())
else:
    serve(sys.argv[1])
