// SPDX-License-Identifier: GPL-2.0

//! How a connection is protected, as typed.

use clap::Args;
use network::{Credentials, Security};
use std::path::PathBuf;

/// Protection of a connection. The group `network` has the argument that names the peer.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// Certificate of the authority that signed the certificates of both sides, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "cert", "key"])]
    pub ca: Option<PathBuf>,

    /// This side's certificate, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "ca", "key"])]
    pub cert: Option<PathBuf>,

    /// Private key of this side's certificate, PEM
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE", requires_all = ["network", "ca", "cert"])]
    pub key: Option<PathBuf>,

    /// Use TCP without encryption and without a check of the other side
    ///
    /// Each user of both machines, and everyone on the network between them, can then read the trace and alter it.
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "network", conflicts_with_all = ["ca", "cert", "key"])]
    pub plain: bool,
}

impl NetworkArgs {
    /// The protection.
    pub fn security(&self) -> Security<Credentials> {
        let Self {
            ca,
            cert,
            key,
            plain,
        } = self;
        Security::new(ca.clone(), cert.clone(), key.clone(), *plain)
    }
}
