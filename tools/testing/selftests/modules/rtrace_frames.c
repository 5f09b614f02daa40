// SPDX-License-Identifier: GPL-2.0
/*
 * For channel/kernel-stacks: a function that sleeps, in a frame of ROOM bytes. rtrace_frames_deeper.c is the same code with
 * another frame. So both modules have the same return addresses, relative to their code, and different stacks.
 *
 *	insmod rtrace_frames.ko; echo 1 > /sys/module/rtrace_frames/parameters/sleep
 */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched.h>

#ifndef ROOM
#define ROOM 256
#endif

static noinline void rtrace_frames_sleep(void)
{
	char room[ROOM];

	barrier_data(room);
	schedule_timeout_uninterruptible(1);
	barrier_data(room);
}

static int set_sleep(const char *text, const struct kernel_param *parameter)
{
	rtrace_frames_sleep();
	return 0;
}

static const struct kernel_param_ops sleep_ops = { .set = set_sleep };
module_param_cb(sleep, &sleep_ops, NULL, 0200);
MODULE_PARM_DESC(sleep, "sleeps until the next tick");
MODULE_DESCRIPTION("Sleeps in a frame of a given size, for rtrace's tests");
MODULE_LICENSE("GPL");
