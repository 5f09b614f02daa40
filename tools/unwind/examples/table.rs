// SPDX-License-Identifier: GPL-2.0

//! Prints the size of the tables of files, and the time to compile them.

use rtrace_unwind::rule::Rule;
use rtrace_unwind::table::UnwindTable;
use std::time::Instant;

fn main() {
    println!("rows rules rare bytes ms file");
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                println!("- - - - - {path}: {error}");
                continue;
            }
        };
        let begin = Instant::now();
        match unwind::compile(&bytes) {
            Ok(table) => {
                let ms = begin.elapsed().as_secs_f64() * 1e3;
                let checked = UnwindTable::check(&table).expect("a table");
                assert_eq!(checked.rule(u64::MAX), Rule::None);
                let head = checked.head();
                println!(
                    "{} {} {} {} {ms:.1} {path}",
                    head.rows,
                    head.rules,
                    head.rare,
                    table.len()
                );
            }
            Err(error) => println!("- - - - - {path}: {error}"),
        }
    }
}
