# SPDX-License-Identifier: GPL-2.0
"""Usage: check.py duckdb | spark TABLES QUERIES REPORTS ANSWERS
       check.py query ANSWERS ROWS
       check.py babeltrace TABLES TEXT
       check.py perfetto FILE TEXT

Asks the ready queries of tables that tools/testing/run tables has exported, with DuckDB or with Spark. DuckDB's answers
are kept in ANSWERS; Spark's must be the same. DuckDB's figures must be those of `rtrace report --json`, of which
REPORTS has one for each trace. Or compares DuckDB's answers with those of `rtrace query`, which are in ROWS as JSON. Or
compares the tables of one trace, or the FILE that `rtrace export perfetto` wrote, event by event, with TEXT, which
babeltrace2 has made of the trace. FILE is read by Perfetto's own schema. Prints PASS and FAIL lines.
"""

import datetime
import decimal
import json
import pathlib
import re
import sys
import traceback

EPOCH = datetime.datetime(1970, 1, 1)
# The report's percentile may be too large by this factor.
PERCENTILE_ERROR = 1.001

failed = False


def result(what, wrong):
    """Says how a comparison ended; `wrong` is what is wrong, if something is."""
    global failed
    failed = failed or bool(wrong)
    for line in str(wrong or "").splitlines()[:8]:
        print("#", line[:400])
    print("FAIL" if wrong else "PASS", "tables:", what)


class DuckDb:
    """DuckDB, with a view for each table."""

    def __init__(self, tables):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.tables = sorted(tables.iterdir())
        self.make("VIEW")

    def make(self, what):
        for table in self.tables:
            self.connection.execute(
                f"CREATE {what} \"{table.name}\" AS SELECT * FROM read_parquet("
                f"'{table}/**/*.parquet', hive_partitioning = true, union_by_name = true)"
            )

    def load(self):
        """Reads all into memory: what is asked from now on is soon answered."""
        for table in self.tables:
            self.connection.execute(f'DROP VIEW "{table.name}"')
        self.make("TABLE")

    def ask(self, query):
        relation = self.connection.sql(query)
        if "time" in relation.columns:
            # (Python's times need a module that is missing.)
            relation = self.connection.sql(f"SELECT * REPLACE (epoch_us(time) AS time) FROM ({query})")
        return relation.columns, relation.fetchall()


class Spark:
    """Spark with two workers, with a view for each table."""

    def __init__(self, tables):
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[2]").appName("tables")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }.items():
            session = session.config(key, value)
        self.session = session.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for table in sorted(tables.iterdir()):
            frame = self.session.read.option("mergeSchema", "true").parquet(str(table))
            frame.createOrReplaceTempView(table.name)

    def ask(self, query):
        frame = self.session.sql(query)
        return frame.columns, [list(row) for row in frame.collect()]


