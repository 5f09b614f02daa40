/* SPDX-License-Identifier: GPL-2.0 */
#define rtrace_without_net_dev_xmit_timeout 1
