//! Addresses of files, as editors write them.

use std::{
    ffi::OsString,
    fmt::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use gen_lsp_types::Uri;

use crate::text_file::plain;

/// The path of an address. What is no file, such as a text that was never saved, has its address as a path, where nothing is found.
pub(super) fn path_of(uri: &Uri) -> PathBuf {
    let Some(rest) = uri.0.strip_prefix("file://") else { return PathBuf::from(&uri.0) };
    // What stands between the slashes is a host, and this one's if there is nothing.
    let path = rest.find('/').map_or(rest, |it| &rest[it..]);
    let (bytes, mut out, mut at) = (path.as_bytes(), vec![], 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|it| std::str::from_utf8(it).ok());
        let byte = code.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| bytes[at] == b'%');
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    plain(Path::new(&OsString::from_vec(out)))
}

/// The address of a path.
pub(super) fn uri_of(path: &Path) -> Uri {
    if !path.is_absolute() {
        return Uri(path.display().to_string());
    }
    let mut out = "file://".to_owned();
    for byte in plain(path).as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Uri(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_addresses_and_back() {
        for path in ["/a/b.ron", "/a b/ß%20.ron", "/a/(1)/c+d.ron"] {
            assert_eq!(path_of(&uri_of(Path::new(path))), PathBuf::from(path));
        }
        assert_eq!(path_of(&Uri::from("file://localhost/a/%C3%9F/../c%2Eron")), PathBuf::from("/a/c.ron"));
        assert_eq!(path_of(&Uri::from("file:///a/50%")), PathBuf::from("/a/50%"));
        assert_eq!(path_of(&Uri::from("untitled:Untitled-1")), PathBuf::from("untitled:Untitled-1"));
        assert_eq!(uri_of(Path::new("untitled:Untitled-1")), Uri::from("untitled:Untitled-1"));
    }
}
