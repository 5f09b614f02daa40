/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the kernel's TRACE_EVENT() macros to probes and descriptions.
 *
 * HEADER declares tracepoints and, by these macros, ftrace's records of each. It is included here
 * several times, each time with another meaning of the macros ("stage"), as in the kernel's own
 * include/trace/trace_events.h:
 *
 *   1  the fixed part of a record: a packed struct, because records have no padding
 *   2  the offsets of the parts of variable size
 *   3  their sizes
 *   4  the fields: struct rtrace_field; and how ftrace shows them
 *   5  the names of values
 *   6  the empty state of a record's parts, and their completion
 *   7  the probe of a class, and its events
 *
 * A record is the fixed part and, after it, the parts of variable size in the order of their
 * declaration: a string with its NUL, or an array after a u32 with the number of its elements.
 */

/*
 * Variants of TRACE_EVENT() that differ only in the tracepoint itself: its conditions and callbacks
 * belong to the kernel. The kernel also resolves enumerators.
 */
#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, args, tstruct, assign, print)			\
	DECLARE_EVENT_CLASS(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),	\
			    PARAMS(assign), PARAMS(print));			\
	DEFINE_EVENT(name, name, PARAMS(proto), PARAMS(args));

#undef TRACE_EVENT_CONDITION
#define TRACE_EVENT_CONDITION(name, proto, args, cond, tstruct, assign, print)	\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),		\
		    PARAMS(assign), PARAMS(print))

#undef TRACE_EVENT_FN
#define TRACE_EVENT_FN(name, proto, args, tstruct, assign, print, reg, unreg)	\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),		\
		    PARAMS(assign), PARAMS(print))

#undef TRACE_EVENT_FN_COND
#define TRACE_EVENT_FN_COND(name, proto, args, cond, tstruct, assign, print, reg, unreg) \
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),		\
		    PARAMS(assign), PARAMS(print))

#undef TRACE_EVENT_SYSCALL
#define TRACE_EVENT_SYSCALL(name, proto, args, tstruct, assign, print, reg, unreg) \
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),		\
		    PARAMS(assign), PARAMS(print))

#undef DECLARE_EVENT_SYSCALL_CLASS
#define DECLARE_EVENT_SYSCALL_CLASS DECLARE_EVENT_CLASS

#undef DEFINE_EVENT_FN
#define DEFINE_EVENT_FN(template, name, proto, args, reg, unreg)		\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))

#undef DEFINE_EVENT_PRINT
#define DEFINE_EVENT_PRINT(template, name, proto, args, print)			\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))

#undef DEFINE_EVENT_CONDITION
#define DEFINE_EVENT_CONDITION(template, name, proto, args, cond)		\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))

#undef TRACE_EVENT_NOP
#define TRACE_EVENT_NOP(name, proto, args, tstruct, assign, print)
#undef DECLARE_EVENT_NOP
#define DECLARE_EVENT_NOP(name, proto, args, tstruct, assign, print)
#undef DEFINE_EVENT_NOP
#define DEFINE_EVENT_NOP(template, name, proto, args)
#undef TRACE_EVENT_FLAGS
#define TRACE_EVENT_FLAGS(event, flag)
#undef TRACE_EVENT_PERF_PERM
#define TRACE_EVENT_PERF_PERM(event, expr...)
#undef TRACE_DEFINE_ENUM
#define TRACE_DEFINE_ENUM(a)
#undef TRACE_DEFINE_SIZEOF
#define TRACE_DEFINE_SIZEOF(a)
#undef DECLARE_TRACE
#define DECLARE_TRACE(name, proto, args)
#undef DECLARE_TRACE_CONDITION
#define DECLARE_TRACE_CONDITION(name, proto, args, cond)
#undef DECLARE_TRACE_EVENT
#define DECLARE_TRACE_EVENT(name, proto, args)
#undef DECLARE_TRACE_EVENT_CONDITION
#define DECLARE_TRACE_EVENT_CONDITION(name, proto, args, cond)

#undef TP_PROTO
#define TP_PROTO(args...)		args
#undef TP_ARGS
#define TP_ARGS(args...)		args
#undef TP_CONDITION
#define TP_CONDITION(args...)		args
#undef TP_STRUCT__entry
#define TP_STRUCT__entry(args...)	args
#undef TP_fast_assign
#define TP_fast_assign(args...)		args