def plain(value):
    """A value as JSON has it, the same from both engines."""
    if isinstance(value, datetime.datetime):
        return round((value.replace(tzinfo=None) - EPOCH) / datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return str(value)
    if isinstance(value, (float, decimal.Decimal)):
        return float(f"{float(value):.10g}")
    return value


def answers(engine, queries):
    """The columns and rows of each query's answer."""
    found = {}
    for path in sorted(queries.glob("*.sql")):
        columns, rows = engine.ask(path.read_text())
        found[path.stem] = [list(columns)] + [[plain(value) for value in row] for row in rows]
    return found


def asked(rows):
    """The answers of `rtrace query --format json`. It writes times as texts."""
    found = {}
    for path in sorted(rows.glob("*.json")):
        answer = json.loads(path.read_text())["rows"]
        for row in answer:
            if "time" in row:
                row["time"] = datetime.datetime.fromisoformat(row["time"])
        columns = [list(answer[0])] if answer else []
        found[path.stem] = columns + [[plain(value) for value in row.values()] for row in answer]
    return found


def compare(found, expected, engine):
    """Both must have answered all queries, alike."""
    result("both engines have the same ten queries", set(found) ^ set(expected))
    for name in sorted(expected):
        wrong = [pair for pair in zip(found[name], expected[name]) if pair[0] != pair[1]]
        if len(found[name]) != len(expected[name]):
            wrong.append(f"{len(found[name])} rows, not {len(expected[name])}")
        result(f"{name}: {engine} says what DuckDB says, {len(expected[name]) - 1} rows", wrong)


def what_is_wrong(found):
    """The answers that do not name the faults that the fleet was made with."""
    first = {name: rows[1] if len(rows) > 1 else None for name, rows in found.items()}
    expected = {
        "worst-wakeups": "machine-03",
        "run-queue": "machine-03",
        "interrupt-storm": "machine-07",
        "switches": "machine-11",
    }
    wrong = [name for name, rows in found.items() if len(rows) < 2]
    wrong += [(name, host, first[name]) for name, host in expected.items() if first[name][0] != host]
    if {row[1] for row in found["slower-calls"][1:]} != {"openat"}:
        wrong.append(found["slower-calls"])
    if {(name, error) for name, error, *_ in found["errors"][1:]} != {("openat", "ENOENT"), ("read", "EAGAIN")}:
        wrong.append(found["errors"])
    result(f"the {len(found)} queries find what is wrong with the machines", wrong)


def against_reports(engine, reports):
    """The tables' figures of each trace, and the report's."""
    ask = lambda query: engine.ask(query)[1]
    wrong = {what: [] for what in ("events", "calls", "waits for a CPU", "time on CPUs", "interrupts", "samples", "losses")}
    for path in sorted(reports.glob("*.json")):
        report, counts = (json.loads(path.with_suffix(suffix).read_text()) for suffix in (".json", ".counts"))
        host, day = path.stem.rsplit("-", 1)
        # (Not by the date: each trace spans two days.)
        begin, end = ((1_700_006_399 + 86_400 * int(day) + after) * 10**9 for after in (0, 43_200))
        of = f"host = '{host}' AND ns >= {begin} AND ns < {end}"

        def same(what, found, expected):
            if found != expected:
                wrong[what].append((path.stem, found, expected))

        for event in counts["events"]:
            rows = ask(f"SELECT COUNT(*) FROM {event['name']} WHERE {of}")
            same("events", (event["name"], rows[0][0]), (event["name"], event["count"]))
        calls = ask(
            "SELECT name, COUNT(*), COUNT(error),"
            f" COUNT(duration_ns), SUM(duration_ns), MAX(duration_ns) FROM syscalls WHERE {of} GROUP BY name"
        )
        keys = ("name", "calls", "errors", "timed", "total_ns", "max_ns")
        same("calls", sorted(calls), sorted(tuple(call[key] for key in keys) for call in report["syscalls"]["calls"]))
        percentiles = "".join(
            f", percentile_disc({part}) WITHIN GROUP (ORDER BY duration_ns)" for part in (0.5, 0.95, 0.99)
        )
        row = ask(f"SELECT COUNT(*), SUM(duration_ns), MAX(duration_ns){percentiles} FROM wakeups WHERE {of}")[0]
        latency = report["latency"]
        same("waits for a CPU", row[:3], tuple(latency[key] for key in ("timed", "total_ns", "max_ns")))
        for exact, key in zip(row[3:], ("p50_ns", "p95_ns", "p99_ns")):
            if not exact <= latency[key] <= exact * PERCENTILE_ERROR:
                wrong["waits for a CPU"].append((path.stem, key, exact, latency[key]))
        busy = ask(f"SELECT cpu, SUM(duration_ns) FROM slices WHERE {of} GROUP BY cpu")
        same("time on CPUs", sorted(busy), sorted((cpu["cpu"], cpu["busy_ns"]) for cpu in report["cpu"]["cpus"]))
        handled = ask(
            f"SELECT kind, number, name, COUNT(*), SUM(duration_ns), MAX(duration_ns) FROM interrupts WHERE {of}"
            " GROUP BY kind, number, name"
        )
        keys = ("kind", "number", "name", "timed", "total_ns", "max_ns")
        same("interrupts", sorted(handled), sorted(tuple(row[key] for key in keys) for row in report["irq"]["interrupts"]))
        samples = ask(f"SELECT function, object, COUNT(*) FROM samples WHERE {of} AND (tid IS NULL OR tid <> 0) GROUP BY function, object")
        functions = [(row["name"], row["object"], row["self"]) for row in report["profile"]["functions"]]
        same("samples", sorted(samples), sorted(functions))
        lost = ask(f"SELECT COALESCE(SUM(events), 0) FROM losses WHERE {of}")
        same("losses", lost[0][0], report["lost"])
    for what, differences in wrong.items():
        result(f"{what}: rtrace report has the same figures", "\n".join(map(str, differences)))


# An event in babeltrace2's output with --clock-seconds; and a field of it.
LINE = re.compile(r"\[(\d+)\.(\d+)\] \(.*?\) (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, (.*)")
FIELD = re.compile(r'(\w+) = (\( .*? : container = .*? \)|"(?:[^"\\]|\\.)*"|\[ (?:\[\d+\] = [^,\]]+(?:, )?)* ?\]|[^,}\[\]"]+)')


def printed(text):
    """The value that babeltrace2 has printed."""
    named = re.match(r'\( "((?:[^"\\]|\\.)*)" : container = ', text)
    if named or text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", named[1] if named else text[1:-1])
    if text.startswith("["):
        return [printed(part.strip()) for part in re.findall(r"\[\d+\] = ([^,\]]+)", text)]
    return int(text, 0)


# Columns that each table of events has, and those of them that have the contexts which name the task.
COMMON = {"time", "ns", "cpu", "task_tid", "task_pid", "task_comm", "host", "date"}
TASK = {"tid": "task_tid", "pid": "task_pid", "procname": "task_comm"}


def column(name, row, values):
    """The column of a field or context (Documentation/howto/query-sql.md); None if it has none. "" is a column that is missing."""
    for found in name, f"field_{name}", f"context_{name}":
        if found in row and found not in COMMON:
            return found
    # babeltrace2 leaves out the underscore at the begin of a length's name.
    return TASK.get(name, None if name.endswith("_length") and name.removesuffix("_length") in values else "")


def events_of(path):
    """The events in babeltrace2's output: by name, each with its time in nanoseconds, CPU and values."""
    events = {}
    for line in path.read_text().splitlines():
        seconds, rest, event, cpu, fields = LINE.fullmatch(line).groups()
        values = {name: printed(value.strip()) for name, value in FIELD.findall(fields)}
        ns = int(seconds) * 1_000_000_000 + int(rest)
        events.setdefault(event, []).append((ns, int(cpu), values))
    return events


def against_babeltrace(tables, path):
    """Each event is in its table, with the same values."""
    expected = events_of(path)
    engine = DuckDb(tables)
    compared, wrong = 0, []
    for event, rows in sorted(expected.items()):
        columns, found = engine.ask(f'SELECT * EXCLUDE (time) FROM "{event}"')
        # Handles names that other columns have, numbers without a name, and fields with the length of another.
        found = [dict(zip(columns, row)) for row in found]
        by_time = lambda row: (row[0], row[1])
        found = sorted(((row["ns"], row["cpu"], row) for row in found), key=by_time)
        if len(found) != len(rows):
            wrong.append(f"{event}: {len(found)} rows, not {len(rows)}")
        for (ns, cpu, row), (ns_expected, cpu_expected, values) in zip(found, sorted(rows, key=by_time)):
            columns = {name: column(name, row, values) for name in values}
            pairs = [(row.get(columns[name], "no column"), value) for name, value in values.items() if columns[name] is not None]
            compared += len(pairs)
            differing = [pair for pair in pairs if pair[0] != pair[1] and pair[0] != str(pair[1])]
            if (ns, cpu) != (ns_expected, cpu_expected) or differing:
                wrong.append((event, ns, ns_expected, differing, [name for name in columns if columns[name] == ""]))
    result(f"{sum(map(len, expected.values()))} events, {compared} values: babeltrace2 prints the same", "\n".join(map(str, wrong)))
    if not compared:
        result("there is something to compare", "no value")


# Fields of Perfetto's messages, with the trace's names where these differ.
SHARED = {
    "sched_switch": {"prev_comm": "", "prev_pid": "prev_tid", "next_comm": "", "next_pid": "next_tid"},
    "sched_waking": {"comm": "", "pid": "tid", "target_cpu": ""},
}


def unknown(message, at):
    """The fields of a message, and of those in it, that the schema does not have."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    yield from (f"{at}: field {field.field_number}" for field in UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if field.is_repeated else [value]:
                yield from unknown(inner, f"{at}.{field.name}")


def against_schema(path, text):
    """All of the file is known to Perfetto's schema; it has each event, with its time, CPU, and values."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    trace = schema.Trace.FromString(path.read_bytes())
    result("Perfetto's schema has each field of an export", "\n".join(sorted(set(unknown(trace, "Trace")))))
    clocks = next(packet.clock_snapshot.clocks for packet in trace.packet if packet.HasField("clock_snapshot"))
    at = {clock.clock_id: clock.timestamp for clock in clocks}
    to_real = at[schema.BUILTIN_CLOCK_REALTIME] - at[schema.BUILTIN_CLOCK_BOOTTIME]
    found, named = [], []
    for bundle in (packet.ftrace_events for packet in trace.packet):
        for event in bundle.event:
            place = (event.timestamp + to_real, bundle.cpu)
            found.append(place)
            for name, fields in SHARED.items():
                if event.HasField(name):
                    message = getattr(event, name)
                    named.append((name, *place, [getattr(message, field) for field in fields]))
    expected = events_of(text)
    named_there = [
        (name, ns, cpu, [values[theirs or ours] for ours, theirs in fields.items()])
        for name, fields in SHARED.items()
        for ns, cpu, values in expected.get(name, [])
    ]
    places = [place[:2] for events in expected.values() for place in events]
    wrong = [] if named and sorted(found) == sorted(places) else [f"{len(found)} events, not {len(places)}, or other times"]
    wrong += [pair for pair in zip(sorted(named), sorted(named_there)) if pair[0] != pair[1]]
    wrong += [] if len(named) == len(named_there) else [f"{len(named)} of {', '.join(SHARED)}, not {len(named_there)}"]
    result(f"{len(found)} events in Perfetto's format are those that babeltrace2 prints", "\n".join(map(str, wrong)))


def run():
    if sys.argv[1] == "perfetto":
        against_schema(*map(pathlib.Path, sys.argv[2:]))
        return
    if sys.argv[1] == "babeltrace":
        against_babeltrace(*map(pathlib.Path, sys.argv[2:]))
        return
    if sys.argv[1] == "query":
        answered, rows = map(pathlib.Path, sys.argv[2:])
        compare(asked(rows), json.loads(answered.read_text()), "rtrace query")
        return
    name, tables, queries, reports, answered = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    engine = {"duckdb": DuckDb, "spark": Spark}[name](tables)
    found = answers(engine, queries)
    if name == "duckdb":
        answered.write_text(json.dumps(found))
        what_is_wrong(found)
        engine.load()
        against_reports(engine, reports)
    else:
        compare(found, json.loads(answered.read_text()), "Spark")


def main():
    try:
        run()
    except Exception:
        result(f"check.py {sys.argv[1]} goes to its end", "\n".join(traceback.format_exc().splitlines()[-8:]))
    sys.exit(failed)


main()
