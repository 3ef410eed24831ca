//! Where the page is, and who may ask for it: programs on this machine, and no page of somebody else's.
//!
//! A browser sends the name that a user, or a page, has asked for. One that leads here by a name of its own (DNS rebinding) says
//! that name; one that sends a form here says where the form comes from.

use std::{fmt, io};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// An address on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://127.0.0.1:{}/", self.port)
    }
}

impl Address {
    /// Whether a request is for us, by its headers `Host` and `Origin`.
    pub(super) fn is_ours(self, host: Option<&str>, origin: Option<&str>) -> bool {
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        // The port of plain HTTP is not said.
        let bare = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let ours = |it: &str| {
            names.iter().any(|name| name == it) || (self.port == 80 && bare.iter().any(|name| name == it))
        };
        let is_from_us = |it: &str| it.strip_prefix("http://").is_some_and(ours);
        host.is_some_and(ours) && origin.is_none_or(is_from_us)
    }
}

/// A port that cannot be had.
pub(crate) fn port_taken(port: u16, err: &io::Error) -> Diagnostic {
    let (title, help) = match err.kind() {
        io::ErrorKind::AddrInUse => (
            format!("port {port} is in use by another program, perhaps another studio"),
            "`--port 0` takes one that is free, and says which",
        ),
        io::ErrorKind::PermissionDenied => (
            format!("port {port} is not for everybody"),
            "`--port 0` takes one that is free, and says which; those from 1024 on are for everybody",
        ),
        _ => (
            format!("port {port} cannot be listened on: {err}"),
            "`--port 0` takes one that is free, and says which",
        ),
    };
    Diagnostic::usage(UsageError::Port, title).help(help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn only_our_own_names_are_ours() {
        let at = |host, origin| Address { port: 7117 }.is_ours(host, origin);
        assert!(at(Some("127.0.0.1:7117"), None));
        assert!(at(Some("localhost:7117"), Some("http://localhost:7117")));
        for host in ["127.0.0.1", "127.0.0.1:7118", "evil.example:7117", "127.0.0.1:7117.evil.example", ""] {
            assert!(!at(Some(host), None), "{host}");
        }
        assert!(!at(None, None));
        for origin in ["https://127.0.0.1:7117", "http://evil.example", "null", ""] {
            assert!(!at(Some("127.0.0.1:7117"), Some(origin)), "{origin}");
        }
        assert!(Address { port: 80 }.is_ours(Some("localhost"), Some("http://localhost")));
    }
}
