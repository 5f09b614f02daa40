#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Usage: flight-recorder.sh -o DIR [OPTION]... -- COMMAND...: what led to its failure, or to a SIGUSR1, in DIR/1
exec rtrace record --overwrite --snapshot-on failure --snapshot-on signal:USR1 --snapshots 1 "$@"
