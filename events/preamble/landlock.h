/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/lsm_audit.h>
#include <net/sock.h>
#include <security/landlock/domain.h>
#include <security/landlock/log.h>
#include <security/landlock/ruleset.h>
