/* SPDX-License-Identifier: GPL-2.0 */
/* Probes that may wait for user memory. The C compiler and bindgen both read this header. */
#ifndef RTRACE_SYS_FAULTS_H
#define RTRACE_SYS_FAULTS_H

#include <linux/types.h>

/* A task that waits in a probe for its memory. */
struct rtrace_waiter {
	u64 number;	/* of the wait, ascending from 1 */
	s32 tid;
	char comm[16];
	u64 seconds;
};

bool rtrace_waiter(u64 after, struct rtrace_waiter *waiter);

size_t rtrace_fault_in(u64 from, size_t len);
ssize_t rtrace_copy_text(char *to, u64 from, size_t room);
bool rtrace_copy_from_user(void *to, u64 from, size_t len);

/* Memory to free as soon as no handler that may wait for user memory can use it. */
struct rtrace_retired {
	struct callback_head rcu;
	struct rtrace_retired *next;
	void (*free)(struct rtrace_retired *retired);
	bool of_uprobe;
};

void rtrace_retire(struct rtrace_retired *retired, void (*free)(struct rtrace_retired *retired), bool of_uprobe);
void rtrace_wait_a_second(void);
bool rtrace_settle(bool tracepoint);
void rtrace_wait_retired(void);

#endif
