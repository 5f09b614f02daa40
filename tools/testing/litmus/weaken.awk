# SPDX-License-Identifier: GPL-2.0
# Usage: awk -v weaken=N[,N] -f weaken.awk TEST.litmus
#
# Prints the litmus test with its orders number N weakened, as a test named TEST.N. Without
# `weaken` it prints a list of all orders, "N: ORDER". An order keeps accesses in sequence:
#
#   P1 smp_mb 2           the second smp_mb() of program P1; it is removed
#   P1 release 1          smp_store_release(); becomes a WRITE_ONCE()
#   P1 acquire 1          smp_load_acquire(); becomes a READ_ONCE()
#   P1 cmpxchg 1          becomes relaxed
#   P1 spin_lock NAME     that program's uses of the lock; they are removed
#   P1 rcu_read_lock, synchronize_rcu 1   are removed
#   interrupt             is neither served nor waited for
#
# In a test of arm64 the programs are columns of instructions:
#
#   P1 DMB 2              the second barrier; it is removed
#   P1 LDAR 1, STLR 1     become LDR and STR
#
# barrier() is no order here: in the model no compiler moves an access. A separate test has the access
# at the place where a compiler may move it (deliver-ipi-no-publish).

# A new order.
function order(kind) { return number(program " " kind " " ++times[program, kind]) }

# Numbers an order when it is first seen. Returns whether to weaken it.
function number(name) {
	if (!(name in numbers)) {
		numbers[name] = ++count
		if (!weaken) print count ": " name
	}
	return index("," weaken ",", "," numbers[name] ",") != 0
}

# Weakens the instructions of a row, a column for each program.
function row(line,    columns, n, i, kind) {
	n = split(line, columns, "|")
	for (i = 1; i <= n; i++) if (match(columns[i], /DMB|LDAR|STLR/)) {
		program = "P" (i - 1)
		kind = substr(columns[i], RSTART, RLENGTH)
		if (!order(kind)) continue
		if (kind == "DMB") sub(/DMB [A-Z]*/, "NOP", columns[i])
		else sub(kind, kind == "LDAR" ? "LDR" : "STR", columns[i])
	}
	line = columns[1]
	for (i = 2; i <= n; i++) line = line "|" columns[i]
	return line
}

/^AArch64 / { is_arm64 = 1 }
is_arm64 && /;$/ { line = row($0); if (weaken) print line; next }
/^(C|AArch64) / && weaken { name = weaken; gsub(/,/, "+", name); print $0 "." name; next }
/^P[0-9]+\(/ { program = $0; sub(/\(.*/, "", program) }
{ line = $0 }
line ~ /READ_ONCE\(\*ipi\)/ { handler = number("interrupt"); if (handler) dropped = 1 }
handler { if (line ~ /WRITE_ONCE\(\*ack,/) handler = 0; next }
dropped && line ~ /WRITE_ONCE\(\*ipi,/ { next }
dropped { sub(/READ_ONCE\(\*ack\)/, "1", line) }
line ~ /^\t+smp_mb\(\);/ { if (order("smp_mb")) next }
line ~ /^\t+synchronize_rcu\(\);/ { if (order("synchronize_rcu")) next }
line ~ /^\t+rcu_read_(un)?lock\(\);/ { if (number(program " rcu_read_lock")) next }
line ~ /^\t+spin_(un)?lock\(/ { split(line, part, /[()]/); if (number(program " spin_lock " part[2])) next }
line ~ /smp_store_release\(/ { if (order("release")) sub(/smp_store_release\(/, "WRITE_ONCE(*", line) }
line ~ /smp_load_acquire\(/ { if (order("acquire")) sub(/smp_load_acquire\(/, "READ_ONCE(*", line) }
line ~ /cmpxchg\(/ { if (order("cmpxchg")) sub(/cmpxchg\(/, "cmpxchg_relaxed(", line) }
weaken { print line }
