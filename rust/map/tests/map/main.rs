// SPDX-License-Identifier: GPL-2.0

//! The tables on words of the host.

mod buckets;
mod nested;
mod pairs;
mod random;
mod words;
