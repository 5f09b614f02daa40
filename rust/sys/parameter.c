// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of the module. Two of them decide the access to its files. They are not declared by the
 * module! macro, whose parameters have no file under /sys/module.
 */
#include <linux/cred.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/sched/prio.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/uidgid.h>

#include "helpers.h"

static u8 delivery_barrier;
module_param(delivery_barrier, byte, 0444);
MODULE_PARM_DESC(delivery_barrier,
		 "Order of packets and their contents: 1: a barrier at delivery; 0: an interrupt at the reading (default: 0)");

static unsigned long long origin;
module_param(origin, ullong, 0444);
MODULE_PARM_DESC(origin,
		 "First buffer position, rounded down to a lap; for tests of its wrap (default: 0)");

/* Whether these bits can be the mode of directories that their owner uses. */
notrace bool rtrace_is_mode(unsigned int mode)
{
	return !(mode & ~0777) && (mode & 0700) == 0700;
}

/* Octal, with or without a leading zero, as tracefs' mount option of this name. */
static int set_mode(const char *text, const struct kernel_param *param)
{
	u16 mode;
	int err = kstrtou16(text, 8, &mode);

	if (err)
		return err;
	if (!rtrace_is_mode(mode))
		return -EINVAL;
	*(u16 *)param->arg = mode;
	return 0;
}

static int get_mode(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%#o\n", *(u16 *)param->arg);
}

static const struct kernel_param_ops mode_ops = {
	.set = set_mode,
	.get = get_mode,
};

static u16 mode = 0700;
module_param_cb(mode, &mode_ops, &mode, 0444);
__MODULE_PARM_TYPE(mode, "octal");
MODULE_PARM_DESC(mode,
		 "Mode of the directories, which also limits that of their files (default: 0700)");

static int set_gid(const char *text, const struct kernel_param *param)
{
	unsigned int gid;
	int err = kstrtouint(text, 0, &gid);

	if (err)
		return err;
	if (!gid_valid(KGIDT_INIT(gid)))
		return -EINVAL;
	*(unsigned int *)param->arg = gid;
	return 0;
}

static const struct kernel_param_ops gid_ops = {
	.set = set_gid,
	.get = param_get_uint,
};

static unsigned int gid;
module_param_cb(gid, &gid_ops, &gid, 0444);
__MODULE_PARM_TYPE(gid, "uint");
MODULE_PARM_DESC(gid, "Group of the directories and files (default: 0)");

static int get_programs(char *text, const struct kernel_param *param)
{
	unsigned int gid = *(unsigned int *)param->arg;

	return gid_valid(KGIDT_INIT(gid)) ? sysfs_emit(text, "%u\n", gid) : sysfs_emit(text, "none\n");
}

static const struct kernel_param_ops programs_ops = {
	.set = set_gid,
	.get = get_programs,
};

static unsigned int programs = (unsigned int)-1;
module_param_cb(programs, &programs_ops, &programs, 0444);
__MODULE_PARM_TYPE(programs, "uint");
MODULE_PARM_DESC(programs, "Group that may record events of its programs, by the file program (default: none)");

static unsigned int program_rings = 16;
module_param(program_rings, uint, 0444);
MODULE_PARM_DESC(program_rings, "Number of rings that an open file program may have (default: 16)");

static unsigned int program_ring_size = 256 << 10;
module_param(program_ring_size, uint, 0444);
MODULE_PARM_DESC(program_ring_size, "Size in bytes of such a ring, rounded up to a power of two (default: 262144)");

static unsigned long program_memory_user = 32 << 20;
module_param(program_memory_user, ulong, 0444);
MODULE_PARM_DESC(program_memory_user, "Bytes that all such rings of a user may have (default: 33554432)");

static unsigned long program_memory = 64 << 20;
module_param(program_memory, ulong, 0444);
MODULE_PARM_DESC(program_memory, "Bytes that all such rings may have (default: 67108864)");

static unsigned int program_nice = 10;
module_param(program_nice, uint, 0444);
MODULE_PARM_DESC(program_nice, "Niceness, 0 to 19, with which the module takes records from such rings (default: 10)");

/*
 * Initial settings of the default session and its first channel. At load time each text is written to the file
 * with the parameter's name (file/parameters.rs).
 */
#define SETTING(name, description)		\
	static char *name;			\
	module_param(name, charp, 0444);	\
	MODULE_PARM_DESC(name, description)

SETTING(clock, "Clock of the first trace: tsc or mono (default: tsc if it is reliable)");
SETTING(channel_mode, "Mode of channel0: discard or overwrite (default: overwrite)");
SETTING(subbuf_size, "Size of channel0's sub-buffers: bytes, or with K, M, G (default: 1M)");
SETTING(subbuf_count, "Number of channel0's sub-buffers, a power of two (default: 4)");
SETTING(tracing_cpus, "CPUs that channel0 records: a list such as 0,2-3 (default: all)");
SETTING(contexts, "Context values that channel0 adds to each event: names separated by commas (default: none)");
SETTING(set_event, "Events that channel0 records: patterns separated by commas (default: the default events)");
SETTING(set_filter, "Filters of these events: PATTERN EXPRESSION, separated by semicolons (default: all records)");
SETTING(memory, "Memory for channel0's buffers: a name that reserve_mem= reserves (default: allocated memory)");
SETTING(enable, "1: record from the load on (default: 0)");

/* Value of the parameter whose name has these bytes, if it is a text and was given. */
notrace const char *rtrace_given(const char *name, size_t len)
{
	const struct kernel_param *param = THIS_MODULE->kp;
	const struct kernel_param *end = param + THIS_MODULE->num_kp;

	for (; param < end; param++)
		if (param->ops == &param_ops_charp && strlen(param->name) == len && !memcmp(param->name, name, len))
			return *(char **)param->arg;
	return NULL;
}

notrace u16 rtrace_mode(void)
{
	return mode;
}

notrace unsigned int rtrace_gid(void)
{
	return gid;
}

notrace unsigned int rtrace_programs(void)
{
	return programs;
}

notrace unsigned int rtrace_program_rings(void)
{
	return program_rings;
}

notrace unsigned int rtrace_program_ring_size(void)
{
	return program_ring_size;
}

notrace unsigned int rtrace_program_nice(void)
{
	return min(program_nice, (unsigned int)MAX_NICE);
}

notrace unsigned long rtrace_program_memory_user(void)
{
	return program_memory_user;
}

notrace unsigned long rtrace_program_memory(void)
{
	return program_memory;
}

notrace u8 rtrace_delivery_barrier(void)
{
	return delivery_barrier;
}

notrace u64 rtrace_origin(void)
{
	return origin;
}
