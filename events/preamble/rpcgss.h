/* SPDX-License-Identifier: GPL-2.0 */
#include <net/sunrpc/auth_gss/trace.c>
