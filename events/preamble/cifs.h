/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/smb/client/trace.c>
