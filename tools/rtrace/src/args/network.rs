// SPDX-License-Identifier: GPL-2.0

//! How a connection is protected, as typed.

use clap::Args;
use std::path::PathBuf;

/// What protects a connection. The group `network` has the argument that says where to.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// For a connection: certificate of the authority that has signed those of both sides, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "cert", "key"])]
    pub ca: Option<PathBuf>,

    /// This side's certificate, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "ca", "key"])]
    pub cert: Option<PathBuf>,

    /// The private key of that, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "ca", "cert"])]
    pub key: Option<PathBuf>,

    /// Connect by TCP without encryption and without asking who the other side is. Every user of both machines,
    /// and everybody on the way, can then read the trace and change it
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "network", conflicts_with_all = ["ca", "cert", "key"])]
    pub plain: bool,
}
