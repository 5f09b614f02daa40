// SPDX-License-Identifier: GPL-2.0
/*
 * For session/create-beside: makes the load of a module wait within the kernel's chain of module notifiers, whose
 * lock it then holds.
 *
 *	insmod rtrace_notifier.ko hold=1; insmod OTHER &		waits
 *	cat /sys/module/rtrace_notifier/parameters/held			number of loads that wait
 *	echo 0 > /sys/module/rtrace_notifier/parameters/hold		lets them go on
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/notifier.h>

static bool hold;
module_param(hold, bool, 0600);
MODULE_PARM_DESC(hold, "whether loads of modules wait");

static int held;
module_param(held, int, 0400);
MODULE_PARM_DESC(held, "number of loads that wait now");

static int notify(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_COMING && READ_ONCE(hold)) {
		WRITE_ONCE(held, READ_ONCE(held) + 1);
		while (READ_ONCE(hold))
			msleep(20);
		WRITE_ONCE(held, READ_ONCE(held) - 1);
	}
	return NOTIFY_DONE;
}

static struct notifier_block block = { .notifier_call = notify };

static int __init rtrace_notifier_init(void)
{
	return register_module_notifier(&block);
}
module_init(rtrace_notifier_init);

static void __exit rtrace_notifier_exit(void)
{
	unregister_module_notifier(&block);
}
module_exit(rtrace_notifier_exit);

MODULE_DESCRIPTION("Delays loads of modules, for rtrace's tests");
MODULE_LICENSE("GPL");
