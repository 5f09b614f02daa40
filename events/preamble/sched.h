/* SPDX-License-Identifier: GPL-2.0 */
#define rtrace_without_sched_move_numa 1
#define rtrace_without_sched_stick_numa 1
#define rtrace_without_sched_swap_numa 1
#define rtrace_without_sched_skip_cpuset_numa 1
