// SPDX-License-Identifier: GPL-2.0

//! Addresses of machines by name.
//!
//! The tools are linked statically. glibc's getaddrinfo() would load the machine's NSS modules, which works
//! only with the glibc of the build. getent(1) is the machine's own program for the same lookup.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::{Command, Stdio};

/// The addresses of `HOST:PORT`.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let invalid = || io::Error::new(ErrorKind::InvalidInput, "the address is not HOST:PORT");
    let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
    let port = port.parse().map_err(|_| invalid())?;
    let asked = Command::new("getent")
        .args(["ahosts", "--", host])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = match asked {
        Ok(answer) => answer.stdout,
        // Without the program, the library is the only way.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(address.to_socket_addrs()?.collect())
        }
        Err(error) => return Err(error),
    };
    let addresses = addresses(&String::from_utf8_lossy(&text), port);
    if addresses.is_empty() {
        let what = format!("the name `{}` has no address", host.escape_debug());
        return Err(io::Error::new(ErrorKind::NotFound, what));
    }
    Ok(addresses)
}

/// Parses the addresses in getent's output, which has one line for each type of socket.
fn addresses(text: &str, port: u16) -> Vec<SocketAddr> {
    let lines = text.lines().map(|line| line.split_whitespace());
    lines
        .filter_map(|mut words| Some((words.next()?, words.next()?)))
        .filter(|(_, kind)| *kind == "STREAM")
        .filter_map(|(address, _)| address.parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, port))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_getent() {
        let text = "::1             STREAM localhost\n::1             DGRAM\n\
                    127.0.0.1       STREAM\n127.0.0.1       RAW\nrubbish\n";
        let found = addresses(text, 7);
        assert_eq!(
            found,
            ["[::1]:7".parse().unwrap(), "127.0.0.1:7".parse().unwrap()]
        );
    }

    #[test]
    fn numbers_and_names() {
        assert_eq!(resolve("[::1]:7").unwrap(), ["[::1]:7".parse().unwrap()]);
        assert!(resolve("localhost:7")
            .unwrap()
            .iter()
            .all(|found| found.ip().is_loopback()));
        for unknown in [
            "no-such-machine.invalid:7",
            "-s:7",
            "localhost:99999",
            "localhost",
        ] {
            assert!(resolve(unknown).is_err(), "{unknown}");
        }
    }
}
