/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/blk-mq.h>
#include <block/blk-cgroup.h>
#include <block/blk-rq-qos.h>

#define ioc_name(ioc)	((ioc)->rqos.disk ? (ioc)->rqos.disk->disk_name : "<unknown>")
