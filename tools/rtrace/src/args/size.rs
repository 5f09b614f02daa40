// SPDX-License-Identifier: GPL-2.0

//! Size of an answer.

use clap::Args;
use terminal::budget::Budget;

/// An option for programs that read answers.
#[derive(Clone, Copy, Debug, Args)]
pub struct SizeArgs {
    /// Answer in about N tokens of text, for a program with a language model
    ///
    /// A token is counted as three bytes. Rows that do not fit are left out, from the least important end of each table.
    /// The last line says how many; with --json, which is then one line, the field `left_out` does.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N")]
    pub budget: Option<Budget>,
}
