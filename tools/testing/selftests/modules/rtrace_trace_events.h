/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rtrace_test

#if !defined(RTRACE_TRACE_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define RTRACE_TRACE_EVENTS_H

#include <linux/in6.h>
#include <linux/tracepoint.h>

/* Fields of all kinds, some of variable size among the others, with holes between them. */
TRACE_EVENT(rtrace_test_kinds,
	TP_PROTO(unsigned int seq, const char *text),
	TP_ARGS(seq, text),
	TP_STRUCT__entry(
		__field(	u8,		tiny			)
		__field(	s64,		negative		)
		__string(	first,		text			)
		__field(	u16,		narrow			)
		__field(	bool,		flag			)
		__field(	unsigned int,	seq			)
		__dynamic_array(u32,		words,	seq % 4		)
		__array(	s16,		numbers, 3		)
		__array(	char,		name,	10		)
		__rel_string(	second,		text			)
		__field(	const void *,	pointer			)
		__dynamic_array(s64,		wide,	seq % 3		)
		__field_struct(	struct in6_addr, address		)
		__dynamic_array(u8,		bytes,	seq % 7		)
	),
	TP_fast_assign(
		unsigned int i;

		__entry->tiny = seq;
		__entry->negative = -(s64)seq;
		__assign_str(first);
		__entry->narrow = seq * 3;
		__entry->flag = seq & 1;
		__entry->seq = seq;
		for (i = 0; i < seq % 4; i++)
			((u32 *)__get_dynamic_array(words))[i] = seq + i;
		for (i = 0; i < 3; i++)
			__entry->numbers[i] = i - seq % 100;
		memset(__entry->name, 0, sizeof(__entry->name));
		memset(__entry->name, 'a' + seq % 26, seq % 10);
		__assign_rel_str(second);
		__entry->pointer = &init_task;
		for (i = 0; i < seq % 3; i++)
			((s64 *)__get_dynamic_array(wide))[i] = -(s64)seq - i;
		memset(&__entry->address, seq, sizeof(__entry->address));
		memset(__get_dynamic_array(bytes), seq, seq % 7);
	),
	TP_printk("seq=%u", __entry->seq)
);

/* As large as its argument says. */
TRACE_EVENT(rtrace_test_large,
	TP_PROTO(unsigned int seq, unsigned int size),
	TP_ARGS(seq, size),
	TP_STRUCT__entry(
		__field(	unsigned int,	seq			)
		__dynamic_array(u8,		bytes,	size		)
	),
	TP_fast_assign(
		__entry->seq = seq;
		memset(__get_dynamic_array(bytes), seq, size);
	),
	TP_printk("seq=%u", __entry->seq)
);

/* Another event fires while this one is recorded. */
TRACE_EVENT(rtrace_test_outer,
	TP_PROTO(unsigned int seq),
	TP_ARGS(seq),
	TP_STRUCT__entry(
		__field(	unsigned int,	seq			)
	),
	TP_fast_assign(
		__entry->seq = seq;
		rtrace_test_nested(seq);
	),
	TP_printk("seq=%u", __entry->seq)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rtrace_trace_events
#include <trace/define_trace.h>
