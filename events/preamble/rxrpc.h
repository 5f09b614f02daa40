/* SPDX-License-Identifier: GPL-2.0 */
#include <net/rxrpc/ar-internal.h>
