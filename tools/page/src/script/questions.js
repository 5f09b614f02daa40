// SPDX-License-Identifier: GPL-2.0

// Answers to the questions of `rtrace report`, as in its JSON. A question without an entry in this list has a
// view, too: each list of objects in its answer is a table.

const TIMES = ["timed", "total_ns", "average_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"];

/** Fields of the times of a row's part. */
const times = part => ["timed", "average_ns", "p50_ns", "p99_ns", "max_ns"].map(field => `${part}_${field}`);

/** By name of an answer: its title, its subject, the columns of its tables, and the same of its parts. Each part of
 * a field in `spread` becomes a column. */
const QUESTIONS = {
	latency: {
		title: "Latency",
		about: "How long threads that were woken waited until they ran.",
		tables: {
			histogram: { title: "Histogram", fields: ["from_ns", "below_ns", "count"] },
			worst: { title: "The longest waits", fields: ["latency_ns", "woken_ns", "cpu", "tid", "comm"] },
			threads: { title: "Threads", fields: ["comm", "tid", "wakeups", "total_ns", "average_ns", "max_ns"] },
		},
		parts: {
			preempted: {
				title: "Preempted threads",
				about: "How long threads that were preempted, or that yielded, waited until they ran again.",
				tables: {
					worst: { title: "The longest waits", fields: ["latency_ns", "since_ns", "cpu", "tid", "comm"] },
				},
			},
		},
	},
	syscalls: {
		title: "System calls",
		about: "Which system calls were made, how many failed, and how long they took.",
		tables: {
			calls: { title: "System calls", fields: ["name", "calls", "errors", ...TIMES] },
			processes: { title: "By process", fields: ["comm", "pid", "tid", "name", "calls", "errors", "timed", "total_ns", "average_ns", "max_ns"] },
		},
	},
	threads: {
		title: "Threads",
		about: "How long each thread ran, could have run, and was blocked; and how often it left its CPU in which state.",
		tables: {
			threads: {
				title: "Threads",
				fields: ["comm", "tid", "pid", "running_ns", "interrupted_ns", "runnable_ns", "runnable_woken_ns", "runnable_sent_off_ns", "blocked_ns", "blocked", "left"],
			},
		},
	},
	cpu: {
		title: "CPUs",
		about: "How long each CPU was busy, idle, and in interrupts.",
		tables: {
			cpus: { title: "CPUs", fields: ["cpu", "busy_ns", "idle_ns", "unknown_ns", "hard_ns", "soft_ns"] },
		},
	},
	irq: {
		title: "Interrupts",
		about: "Interrupts, hard and soft, from entry to exit, with the interrupts in between.",
		tables: {
			interrupts: { title: "Interrupts", fields: ["kind", "number", "name", ...TIMES] },
		},
	},
	io: {
		title: "Input and output",
		about: "Requests to block devices and to io_uring, and how long they took.",
		tables: {
			devices: {
				title: "Devices",
				spread: ["queued", "served"],
				fields: ["device", "operation", "requests", "failed", "bytes", "depth_mean", "depth_max", ...times("queued"), ...times("served")],
			},
			longest: { title: "The longest requests", fields: ["total_ns", "queued_ns", "begin_ns", "device", "operation", "sector", "bytes", "tid", "comm"] },
		},
		parts: {
			uring: {
				title: "io_uring",
				about: "Requests of io_uring, by process and operation.",
				tables: {
					operations: {
						title: "Operations",
						spread: ["took"],
						fields: ["operation", "comm", "pid", "tid", "submitted", "done", "failed", "open", "by_worker", "fixed", ...times("took")],
					},
				},
			},
			files: {
				title: "Files",
				about: "What was read and written of which file.",
				tables: {
					uses: { title: "Files", fields: ["file", "fd", "comm", "pid", "tid", "reads", "read_bytes", "writes", "written_bytes", "errors", "total_ns", "max_ns"] },
				},
			},
		},
	},
	locks: {
		title: "Locks",
		about: "How long threads waited for locks of the kernel, and for futexes.",
		tables: {
			kernel: {
				title: "Locks of the kernel",
				spread: ["longest"],
				fields: ["kind", "address", "place", ...TIMES, "failed", "unfinished", "longest_comm", "longest_tid", "longest_begin_ns"],
			},
			futexes: {
				title: "Futexes",
				spread: ["longest"],
				fields: ["comm", "pid", "tid", "address", ...TIMES, "failed", "unfinished", "longest_comm", "longest_tid", "longest_begin_ns"],
			},
			waiters: {
				title: "Who waited for whom",
				spread: ["waiter", "holder"],
				fields: ["waiter_comm", "waiter_tid", "holder_comm", "holder_tid", "kind", "address", "pid", "waits", "failed", "unfinished", "total_ns", "max_ns", "max_begin_ns"],
			},
		},
	},
	profile: {
		title: "Profile",
		about: "In which functions the time of the CPUs went by, by samples of what ran.",
		tables: {
			functions: { title: "Functions", fields: ["self", "total", "name", "object"] },
			comms: { title: "Threads", fields: ["comm", "samples"] },
		},
	},
	maps: {
		title: "Maps",
		about: "What the kernel counted during the recording, whether it recorded the events or not.",
		tables: {},
	},
	events: {
		title: "Events",
		about: "How often each event was recorded.",
		tables: {
			events: { title: "Events", fields: ["name", "count"] },
		},
	},
};

