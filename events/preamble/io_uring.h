/* SPDX-License-Identifier: GPL-2.0 */
#define rtrace_without_io_uring_queue_async_work 1
#define rtrace_without_io_uring_defer 1
#define rtrace_without_io_uring_fail_link 1
#define rtrace_without_io_uring_submit_req 1
#define rtrace_without_io_uring_poll_arm 1
#define rtrace_without_io_uring_task_add 1
#define rtrace_without_io_uring_req_failed 1
