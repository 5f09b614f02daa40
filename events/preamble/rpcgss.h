/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/sunrpc/gss_api.h>
