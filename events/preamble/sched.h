/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/sched/numa_balancing.h>

#ifndef rcu_dereference_all
#define rcu_dereference_all(pointer) rcu_dereference_sched(pointer)
#endif

/* Not exported. The probe runs with preemption disabled: groups are freed by RCU. */
#ifdef CONFIG_NUMA_BALANCING
#define task_numa_group_id(task)							\
({											\
	const struct numa_group *__group = rcu_dereference_all((task)->numa_group);	\
											\
	__group ? __group->gid : 0;							\
})
#endif
