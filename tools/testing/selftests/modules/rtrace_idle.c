// SPDX-License-Identifier: GPL-2.0
/*
 * For trace/suspend-idle: lets each CPU halt in the kernel's idle loop by a driver of cpuidle. During a suspend to
 * idle the kernel suspends its clocks only if there is such a driver, and QEMU's emulation has none.
 */
#include <linux/cpuidle.h>
#include <linux/irqflags.h>
#include <linux/module.h>

static __cpuidle int halt_cpu(struct cpuidle_device *device, struct cpuidle_driver *driver, int index)
{
	raw_safe_halt();
	raw_local_irq_disable();
	return index;
}

/* Without an owner, so that its devices do not keep the module. */
static struct cpuidle_driver driver = {
	.name = "rtrace_idle",
	.states = {
		{
			.name = "FIRST",
			.desc = "halt",
			.enter = halt_cpu,
		},
		/* The kernel suspends its clocks in no state but a later one. */
		{
			.name = "HALT",
			.desc = "halt",
			.exit_latency = 1,
			.target_residency = 1,
			.enter = halt_cpu,
			.enter_s2idle = halt_cpu,
		},
	},
	.state_count = 2,
};

static int __init add_driver(void)
{
	return cpuidle_register(&driver, NULL);
}
module_init(add_driver);

static void __exit remove_driver(void)
{
	cpuidle_unregister(&driver);
}
module_exit(remove_driver);

MODULE_DESCRIPTION("A driver that halts idle CPUs, for rtrace's tests");
MODULE_LICENSE("GPL");
