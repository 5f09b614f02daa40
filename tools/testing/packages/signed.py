# SPDX-License-Identifier: GPL-2.0
"""Usage: signed.py MODULE CERTIFICATE

Is the kernel module (.ko, .ko.xz) signed by the key of this certificate (DER)? Takes off the signature that
scripts/sign-file of the kernel has put behind it, and has openssl verify that.
"""
import lzma
import struct
import subprocess
import sys
import tempfile

MAGIC = b"~Module signature appended~\n"

path, certificate = sys.argv[1:]
with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
    module = file.read()
if not module.endswith(MAGIC):
    sys.exit(f"{path} is not signed")
module = module[: -len(MAGIC)]
# struct module_signature: five bytes that are 0 or mean PKCS#7, padding, the length of the data before it.
(size,) = struct.unpack(">I", module[-4:])
module, signature = module[: -12 - size], module[-12 - size : -12]
with tempfile.TemporaryDirectory() as dir:
    for name, content in ("module", module), ("signature", signature):
        with open(f"{dir}/{name}", "wb") as file:
            file.write(content)
    pem = subprocess.run(["openssl", "x509", "-inform", "DER", "-in", certificate], check=True, capture_output=True)
    with open(f"{dir}/certificate", "wb") as file:
        file.write(pem.stdout)
    # Signed by the key of that certificate; the certificate itself is unsigned.
    subprocess.run(
        ["openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", f"{dir}/signature", "-content", f"{dir}/module",
         "-certfile", f"{dir}/certificate", "-nointern", "-noverify", "-out", "/dev/null"],
        check=True,
    )