/* Only for perf. */
#undef __perf_count
#define __perf_count(c)			(c)
#undef __perf_task
#define __perf_task(t)			(t)

/*
 * There are three kinds of parts of variable size: strings, whose size is measured; texts, whose
 * size is given; arrays. Parts with relative locations in ftrace are ordinary ones here.
 */
#undef __field_ext
#define __field_ext(type, item, filter_type)	__field(type, item)
#undef __field_struct
#define __field_struct(type, item)		__field(type, item)
#undef __field_struct_ext
#define __field_struct_ext(type, item, filter_type) __field(type, item)
#undef __vstring
#define __vstring(item, fmt, ap)		__string_of(item, __trace_event_vstr_len(fmt, ap))
#undef __bitmask
#define __bitmask(item, nr_bits) \
	__dynamic_array(unsigned long, item, BITS_TO_LONGS(nr_bits))
#undef __cpumask
#define __cpumask(item)				__bitmask(item, nr_cpumask_bits)
#undef __sockaddr
#define __sockaddr(item, len)			__dynamic_array(u8, item, len)
#undef __rel_dynamic_array
#define __rel_dynamic_array(type, item, len)	__dynamic_array(type, item, len)
#undef __rel_string
#define __rel_string(item, src)			__string(item, src)
#undef __rel_string_len
#define __rel_string_len(item, src, len)	__string_len(item, src, len)
#undef __rel_bitmask
#define __rel_bitmask(item, nr_bits)		__bitmask(item, nr_bits)
#undef __rel_cpumask
#define __rel_cpumask(item)			__cpumask(item)
#undef __rel_sockaddr
#define __rel_sockaddr(item, len)		__sockaddr(item, len)

#undef DEFINE_EVENT
#define DEFINE_EVENT(template, name, proto, args)

/*
 * By `#define rtrace_with_rq_CLASS 1` a preamble adds a field to the records of a class: the address of the tracepoint's
 * argument `rq`, which identifies a request until its end.
 */
#undef RTRACE_WITH_RQ
#define RTRACE_WITH_RQ(class, what...) \
	RTRACE_CONCATENATE(RTRACE_WITH_RQ_, __is_defined(rtrace_with_rq_##class))(what)
#undef RTRACE_WITH_RQ_0
#define RTRACE_WITH_RQ_0(what...)
#undef RTRACE_WITH_RQ_1
#define RTRACE_WITH_RQ_1(what...)		what

/* Stage 1. */

#undef __field
#define __field(type, item)			type item;
#undef __array
#define __array(type, item, len)		type item[len];
#undef __dynamic_array
#define __dynamic_array(type, item, len)
#undef __string
#define __string(item, src)
#undef __string_len
#define __string_len(item, src, len)
#undef __string_of
#define __string_of(item, size)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	struct rtrace_fixed_##call {						\
		tstruct								\
		RTRACE_WITH_RQ(call, __field(struct request *, rq))		\
	} __packed;

#include HEADER

/* Stage 2. */

#undef __field
#define __field(type, item)
#undef __array
#define __array(type, item, len)
#undef __dynamic_array
#define __dynamic_array(type, item, len)	struct rtrace_part item;
#undef __string
#define __string(item, src)			struct rtrace_part item;
#undef __string_len
#define __string_len(item, src, len)		__string(item, src)
#undef __string_of
#define __string_of(item, size)			struct rtrace_part item;

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	struct rtrace_parts_##call {						\
		tstruct								\
	};

#include HEADER

/* Stage 3. */

#undef __dynamic_array
#define __dynamic_array(type, item, len)					\
	__size = rtrace_place_array(&__parts->item, __size, len, sizeof(type));
#undef __string
#define __string(item, src)							\
	__string_from(item, src, rtrace_text_len(__parts->item.source))
#undef __string_len
#define __string_len(item, src, len)						\
	__string_from(item, src, rtrace_text_len_of(__parts->item.source, len))
#undef __string_of
#define __string_of(item, bytes)						\
	__size = rtrace_place_part(&__parts->item, __size, bytes);
