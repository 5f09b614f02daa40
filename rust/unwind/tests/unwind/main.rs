// SPDX-License-Identifier: GPL-2.0

//! Tables, rules and steps on numbers of the host.

mod end;
mod made;
mod quick;
mod random;
mod rule;
mod step;
mod table;
