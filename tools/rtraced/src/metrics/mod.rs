// SPDX-License-Identifier: GPL-2.0

//! `--metrics`: serves the maps of a session as OpenMetrics, for Prometheus.

mod http;
mod text;

use crate::detach::Detachment;
use crate::failure::Failure;
use crate::log::Log;
use crate::notify::Notify;
use crate::pid_file::PidFile;
use anyhow::{anyhow, Context};
use control::{Session, Tracer};
use network::{Credentials, Security};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use system::signals::Signals;
use text::Known;

/// Settings for serving metrics.
pub struct Metrics {
    /// Address to listen at: `[ADDR:]PORT`.
    pub address: String,
    /// Maximum number of keys of a map that have series of their own.
    pub keys: usize,
    /// Protection of connections.
    pub security: Security<Credentials>,
    /// Session to read.
    pub session: String,
    /// Directory that contains the tracer's directory.
    pub debugfs: PathBuf,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
    /// Detach as soon as it listens.
    pub detached: bool,
}

/// Serves metrics until a signal arrives.
pub fn serve(options: &Metrics, log: &Log) -> Result<ExitCode, Failure> {
    let notify = Notify::from_env();
    let mut detachment = Detachment::begin(options.detached)?;
    let signals = Signals::catch()?;
    let pid_file = options.pid_file.as_deref();
    let _pid_file = pid_file.map(PidFile::claim).transpose()?;
    let session = Tracer::find(&options.debugfs)?.session(&options.session)?;
    let security = options.security.server().map_err(|error| anyhow!(error))?;
    let addresses = addresses(&options.address)?;
    let is_far = addresses.iter().any(|address| !address.ip().is_loopback());
    let tls = match &security {
        Security::Tls(tls) => Some(tls),
        Security::Local if is_far => {
            return Err(anyhow!(
                "{} is an address for other machines: without certificates everybody on the way can read the numbers. \
                 Give --ca, --cert and --key for TLS; --plain accepts the risk",
                options.address
            )
            .into())
        }
        Security::Local | Security::Plain => None,
    };
    let listener = TcpListener::bind(&*addresses)
        .with_context(|| format!("cannot listen at {}", options.address))?;
    let address = listener.local_addr().context("cannot get the address")?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let name = session.name();
    let status = format!("the maps of session `{name}` are at {scheme}://{address}/metrics");
    log.info(&status);
    detachment.leave(log)?;
    notify.ready(&status);
    let known = Mutex::new(Known::new(options.keys));
    let text = || {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        text_of(&session, &mut known).map_err(|error| format!("{error:#}"))
    };
    http::run(&listener, tls, &signals, &text, log).context("cannot serve")?;
    notify.stopping();
    log.info("stopped by a signal");
    Ok(ExitCode::SUCCESS)
}

/// The addresses to listen at. The default of ADDR is the loopback device.
fn addresses(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let typed = match text.contains(':') {
        true => text.to_owned(),
        false => format!("127.0.0.1:{text}"),
    };
    let addresses = typed.to_socket_addrs();
    let addresses = addresses.with_context(|| format!("`{text}` is not [ADDR:]PORT"))?;
    Ok(addresses.collect())
}

/// The numbers of the session now.
fn text_of(session: &Session, known: &mut Known) -> anyhow::Result<String> {
    let maps = session.maps()?;
    let stats = session.stats()?;
    let channels = stats.channels.into_iter();
    let events = channels.map(|channel| {
        let total = channel.stats.total;
        (channel.channel, total.recorded, total.lost())
    });
    let events: Vec<_> = events.collect();
    Ok(text::text(session.name(), &maps, &events, known)?)
}
