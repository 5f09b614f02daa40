/* SPDX-License-Identifier: GPL-2.0 */
/* Requests can have the same device and sector at the same time: a flush has no sector at all. */
#define rtrace_with_rq_block_rq 1
#define rtrace_with_rq_block_rq_completion 1
#define rtrace_with_rq_block_rq_requeue 1
