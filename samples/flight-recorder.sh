#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Usage: flight-recorder.sh -o DIR [OPTION]... -- COMMAND...
# Records COMMAND, and writes the events before its failure, or before a SIGUSR1, to DIR/1.
exec rtrace record --overwrite --snapshot-on failure --snapshot-on signal:USR1 --count 1 "$@"