#undef __string_from
#define __string_from(item, src, len)						\
	__parts->item.source = rtrace_source(src);				\
	__string_of(item, (len) + 1)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static inline notrace size_t						\
	rtrace_size_##call(struct rtrace_parts_##call *__parts, proto)		\
	{									\
		struct rtrace_fixed_##call *entry __maybe_unused;		\
		size_t __size = sizeof(*entry);				\
										\
		tstruct								\
		return __size;							\
	}

#undef __entry
#define __entry entry

#include HEADER

/* Stage 4. */

#undef __field
#define __field(type_, item) {							\
	.name = #item, .type = RTRACE_TYPE(type_), .size = RTRACE_SIZE(type_),	\
	.count = RTRACE_COUNT(type_) },
#undef __array
#define __array(type_, item, len) {						\
	.name = #item, .type = RTRACE_TYPE_OF_ARRAY(type_),			\
	.size = RTRACE_SIZE(type_),						\
	.count = RTRACE_LENGTH((len) * (RTRACE_COUNT(type_) ?: 1)) },
#undef __dynamic_array
#define __dynamic_array(type_, item, len) {					\
	.name = #item, .type = RTRACE_TYPE_OF_ARRAY(type_),			\
	.size = RTRACE_SIZE(type_), .count = RTRACE_VARIES },
#undef __string
#define __string(item, src)		{ .name = #item, .type = RTRACE_STRING },
#undef __string_len
#define __string_len(item, src, len)	__string(item, src)
#undef __string_of
#define __string_of(item, bytes)	__string(item, src)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static struct rtrace_field rtrace_fields_##call[] __ro_after_init __maybe_unused = { \
		tstruct								\
		RTRACE_WITH_RQ(call, __field(struct request *, rq))		\
	};									\
	static const char rtrace_text_##call[] __initconst = __stringify((print)); \
	static const struct rtrace_class rtrace_class_##call			\
		__used __aligned(8) __section(".init.rtrace_classes") = {	\
		.fields = rtrace_fields_##call,					\
		.nr_fields = ARRAY_SIZE(rtrace_fields_##call),			\
		.text = rtrace_text_##call,					\
	};

#include HEADER

/*
 * Stage 5. TP_printk() is never called, and has no code. But it contains the tables of names, and these stay. (The
 * label makes clang examine unreachable code. gcc needs none.)
 */
#ifndef RTRACE_WITHOUT_NAMES

#undef TP_printk
#define TP_printk(fmt, args...)							\
	if (0) {								\
never: __maybe_unused;								\
		_printk(fmt "\n", ##args);					\
	}

/* The printed record has ftrace's layout. */
#undef __field
#define __field(type, item)			type item;
#undef __array
#define __array(type, item, len)		type item[len];
#undef __dynamic_array
#define __dynamic_array(type, item, len)	u32 __data_loc_##item;
#undef __string
#define __string(item, src)			u32 __data_loc_##item;
#undef __string_of
#define __string_of(item, size)			u32 __data_loc_##item;

#undef RTRACE_NAMES
#define RTRACE_NAMES(expression_, names_...) ({					\
	static const struct rtrace_value_name __names[] = { names_ };		\
	static const struct rtrace_names __named				\
		__used __aligned(8) __section(".init.rtrace_names") = {		\
		.class = &__class,						\
		.expression = #expression_,					\
		.names = __names,						\
		.nr_names = ARRAY_SIZE(__names),				\
	};									\
	"";									\
})
#undef __print_flags
#define __print_flags(flag, delim, flags...)	RTRACE_NAMES(flag, flags)
#undef __print_flags_u64
#define __print_flags_u64(flag, delim, flags...) RTRACE_NAMES(flag, flags)
#undef __print_symbolic
#define __print_symbolic(value, symbols...)	RTRACE_NAMES(value, symbols)
#undef __print_symbolic_u64
#define __print_symbolic_u64(value, symbols...)	RTRACE_NAMES(value, symbols)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static void __init __used rtrace_print_##call(void)			\
	{									\
		static const struct rtrace_class *const __class	__initconst =	\
			&rtrace_class_##call;					\
		struct {							\
			struct trace_entry ent;					\
			tstruct							\
		} *__entry __maybe_unused = NULL;				\
		struct trace_seq *p __maybe_unused = NULL;			\
		int ret __maybe_unused = 0;					\
										\
		print;								\
	}

