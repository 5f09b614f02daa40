/* SPDX-License-Identifier: GPL-2.0 */
/* All threads, and the state of each. The C compiler and bindgen both read this header. */
#ifndef RTRACE_SYS_THREADS_H
#define RTRACE_SYS_THREADS_H

#include <linux/types.h>

struct task_struct;

/* State of a thread, with LTTng's numbers. */
enum rtrace_status {
	RTRACE_OTHER = 0,
	RTRACE_NEW = 1,		/* has not run yet */
	RTRACE_RUNNABLE = 2,	/* runs, or is ready to run */
	RTRACE_ZOMBIE = 4,
	RTRACE_WAITING = 5,
	RTRACE_DEAD = 7,
};

/* A thread. Its ids are those of the initial namespace. */
struct rtrace_thread {
	s32 tid;
	s32 pid;
	s32 ppid;
	u8 comm[16];
	u8 is_kernel;
	u32 status;		/* enum rtrace_status */
	u32 cpu;
	u64 table;		/* pseudonym of its table of files; 0: it has none */
};

/* Inode numbers of namespaces; 0 where the thread has none any more. */
struct rtrace_namespaces {
	u32 cgroup;
	u32 ipc;
	u32 mnt;
	u32 net;
	u32 time;
	u32 uts;
};

/* Ids of a thread in a pid namespace. */
struct rtrace_pid_ns {
	s32 vtid;
	s32 vpid;
	s32 vppid;
	s32 level;		/* 0 for the initial namespace */
	u32 inum;
};

/* Ids of a thread in a user namespace. */
struct rtrace_user_ns {
	u32 vuid;
	u32 vgid;
	s32 level;
	u32 inum;
};

/* An open file. */
struct rtrace_file {
	u64 table;
	s32 fd;
	u32 flags;		/* as /proc/PID/fdinfo shows them */
	u32 mode;		/* FMODE_* */
	const char *name;
	size_t name_len;
};

typedef void (*rtrace_visit_thread_t)(struct task_struct *thread, void *data);
typedef bool (*rtrace_picks_thread_t)(s32 tid, void *data);
typedef void (*rtrace_visit_file_t)(const struct rtrace_file *file, void *data);

void rtrace_threads_init(void);
int rtrace_set_nice(int nice);
int rtrace_visit_thread(int tid, rtrace_visit_thread_t visit, void *data);
bool rtrace_memory_has_thread(struct mm_struct *memory, rtrace_picks_thread_t picks, void *data);
bool rtrace_owns_memory(int tid);
void rtrace_thread_read(struct task_struct *thread, struct rtrace_thread *to);
void rtrace_thread_namespaces(struct task_struct *thread, struct rtrace_namespaces *to);
bool rtrace_thread_pid_ns(struct task_struct *thread, u32 up, struct rtrace_pid_ns *to);
bool rtrace_thread_user_ns(struct task_struct *thread, u32 up, struct rtrace_user_ns *to);
u64 rtrace_thread_own_table(struct task_struct *thread);
int rtrace_visit_files(struct task_struct *thread, u32 fd, u32 most, char *room, size_t room_size,
		       rtrace_visit_file_t visit, void *data);

#endif
