// SPDX-License-Identifier: GPL-2.0

//! `--metrics`: serves the maps of a session as OpenMetrics, for Prometheus.

mod text;

use crate::detach::Detachment;
use crate::failure::Failure;
use crate::log::Log;
use crate::notify::Notify;
use crate::pid_file::PidFile;
use anyhow::{anyhow, Context};
use control::{Session, Tracer};
use http::{Answer, Request};
use network::{Credentials, Security};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use system::signals::Signals;
use text::Known;

/// The types of the text.
const OPEN: &str = "application/openmetrics-text; version=1.0.0";
const OLDER: &str = "text/plain; version=0.0.4";

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
    let answer = |request: &Request<'_>| {
        if request.path.split('?').next() != Some("/metrics") {
            return Answer::error("404 Not Found");
        }
        // A reader that does not ask for OpenMetrics may know only the older format.
        let is_open = request.headers("accept").any(|accepted| {
            String::from_utf8_lossy(accepted).contains("application/openmetrics-text")
        });
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        match text_of(&session, &mut known, is_open) {
            Ok(text) => Answer::ok(if is_open { OPEN } else { OLDER }, text.into_bytes()),
            Err(error) => Answer::because("503 Service Unavailable", &format!("{error:#}")),
        }
    };
    let (stop, notice) = (Some(signals.as_fd()), |text: &str| log.error(text));
    match tls {
        None => http::serve(&http::LIMITS, &listener, stop, Ok, answer, notice),
        Some(tls) => {
            let protect = |socket| tls.wrap(socket);
            http::serve(&http::LIMITS, &listener, stop, protect, answer, notice)
        }
    }
    .context("cannot serve")?;
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
fn text_of(session: &Session, known: &mut Known, is_open: bool) -> anyhow::Result<String> {
    let maps = session.maps()?;
    let stats = session.stats()?;
    let channels = stats.channels.into_iter();
    let events = channels.map(|channel| {
        let total = channel.stats.total;
        (channel.channel, total.recorded, total.lost())
    });
    let events: Vec<_> = events.collect();
    let name = session.name();
    Ok(text::text(name, &maps, &events, known, is_open))
}
