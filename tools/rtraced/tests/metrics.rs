// SPDX-License-Identifier: GPL-2.0

//! `rtraced --metrics`: the tests use a tree of plain files that looks like rtrace's.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustix::process::{kill_process, Pid, Signal};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

const MAPS: &str = "\
map calls e by comm
overflow 0
lacking 0
comm count
\"a\" 5
\"b\" 3

";

/// A session with a map.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    let session = dir.path().join("rtrace/sessions/default");
    fs::create_dir_all(session.join("channels")).unwrap();
    fs::write(dir.path().join("rtrace/enable"), "1\n").unwrap();
    fs::write(session.join("maps"), MAPS).unwrap();
    dir
}

/// A server, which ends with this.
struct Server {
    child: Child,
    /// `ADDR:PORT`.
    address: String,
}

impl Server {
    fn start(tree: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rtraced"))
            .args(["--foreground", "--metrics", "127.0.0.1:0", "--debugfs"])
            .arg(tree)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let (_, url) = line.split_once("://").unwrap_or_else(|| panic!("{line}"));
        let address = url.strip_suffix("/metrics").unwrap().to_owned();
        // Otherwise a later message would end the server.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn get(mut connection: impl Read + Write, path: &str) -> String {
    let accept = "Accept: application/openmetrics-text";
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{accept}\r\n\r\n");
    // A server may refuse a certificate before it reads anything.
    let _ = connection.write_all(request.as_bytes());
    let mut answer = Vec::new();
    // A server may end TLS without saying so.
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn maps_are_served() {
    let tree = tree();
    let server = Server::start(tree.path(), &[]);
    let answer = get(server.connect(), "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
    assert!(answer.contains("\nrtrace_calls_total{session=\"default\",comm=\"a\"} 5\n"));
    assert!(answer.ends_with("# EOF\n"));
    let maps = tree.path().join("rtrace/sessions/default/maps");
    fs::write(&maps, MAPS.replace(" 5", " 6")).unwrap();
    assert!(get(server.connect(), "/metrics").contains("comm=\"a\"} 6\n"));
    assert!(get(server.connect(), "/").starts_with("HTTP/1.1 404 "));
    fs::remove_file(&maps).unwrap();
    assert!(get(server.connect(), "/metrics").starts_with("HTTP/1.1 503 "));
}

#[test]
fn both_sides_show_certificates() {
    let (tree, keys) = (tree(), TempDir::new().unwrap());
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let file = |name: &str| keys.path().join(name).display().to_string();
    fs::write(file("ca"), params.self_signed(&authority).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, authority);
    for name in ["127.0.0.1", "scraper"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(file(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(file(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let (ca, cert, key) = (file("ca"), file("127.0.0.1.pem"), file("127.0.0.1.key"));
    let server = Server::start(tree.path(), &["--ca", &ca, "--cert", &cert, "--key", &key]);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&ca).unwrap())
        .unwrap();
    let builder = || {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(roots.clone())
    };
    let chain = vec![CertificateDer::from_pem_file(file("scraper.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("scraper.key")).unwrap();
    let known = builder().with_client_auth_cert(chain, key).unwrap();
    let unknown = builder().with_no_client_auth();
    for (config, is_served) in [(known, true), (unknown, false)] {
        let name = "127.0.0.1".try_into().unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let answer = get(StreamOwned::new(client, server.connect()), "/metrics");
        assert_eq!(answer.contains("rtrace_calls_total"), is_served, "{answer}");
    }
    assert!(!get(server.connect(), "/metrics").contains("rtrace_calls_total"));
}

#[test]
fn other_machines_need_protection() {
    let tree = tree();
    for (arguments, code, said) in [
        (&["--metrics", "0.0.0.0:0"][..], 1, "--plain"),
        (&["--metrics", "nowhere"], 1, "is not [ADDR:]PORT"),
        (
            &["--metrics", "0", "--output", "a"],
            2,
            "cannot be used with",
        ),
        (
            &["--metrics-keys", "5", "--output", "a"],
            2,
            "cannot be used with",
        ),
        (&["--metrics", "0", "--session", "none"], 1, "none"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_rtraced"))
            .args(["--foreground", "--debugfs"])
            .arg(tree.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}
