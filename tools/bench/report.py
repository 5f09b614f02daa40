# SPDX-License-Identifier: GPL-2.0
print("no report yet")
