/* SPDX-License-Identifier: GPL-2.0 */
/* Names of 7.2 that 6.12 lacks, in terms of its own. Include it after the kernel's headers. */
#ifndef RTRACE_SYS_LINUX_H
#define RTRACE_SYS_LINUX_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define RTRACE_LINUX_6_12

#define HK_TYPE_KERNEL_NOISE HK_TYPE_TICK
/* Later updates of 6.12 have the new name. */
#ifndef PIDNS_ADDING
#define PIDNS_ADDING PIDNS_HASH_ADDING
#endif
#define mmap_lock_speculate_try_begin(mm, seq) (!((*(seq) = raw_read_seqcount(&(mm)->mm_lock_seq)) & 1))
#define mmap_lock_speculate_retry(mm, seq) read_seqcount_retry(&(mm)->mm_lock_seq, seq)
#define system_dfl_wq system_unbound_wq
#define alloc_pages_bulk_node(...) alloc_pages_bulk_array_node(__VA_ARGS__)
#ifndef kmalloc_obj
#define kmalloc_obj(object) kmalloc(sizeof(object), GFP_KERNEL)
#endif
#endif

#endif