#undef __entry
#undef __get_dynamic_array
#define __get_dynamic_array(item)		((void *)__entry)
#undef __get_dynamic_array_len
#define __get_dynamic_array_len(item)		0
#undef __get_str
#define __get_str(item)				""
#undef __get_bitmask
#define __get_bitmask(item)			""
#undef __get_cpumask
#define __get_cpumask(item)			""
#undef __get_sockaddr
#define __get_sockaddr(item)			((struct sockaddr *)__entry)
#undef __get_rel_dynamic_array
#define __get_rel_dynamic_array(item)		__get_dynamic_array(item)
#undef __get_rel_dynamic_array_len
#define __get_rel_dynamic_array_len(item)	__get_dynamic_array_len(item)
#undef __get_rel_str
#define __get_rel_str(item)			__get_str(item)
#undef __get_rel_bitmask
#define __get_rel_bitmask(item)			__get_bitmask(item)
#undef __get_rel_cpumask
#define __get_rel_cpumask(item)			__get_cpumask(item)
#undef __get_rel_sockaddr
#define __get_rel_sockaddr(item)		__get_sockaddr(item)
#undef __print_hex
#define __print_hex(buf, len)			""
#undef __print_hex_str
#define __print_hex_str(buf, len)		""
#undef __print_array
#define __print_array(array, count, size)	""
#undef __print_dynamic_array
#define __print_dynamic_array(array, size)	""
#undef __print_hex_dump
#define __print_hex_dump(prefix, type, row, group, buf, len, ascii) ""
#undef __print_ns_to_secs
#define __print_ns_to_secs(value)		(u64)(value)
#undef __print_ns_without_secs
#define __print_ns_without_secs(value)		(u32)(value)
#undef __get_buf
#define __get_buf(len)				((char *)NULL)
#undef __event_in_hardirq
#define __event_in_hardirq()			0
#undef __event_in_softirq
#define __event_in_softirq()			0
#undef __event_in_irq
#define __event_in_irq()			0

#include HEADER

#define __entry entry
#endif

/* Stage 6. Some paths of TP_fast_assign() do not assign everything. */

#undef __field
#define __field(type, item)
#undef __array
#define __array(type, item, len)
#undef __dynamic_array
#define __dynamic_array(type, item, len)					\
	rtrace_put_empty_array(entry, &__parts->item, sizeof(type));
#undef __string
#define __string(item, src)
#undef __string_len
#define __string_len(item, src, len)
#undef __string_of
#define __string_of(item, size)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static __always_inline void						\
	rtrace_empty_##call(struct rtrace_fixed_##call *entry,			\
			    struct rtrace_parts_##call *__parts)		\
	{									\
		rtrace_clear(entry, sizeof(*entry));				\
		tstruct								\
	}

#include HEADER

#undef __dynamic_array
#define __dynamic_array(type, item, len)
#undef __string
#define __string(item, src)							\
	__string_of(item, size)
#undef __string_len
#define __string_len(item, src, len)						\
	__string_of(item, size)
#undef __string_of
#define __string_of(item, size)							\
	if (!__parts->item.is_put)						\
		rtrace_put_no_string(entry, &__parts->item);

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static __always_inline void						\
	rtrace_complete_##call(struct rtrace_fixed_##call *entry,		\
			       struct rtrace_parts_##call *__parts)		\
	{									\
		tstruct								\
	}

#include HEADER

/* Stage 7. */

#undef __string
#define __string(item, src)
#undef __string_len
#define __string_len(item, src, len)
#undef __string_of
#define __string_of(item, size)

#undef __get_dynamic_array
#define __get_dynamic_array(item)		((void *)entry + __parts.item.offset)
#undef __get_dynamic_array_len
#define __get_dynamic_array_len(item)		(__parts.item.size)
#undef __get_str
#define __get_str(item)				((char *)__get_dynamic_array(item))
#undef __get_bitmask
#define __get_bitmask(item)			((unsigned long *)__get_dynamic_array(item))
#undef __get_cpumask
#define __get_cpumask(item)			__get_bitmask(item)
#undef __get_sockaddr
#define __get_sockaddr(item)			((struct sockaddr *)__get_dynamic_array(item))
#undef __assign_str
#define __assign_str(item) \
	rtrace_put_string(entry, &__parts.item)
