/* SPDX-License-Identifier: GPL-2.0 */
#include <trace/events/sock.h>
#define rtrace_without_tcp_receive_reset 1
#define rtrace_without_tcp_destroy_sock 1
#define rtrace_without_tcp_rcv_space_adjust 1
#define rtrace_without_tcp_rcvbuf_grow 1
#define rtrace_without_tcp_probe 1
