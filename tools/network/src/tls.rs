// SPDX-License-Identifier: GPL-2.0

//! TLS 1.3. Both sides show a certificate. One authority, which is the user's own, has signed both.

use crate::trouble::Trouble;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files with certificates, in PEM.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// Our own certificate, followed by those between it and the authority's, if there are any.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Settings of the side that connects.
#[derive(Clone, Debug)]
pub struct ClientTls(Arc<ClientConfig>);

/// Settings of the side that listens.
#[derive(Clone, Debug)]
pub struct ServerTls(Arc<ServerConfig>);

impl Credentials {
    /// For the side that connects.
    pub fn client(&self) -> Result<ClientTls, String> {
        let (roots, chain, key) = self.read()?;
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map(|builder| builder.with_root_certificates(roots))
            .and_then(|builder| builder.with_client_auth_cert(chain, key))
            .map(|config| ClientTls(Arc::new(config)))
            .map_err(|error| format!("{}: {error}", self.cert.display()))
    }

    /// For the side that listens.
    pub fn server(&self) -> Result<ServerTls, String> {
        let (roots, chain, key) = self.read()?;
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("{}: {error}", self.ca.display()))?;
        ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map(|builder| builder.with_client_cert_verifier(verifier))
            .and_then(|builder| builder.with_single_cert(chain, key))
            .map(|config| ServerTls(Arc::new(config)))
            .map_err(|error| format!("{}: {error}", self.cert.display()))
    }

    #[allow(clippy::type_complexity)]
    fn read(
        &self,
    ) -> Result<
        (
            RootCertStore,
            Vec<CertificateDer<'static>>,
            PrivateKeyDer<'static>,
        ),
        String,
    > {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            let added = roots.add(certificate);
            added.map_err(|error| format!("{}: {error}", self.ca.display()))?;
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| format!("{}: no private key: {error}", self.key.display()))?;
        Ok((roots, certificates(&self.cert)?, key))
    }
}

/// Reads all certificates of a file. There must be at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(format!("{}: no certificate in it", path.display())),
        Err(error) => Err(format!("{}: no certificate: {error}", path.display())),
    }
}

impl ClientTls {
    /// A connection to the machine with this name or address, which must be in its certificate.
    pub(crate) fn connection(&self, host: &str) -> Result<ClientConnection, Trouble> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Trouble::lasting(format!("a certificate cannot have the name `{host}`"))
        })?;
        ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|error| Trouble::lasting(error.to_string()))
    }
}

impl ServerTls {
    /// The server's side of a connection, as a stream that encrypts.
    pub fn wrap(&self, socket: TcpStream) -> io::Result<impl Read + Write> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, socket))
    }

    /// The server's side of a connection.
    pub(crate) fn connection(&self) -> Result<ServerConnection, Trouble> {
        ServerConnection::new(Arc::clone(&self.0))
            .map_err(|error| Trouble::lasting(error.to_string()))
    }
}