#undef __assign_vstr
#define __assign_vstr(item, fmt, va) \
	rtrace_put_vstring(entry, &__parts.item, fmt, va)
#undef __assign_bitmask
#define __assign_bitmask(item, src, nr_bits) \
	memcpy(__get_bitmask(item), (src), BITS_TO_LONGS(nr_bits) * sizeof(long))
#undef __assign_cpumask
#define __assign_cpumask(item, src)		__assign_bitmask(item, src, nr_cpumask_bits)
#undef __assign_sockaddr
#define __assign_sockaddr(item, src, len)	memcpy(__get_dynamic_array(item), (src), len)
#undef __get_rel_dynamic_array
#define __get_rel_dynamic_array(item)		__get_dynamic_array(item)
#undef __get_rel_dynamic_array_len
#define __get_rel_dynamic_array_len(item)	__get_dynamic_array_len(item)
#undef __get_rel_str
#define __get_rel_str(item)			__get_str(item)
#undef __get_rel_bitmask
#define __get_rel_bitmask(item)			__get_bitmask(item)
#undef __get_rel_cpumask
#define __get_rel_cpumask(item)			__get_cpumask(item)
#undef __get_rel_sockaddr
#define __get_rel_sockaddr(item)		__get_sockaddr(item)
#undef __assign_rel_str
#define __assign_rel_str(item)			__assign_str(item)
#undef __assign_rel_bitmask
#define __assign_rel_bitmask(item, src, nr_bits) __assign_bitmask(item, src, nr_bits)
#undef __assign_rel_cpumask
#define __assign_rel_cpumask(item, src)		__assign_cpumask(item, src)
#undef __assign_rel_sockaddr
#define __assign_rel_sockaddr(item, src, len)	__assign_sockaddr(item, src, len)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(call, proto, args, tstruct, assign, print)		\
	static notrace __maybe_unused __section(".kprobes.text") void		\
	rtrace_probe_##call(void *__data, proto)				\
	{									\
		struct rtrace_parts_##call __parts __maybe_unused;		\
		struct rtrace_fixed_##call *entry;				\
		struct rtrace_record __room;					\
										\
		entry = rtrace_record_begin(__data, &__room,			\
					       rtrace_size_##call(&__parts, args));	\
		if (!entry)							\
			return;							\
		rtrace_empty_##call(entry, &__parts);				\
		{ assign; }							\
		RTRACE_WITH_RQ(call, entry->rq = rq;)				\
		rtrace_complete_##call(entry, &__parts);			\
		rtrace_record_end(rtrace_laid_down(&__room, entry));		\
	}

/*
 * The configuration of a tracepoint decides whether it is the kernel's or a module's. The description of a module's
 * stays, because modules come and go.
 *
 * By `#define rtrace_without_NAME 1` a preamble leaves out an event that modules cannot have.
 */
#undef DEFINE_EVENT
#define DEFINE_EVENT(template, name, proto, args) \
	RTRACE_CONCATENATE(RTRACE_EVENT_, __is_defined(rtrace_without_##name))(template, name)
#undef RTRACE_EVENT_1
#define RTRACE_EVENT_1(template, name)
#undef RTRACE_EVENT_0
#define RTRACE_EVENT_0(template, name_)						\
	static const struct rtrace_tracepoint rtrace_event_##name_		\
		__used __aligned(8) __section("rtrace_tracepoints") = {		\
		.event = {							\
			.subsystem = __stringify(TRACE_SYSTEM),			\
			.name = #name_,						\
			.fields = rtrace_fields_##template,			\
			.nr_fields = ARRAY_SIZE(rtrace_fields_##template),	\
		},								\
		.owner = THIS_MODULE,						\
		.probe = rtrace_probe_##template,				\
		.module = RTRACE_KERNEL_MODULES,				\
	}

#include HEADER
