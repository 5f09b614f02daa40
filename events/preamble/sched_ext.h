/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/cgroup.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kobject.h>
#include <linux/kthread.h>
#include <linux/rhashtable-types.h>
#include <linux/sched/ext.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

/* As in kernel/sched/ext/sub.h. */
#ifdef CONFIG_EXT_SUB_SCHED
#define sch_cgrp_path(sch)	((const char *)(sch)->cgrp_path)
#else
#define sch_cgrp_path(sch)	"/"
#endif
