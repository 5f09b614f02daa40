// SPDX-License-Identifier: GPL-2.0

//! `rtraced --metrics`: the tests use a tree of plain files that looks like rtrace's.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustix::net::{bind, connect, socket, AddressFamily, SocketType};
use rustix::process::{kill_process, Pid, Signal};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
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

    /// Connects from another address of the loopback device.
    fn connect_from(&self, from: &str) -> TcpStream {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let from: IpAddr = from.parse().unwrap();
        bind(&socket, &SocketAddr::new(from, 0)).unwrap();
        let address: SocketAddr = self.address.parse().unwrap();
        connect(&socket, &address).unwrap();
        socket.into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn get(connection: impl Read + Write, path: &str) -> String {
    get_as(connection, path, "Accept: application/openmetrics-text")
}

fn get_as(mut connection: impl Read + Write, path: &str, accept: &str) -> String {
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

/// The families of a text, in OpenMetrics or in the older format. Fails if a line is wrong, or repeats another one.
fn families(text: &str, is_open: bool) -> BTreeSet<String> {
    let (mut families, mut names, mut series) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut family, mut suffixes): (String, &[&str]) = (String::new(), &[]);
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match *words {
            ["#", "HELP", name, _] => {
                assert!(is_name(name), "{line}");
                assert!(families.insert(name.to_owned()), "a second {line}\n{text}");
                family = name.to_owned();
                let kind = lines.next().unwrap();
                suffixes = match kind
                    .strip_prefix(&format!("# TYPE {name} "))
                    .unwrap_or(kind)
                {
                    "counter" if is_open => &["_total"],
                    "counter" | "gauge" => &[""],
                    "histogram" => &["_sum", "_count", "_bucket"],
                    other => panic!("{other}\n{text}"),
                };
                for name in suffixes.iter().chain(&[""]).collect::<BTreeSet<_>>() {
                    assert!(names.insert(format!("{family}{name}")), "{line}\n{text}");
                }
            }
            ["#", "UNIT", name, unit] if is_open => {
                assert!(
                    name == family && name.ends_with(&format!("_{unit}")),
                    "{line}"
                );
            }
            ["#", "EOF"] if is_open => assert_eq!(lines.peek(), None),
            ["#", ..] => panic!("{line}"),
            _ => {
                let (name, rest) = line.split_once('{').unwrap();
                let suffix = name.strip_prefix(&family);
                assert!(
                    suffix.is_some_and(|suffix| suffixes.contains(&suffix)),
                    "{line}\n{text}"
                );
                let (mut labels, mut rest) = (BTreeSet::new(), rest);
                let value = loop {
                    let (label, after) = rest.split_once("=\"").unwrap();
                    assert!(is_name(label) && !label.starts_with("__"), "{line}");
                    let mut escaped = false;
                    let end = after.find(|c| {
                        let ends = c == '"' && !escaped;
                        escaped = c == '\\' && !escaped;
                        ends
                    });
                    let (value, after) = after.split_at(end.unwrap());
                    assert!(
                        labels.insert((label, value))
                            && labels.iter().filter(|l| l.0 == label).count() == 1,
                        "{line}"
                    );
                    rest = &after[2..];
                    match &after[1..2] {
                        "," => {}
                        "}" => break rest,
                        other => panic!("{other}: {line}"),
                    }
                };
                let number = value.strip_prefix(' ').map(str::parse::<f64>);
                assert!(number.is_some_and(|number| number.is_ok()), "{line}");
                assert!(
                    series.insert((name.to_owned(), labels)),
                    "a second {line}\n{text}"
                );
            }
        }
    }
    families
}

/// The texts of a session with these maps, each with the name, the keys and the rest of a map's line. All have a row.
fn texts(server: &Server, file: &Path, maps: &[(&str, &str, &str)]) -> [String; 2] {
    let mut text = String::new();
    for (name, keys, rest) in maps {
        let by = if keys.is_empty() {
            String::new()
        } else {
            format!(" by {keys}")
        };
        let keys: Vec<_> = keys.split(',').filter(|key| !key.is_empty()).collect();
        let columns: Vec<_> = rest.split(' ').filter(|word| !word.is_empty()).collect();
        let hist = columns.iter().find_map(|word| word.strip_prefix("hist("));
        let columns = columns.iter().filter(|word| !word.starts_with("hist("));
        let columns: Vec<_> = columns.copied().collect();
        let names = keys
            .iter()
            .copied()
            .chain(hist.map(|value| value.trim_end_matches(')')));
        let names: Vec<_> = names
            .chain(["count"])
            .chain(columns.iter().copied())
            .collect();
        text += &format!(
            "map {name} e{by} {rest}\noverflow 0{}\nlacking 0\n{}\n",
            " 0".repeat(columns.len()),
            names.join(" ")
        );
        for row in [
            "1",
            "event",
            "\"\"",
            "\"a\\x22\\x5c\\x0a,b=\\xff\\xc3\\xa4\"",
            "\"other\"",
        ] {
            let hist = hist.map(|_| "4..5").into_iter();
            let words = keys.iter().map(|_| row).chain(hist).chain(["3"]);
            let words: Vec<_> = words.chain(columns.iter().map(|_| "-7")).collect();
            text += &(words.join(" ") + "\n");
            if keys.is_empty() {
                break;
            }
        }
        text.push('\n');
    }
    fs::write(file, text).unwrap();
    ["Accept: application/openmetrics-text", "Accept: */*"].map(|accept| {
        let answer = get_as(server.connect(), "/metrics", accept);
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        text.to_owned()
    })
}