const isPart = value => value !== null && typeof value === "object" && !Array.isArray(value);
const isTable = value => Array.isArray(value) && value.every(row => row !== null && typeof row === "object");
const isAnswer = (name, value) => name in QUESTIONS || isPart(value) && Object.values(value).some(isTable);

/** Returns a row in which each part of these fields is a column. */
function spread(row, fields) {
	const parts = fields.flatMap(field => Object.entries(row[field] ?? {}).map(([part, value]) => [`${field}_${part}`, value]));
	return { ...row, ...Object.fromEntries(parts) };
}

/** Returns the names of the answers in a report: first the names of the list in its order, then others. */
function answersOf(report) {
	const names = Object.keys(report).filter(name => isAnswer(name, report[name]));
	const known = Object.keys(QUESTIONS);
	const order = name => known.includes(name) ? known.indexOf(name) : known.length;
	return names.sort((a, b) => order(a) - order(b));
}

const titleOf = name => QUESTIONS[name]?.title ?? heading(name);

/** Returns the view of maps: a table for each. The bars of a histogram are those of its key. */
function mapsOf(trace, maps, follow) {
	const sections = maps.flatMap(({ map, keys, columns, rows, overflow, ...rest }) => {
		const isHistogram = rows.some(row => "from" in row);
		const keyOf = row => JSON.stringify(keys.map(key => row[key]));
		const groups = new Map();
		for (const row of rows)
			groups.has(keyOf(row)) ? groups.get(keyOf(row)).push(row) : groups.set(keyOf(row), [row]);
		const bars = new Map([...groups].map(([key, those]) => [key, barsOf(those)]));
		const column = isHistogram ? [["up to here", row => bars.get(keyOf(row))[1](row)]] : [];
		const fields = [...keys, ...isHistogram ? ["from", "to"] : [], ...columns];
		const losses = [["no room", overflow.count], ...Object.entries(rest)].filter(([, count]) => count > 0);
		return [
			new Table(trace, map, rows, fields, follow, column).root,
			definitions({ class: "facts" }, losses.map(([what, count]) => [what, number(count)])),
		];
	});
	return element("div", { class: "answer" },
		element("h2", {}, titleOf("maps")),
		element("p", { class: "what" }, QUESTIONS.maps.about),
		...sections);
}

/** Returns the view of an answer. */
function viewOf(trace, name, follow) {
	if (name === "maps")
		return mapsOf(trace, trace.report.maps, follow);
	return element("div", { class: "answer" }, ...sectionsOf(trace, name, trace.report[name], QUESTIONS[name] ?? {}, follow));
}

/** Returns the section of an answer or of a part of one, followed by the sections of its own parts. */
function sectionsOf(trace, name, answer, { title = heading(name), about = "", tables = {}, parts = {} }, follow) {
	const known = Object.keys(tables).filter(table => isTable(answer[table]));
	const others = Object.keys(answer).filter(table => isTable(answer[table]) && !known.includes(table));
	const isAlone = known.length + others.length === 1;
	const made = [...known, ...others].map(table => {
		const of = tables[table] ?? { title: heading(table), fields: [...new Set(answer[table].flatMap(Object.keys))] };
		const rows = answer[table].map(row => spread(row, of.spread ?? []));
		const columns = table === "histogram" ? [barsOf(rows)] : [];
		const root = new Table(trace, isAlone ? null : of.title, rows, of.fields.filter(field => rows.some(row => field in row)), follow, columns).root;
		const left = answer[`${table}_left_out`];
		if (left)
			root.append(element("p", { class: "what" }, `${counted(left, "row")} more: \`rtrace report --json\` has all.`));
		return root;
	});
	return [
		element("h2", {}, title),
		element("p", { class: "what" }, [about, ...remarks(answer)].join(" ")),
		definitions({ class: "facts" }, figures(answer)),
		...made,
		...Object.keys(answer).filter(part => isPart(answer[part]))
			.flatMap(part => sectionsOf(trace, part, answer[part], parts[part] ?? {}, follow)),
	];
}

/** Returns the figures of an answer outside its tables, as pairs. */
function figures(answer) {
	const order = ([field]) => TIMES.includes(field) ? TIMES.indexOf(field) : -1;
	return Object.entries(answer).sort((a, b) => order(a) - order(b))
		.filter(([field, value]) => typeof value === "number" && value > 0 && !/_left_out$|_error$|_missing$|^(mistaken|unknown)$/.test(field))
		.map(([field, value]) => [heading(field), field.endsWith("_ns") ? duration(value) : number(value)]);
}

/** Returns the remarks that a reader of the figures must know. */
function remarks(answer) {
	const says = [];
	if (answer.percentile_error)
		says.push(`Percentiles are at most ${answer.percentile_error * 100} % too large.`);
	if (answer.switches_missing > 0 || answer.mistaken > 0)
		says.push("Not every sched_switch was recorded: the times are lower bounds.");
	if (answer.unknown > 0)
		says.push(`${counted(answer.unknown, "call")} with an unknown file: the trace lacks their begin.`);
	if (answer.insert_recorded === false)
		says.push("The times of queueing requests are not in the trace.");
	if (answer.wakeups_recorded === false)
		says.push("Wake-ups of threads are not in the trace: the wait for a CPU is counted as blocked.");
	if (answer.hard_recorded === false)
		says.push("Hard interrupts are not in the trace.");
	if (answer.soft_recorded === false)
		says.push("Soft interrupts are not in the trace.");
	return says;
}
