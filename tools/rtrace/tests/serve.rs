// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --serve`: the requests that it answers, and its end by a signal.

use rtrace_abi::header::Layout;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use synthetic::PacketBuilder;
use tempfile::TempDir;

struct Served {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    token: String,
    dir: TempDir,
}

impl Served {
    fn new() -> Self {
        let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
            .switch(1000, (0, "swapper"), (7, "</script>"))
            .read(2000, 0);
        Self::of(vec![packet.close(5000, 8)])
    }

    /// Serves a trace of these packets.
    fn of(packets: Vec<Vec<u8>>) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("trace");
        synthetic::write(&path, Layout::Compact, &[(0, packets)]).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("rtrace"));
        command
            .args(["report", "--serve"])
            .arg(dir.path().join("trace"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").unwrap();
        let (host, token) = rest.split_once('/').unwrap();
        Self {
            child,
            host: host.to_owned(),
            token: token.trim_end_matches('/').to_owned(),
            dir,
        }
    }

    /// Sends these bytes, and returns the answer.
    fn send(&self, request: &str) -> String {
        let mut connection = TcpStream::connect(&self.host).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The server may close the connection before it has read the whole request.
        let _ = connection.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.host
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("")
}

#[test]
fn it_answers_the_page_and_its_parts_and_nothing_else() {
    let served = Served::new();
    let (host, token) = (&served.host, &served.token);
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));

    let page = served.get(&format!("/{token}/"));
    assert_eq!(status(&page), "200");
    for line in [
        "content=\"default-src 'none'; connect-src 'self'; style-src",
        "Content-Security-Policy: frame-ancestors 'none'",
        "Referrer-Policy: no-referrer",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cache-Control: no-store",
    ] {
        assert!(page.contains(line), "{line}");
    }
    assert!(page.contains("\"is_served\":true"));
    assert!(page.ends_with("</html>\n"));
    assert!(!page.contains(token.as_str()), "the page has the token");

    let part = served.get(&format!("/{token}/part?from=0&to=50000"));
    assert_eq!(status(&part), "200");
    let (_, body) = part.split_once("\r\n\r\n").unwrap();
    let part: Value = serde_json::from_str(body).unwrap();
    assert_eq!(part["marks"][0]["marks"], 2);

    let mut wrong = token.clone();
    let last = if wrong.pop() == Some('0') { '1' } else { '0' };
    wrong.push(last);
    for path in [
        "/".to_owned(),
        "/part?from=0&to=1".to_owned(),
        "//".to_owned(),
        format!("/{token}"),
        format!("/{wrong}/"),
        format!("/{}/", &token[..31]),
        format!("/{token}/metadata"),
        format!("/{token}/../trace/metadata"),
        format!("/{token}/%2e%2e/metadata"),
        format!("/{token}//etc/passwd"),
        format!("/{token}/part"),
        format!("/{token}/part?from=5&to=4"),
        format!("/{token}/part?from=-1&to=4"),
        format!("/{token}/part?from=0&to=99999999999999999999999"),
    ] {
        assert_eq!(status(&served.get(&path)), "404", "{path}");
    }
}

/// An event without a description: the rest of its packet cannot be read, and all views say so.
#[test]
fn the_parts_of_a_damaged_trace_have_the_rest() {
    let packet = |number, begin| {
        let packet = PacketBuilder::new(Layout::Compact, 0, number, begin);
        packet.switch(begin + 1000, (0, "swapper"), (7, "make"))
    };
    let served = Served::of(vec![
        packet(0, 0).close(5000, 8),
        packet(1, 6000)
            .event(30, 8000, &[])
            .read(9000, 0)
            .close(10000, 8),
        packet(2, 11000).close(15000, 8),
    ]);
    let token = &served.token;
    let part = served.get(&format!("/{token}/part?from=0&to=1000000"));
    assert_eq!(status(&part), "200", "{part}");
    let (_, body) = part.split_once("\r\n\r\n").unwrap();
    let part: Value = serde_json::from_str(body).unwrap();
    assert_eq!(part["marks"][0]["marks"], 3);

    let page = served.get(&format!("/{token}/"));
    let data = page.split_once("id=\"trace\">").unwrap().1;
    let data = data.split_once("</script>").unwrap().0;
    let page: Value = serde_json::from_str(data).unwrap();
    let trace = served.dir.path().join("trace");
    let report = |options: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("rtrace"));
        let output = command.arg("report").args(options).arg(&trace).output();
        let output = output.unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [json, _] = report(&["--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    for name in ["recorded", "damaged", "damaged_places", "damaged_bytes"] {
        assert_eq!(page["report"][name], json[name], "{name}");
    }
    assert_eq!(json["damaged_places"], 1, "{json}");
    let [_, said] = report(&[]);
    let place = format!("at byte {}: ", json["damaged"][0]["offset"]);
    assert!(said.contains(&place), "{said}");
    assert_eq!(page["gaps"].as_array().map(Vec::len), Some(1));
}

#[test]
fn it_refuses_other_hosts_methods_and_large_requests() {
    let served = Served::new();
    let (host, token) = (&served.host, &served.token);
    let (_, port) = host.split_once(':').unwrap();
    let get = format!("GET /{token}/part?from=0&to=1 HTTP/1.1\r\n");
    // A hostname of another site that resolves to this machine.
    for line in [
        format!("Host: evil.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"),
        format!("Host: 127.0.0.1:{port}.evil.example\r\n"),
        String::new(),
    ] {
        let answer = served.send(&format!("{get}{line}\r\n"));
        assert_eq!(status(&answer), "403", "{line}");
        assert!(!answer.contains("columns"));
    }
    let local = served.send(&format!("{get}host: localhost:{port}\r\n\r\n"));
    assert_eq!(status(&local), "200");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let answer = served.send(&format!(
            "{method} /{token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ));
        assert_eq!(status(&answer), "405", "{method}");
    }
    let answer = served.send(&format!(
        "{get}Host: {host}\r\nX: {}\r\n\r\n",
        "x".repeat(20_000)
    ));
    assert!(["", "431"].contains(&status(&answer)), "{answer}");
    assert_eq!(status(&served.send("nonsense\r\n\r\n")), "400");
    // The server still answers.
    assert_eq!(status(&served.get(&format!("/{token}/"))), "200");
}

#[test]
fn several_connections_do_not_wait_for_each_other_and_a_signal_ends_it() {
    let mut served = Served::new();
    // These connections send nothing.
    let silent: Vec<_> = (0..8)
        .map(|_| TcpStream::connect(&served.host).unwrap())
        .collect();
    for _ in 0..3 {
        assert_eq!(status(&served.get(&format!("/{}/", served.token))), "200");
    }
    drop(silent);
    kill_process(Pid::from_child(&served.child), Signal::INT).unwrap();
    assert!(!served.child.wait().unwrap().success());
    assert!(TcpStream::connect(&served.host).is_err());
}