/// Names and keys that lead to equal names of metrics or labels, or to reserved ones.
#[test]
fn no_name_and_no_label_stands_twice() {
    let tree = tree();
    let file = tree.path().join("rtrace/sessions/default/maps");
    let server = Server::start(tree.path(), &["--metrics-keys", "3"]);
    let maps = [
        ("a.b", "comm", ""),
        ("a-b", "comm", ""),
        ("a_b", "comm", "hist(n)"),
        ("calls", "comm", "sum(n) sum(total) min(n) max(n)"),
        ("calls_n", "comm", ""),
        ("calls_n_min", "", "sum(x)"),
        ("calls_total", "comm", ""),
        ("h", "comm", "hist(n) sum(n) sum(count) max(bucket)"),
        ("h_sum", "", ""),
        ("h_count", "", "hist(duration)"),
        ("d", "comm", "hist(duration) sum(duration) max(duration)"),
        ("d_seconds", "comm", "hist(n)"),
        ("d_duration", "comm", "max(seconds) sum(max_seconds)"),
        ("same", "comm", "sum(n) sum(n)"),
        ("map_missed", "", ""),
        ("map_missed_total", "", ""),
        ("map_hidden", "", ""),
        ("events_lost", "", ""),
        ("events", "", "sum(recorded)"),
    ];
    for first in 0..maps.len() {
        let maps = [&maps[first..], &maps[..first]].concat();
        for (text, is_open) in texts(&server, &file, &maps).iter().zip([true, false]) {
            let families = families(text, is_open);
            // Each map has its metrics, or is listed.
            for (name, ..) in &maps {
                let metric = format!("rtrace_{}", name.replace(['.', '-'], "_"));
                let suffixes = ["", "_total", "_seconds"];
                let is_shown = suffixes
                    .iter()
                    .any(|suffix| families.contains(&format!("{metric}{suffix}")));
                let hidden =
                    format!("rtrace_map_hidden{{session=\"default\",map=\"{name}\",metric=");
                assert!(is_shown || text.contains(&hidden), "{name}\n{text}");
            }
            // The first map always has its own.
            let hidden = format!(
                "map=\"{}\",metric=\"rtrace_{}\"",
                maps[0].0,
                maps[0].0.replace(['.', '-'], "_")
            );
            let is_own = ["map_", "events_lost"]
                .iter()
                .any(|own| maps[0].0.starts_with(own));
            assert_eq!(text.contains(&hidden), is_own, "{text}");
        }
    }
    let keys = [
        "session",
        "le",
        "quantile",
        "key_session",
        "key_key_session",
        "key_le",
        "__name__",
        "__x",
        "a.b",
        "a-b",
        "a_b",
        "0x",
        "reason",
        "comm",
        "comm",
    ];
    for first in 0..keys.len() {
        for second in 0..keys.len() {
            let keys = [keys[first], keys[second], "session", "key_session"].join(",");
            let maps = [("m", &*keys, ""), ("x", &*keys, "hist(n) max(n)")];
            for (text, is_open) in texts(&server, &file, &maps).iter().zip([true, false]) {
                let families = families(text, is_open);
                assert!(
                    families.contains("rtrace_x") && !text.contains("rtrace_map_hidden"),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn slow_clients_leave_connections_to_others() {
    let tree = tree();
    let server = Server::start(tree.path(), &[]);
    let slow: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for mut client in &slow {
        client.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    }
    let answer = get(server.connect_from("127.0.0.2"), "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[test]
fn a_signal_ends_connections() {
    let tree = tree();
    let server = Server::start(tree.path(), &[]);
    let mut client = server.connect();
    client.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    // The client was accepted before this one.
    assert!(get(server.connect(), "/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
    let began = Instant::now();
    let drips = thread::spawn(move || {
        while began.elapsed() < Duration::from_secs(60) {
            if client.write_all(b"x").is_err() {
                return true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    });
    // Waits for its end.
    drop(server);
    assert!(drips.join().unwrap(), "the server waited for the client");
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
