# SPDX-License-Identifier: GPL-2.0
#
# Reads the output of objdump -tr for an object. Prints the events that use one of the symbols in the variable
# missing, directly or through other functions of the object: NAME SYMBOL, a line for each.
BEGIN { for (n = split(missing, names, " "); n; n--) lacks[names[n]] = names[n] }
# Returns the symbol at an offset of a section, or the last before it.
function at(section, offset,   low, high, middle) {
	low = 1; high = count[section]
	while (low < high) {
		middle = int((low + high + 1) / 2)
		if (begin[section, middle] <= offset) low = middle; else high = middle - 1
	}
	return called[section, low]
}
function number(digits,   value, i) {
	for (i = 1; i <= length(digits); i++)
		value = value * 16 + index("0123456789abcdef", substr(digits, i, 1)) - 1
	return value + 0
}
/^RELOCATION RECORDS FOR/ { section = $4; gsub(/[[:punct:]]+$/, "", section); sub(/^\[/, "", section); next }
# Functions and events; objdump prints symbols in no order.
/^[0-9a-f]+ [lg] .* [FO] / {
	split($0, half, "\t"); words = split(half[1], word, " ")
	place = word[words]; value = number($1)
	for (i = ++count[place]; i > 1 && begin[place, i - 1] > value; i--) {
		begin[place, i] = begin[place, i - 1]; called[place, i] = called[place, i - 1]
	}
	begin[place, i] = value; called[place, i] = $NF
	next
}
/^[0-9a-f]+ R_(X86_64|AARCH64)_/ {
	target = $3; addend = 0
	if (match(target, /[+-]0x[0-9a-f]+$/)) {
		addend = number(substr(target, RSTART + 3)) * (substr(target, RSTART, 1) == "-" ? -1 : 1)
		target = substr(target, 1, RSTART - 1)
	}
	# On x86-64: relative to the following address.
	if ($2 ~ /_(PC32|PLT32)$/) addend += 4
	uses++; user[uses] = section; where[uses] = number($1); used[uses] = target; far[uses] = addend
}
END {
	for (i = 1; i <= uses; i++) {
		if (!(user[i] in count)) continue
		from[i] = at(user[i], where[i])
		if (used[i] in count) used[i] = at(used[i], far[i])
	}
	do {
		more = 0
		for (i = 1; i <= uses; i++)
			if (from[i] != "" && used[i] in lacks && !(from[i] in lacks)) {
				lacks[from[i]] = lacks[used[i]]; more = 1
			}
	} while (more)
	for (name in lacks)
		if (sub(/^rtrace_event_/, "", name)) print name, lacks["rtrace_event_" name]
}
