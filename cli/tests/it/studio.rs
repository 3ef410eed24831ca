//! `tilewright studio`, through what its page asks. Nothing here sleeps: each test waits for what the page is told.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::common::tilewright;

/// Longer than anything here takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(4);

const SCRIPT: &str = include_str!("../studio/pipeline.ron");

/// A studio, and a page that listens to it.
struct Page {
    studio: Child,
    port: u16,
    events: BufReader<TcpStream>,
    /// What it was told last of each part.
    parts: BTreeMap<String, Value>,
}

impl Page {
    fn open(folder: &Path, arguments: &[&str]) -> Page {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.args(["studio", "a.ron", "--port", "0", "--json"]).args(arguments).current_dir(folder);
        command.env("TILEWRIGHT_NVRTC_DIR", "no-such-folder").stdout(Stdio::piped());
        let path = env::var_os("PATH").unwrap_or_default();
        let path = [folder.to_owned()].into_iter().chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(path).unwrap());
        let mut studio = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(studio.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let mut events = BufReader::new(send(port, "GET", "/events", &host(port)));
        let (head, _) = head(&mut events);
        assert!(head.contains("text/event-stream"), "{head}");
        Page { studio, port, events, parts: BTreeMap::new() }
    }

    /// Waits until what the page shows is as it should be.
    fn until(&mut self, what: &str, is_so: impl Fn(&BTreeMap<String, Value>) -> bool) {
        let start = Instant::now();
        while !is_so(&self.parts) {
            assert!(start.elapsed() < TIMEOUT, "{what} does not come: {:?}", self.parts.get("state"));
            self.hear();
        }
    }

    /// Reads an event.
    fn hear(&mut self) {
        let (mut sort, mut data) = (String::new(), None);
        loop {
            let mut line = String::new();
            self.events.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "the studio has ended: {:?}", self.parts.get("state"));
            match line.trim_end().split_once(": ") {
                Some(("event", it)) => it.clone_into(&mut sort),
                Some(("data", it)) => data = Some(serde_json::from_str::<Value>(it).unwrap()),
                _ if line.trim().is_empty() => break,
                // Something to see that the line is alive.
                _ => {}
            }
        }
        let Some(data) = data else { return };
        // The policy of the page takes styles from its own file alone, and a browser reports others as errors.
        let styled = ["<style", " style="]
            .iter()
            .find(|it| data["html"].as_str().is_some_and(|html| html.contains(**it)));
        assert!(styled.is_none(), "{data}");
        let key = if sort == "panel" { data["id"].as_str().unwrap().to_owned() } else { sort };
        self.parts.insert(key, data);
    }

    fn until_state(&mut self, word: &str) {
        self.until(word, |it| state(it) == word);
    }

    fn html(&self, part: &str) -> &str {
        self.parts[part]["html"].as_str().unwrap()
    }

    /// Ends the studio as Ctrl-C does.
    fn end(mut self) {
        let pid = self.studio.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(self.studio.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It has ended, unless a test has stopped.
        let _ = self.studio.kill();
        let _ = self.studio.wait();
    }
}

fn state(parts: &BTreeMap<String, Value>) -> &str {
    parts.get("state").map_or("", |it| it["state"].as_str().unwrap())
}

/// What is said of a panel beside its content.
fn mark<'a>(parts: &'a BTreeMap<String, Value>, panel: &str) -> &'a Value {
    let all = parts["state"]["panels"].as_array().unwrap();
    all.iter().find(|it| it["id"] == panel).unwrap()
}

fn contains(parts: &BTreeMap<String, Value>, part: &str, words: &str) -> bool {
    parts.get(part).is_some_and(|it| it["html"].as_str().unwrap().contains(words))
}

fn host(port: u16) -> String {
    format!("Host: 127.0.0.1:{port}")
}

/// Asks for something. In this version of HTTP an answer ends with its connection.
fn send(port: u16, method: &str, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "{method} {path} HTTP/1.0\r\n{headers}\r\nContent-Length: 0\r\n\r\n").unwrap();
    stream
}

/// The head of an answer and its status.
fn head(answer: &mut impl BufRead) -> (String, u16) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(answer.read_line(&mut head).unwrap() > 0, "no answer: {head}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (head, status)
}

/// An answer: its status and all of it.
fn ask(port: u16, method: &str, path: &str, headers: &str) -> (u16, String) {
    let mut answer = BufReader::new(send(port, method, path, headers));
    let (head, status) = head(&mut answer);
    let mut body = String::new();
    answer.read_to_string(&mut body).unwrap();
    (status, head + &body)
}

fn folder(script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ron"), script).unwrap();
    folder
}

/// As editors do it: the new text beside the file, and then in its place.
fn save(folder: &Path, text: &str) {
    fs::write(folder.join("a.ron~"), text).unwrap();
    fs::rename(folder.join("a.ron~"), folder.join("a.ron")).unwrap();
}

#[test]
fn a_page_follows_its_script() {
    let folder = folder(SCRIPT);
    let mut page = Page::open(folder.path(), &[]);
    page.until("the last panel", |it| contains(it, "virtual-gpu", "findings   none"));
    page.until_state("legal");
    assert!(page.html("kernel").contains("A_shared"));
    assert!(page.html("source").contains("sha256"));
    assert!(
        page.html("timeline").contains("<svg") && page.html("timeline").contains("A_shared  shared      2")
    );
    assert!(page.html("resources").contains("16 × 16 × 1") && page.html("resources").contains("error[TW"));
    let step = &page.parts["steps"]["steps"][0];
    assert_eq!((&step["line"], &step["loops"]), (&6.into(), &serde_json::json!(["by: 4", "ty: 16"])));
    let (status, step) = ask(page.port, "GET", "/steps/10", &host(page.port));
    assert!(status == 200 && step.contains("Step 10: compute_at"), "{step}");
    assert_eq!(ask(page.port, "GET", "/steps/20", &host(page.port)).0, 404);

    save(folder.path(), &SCRIPT.replace("order(loop: \"ko\"", "order(loop: \"kp\""));
    page.until_state("wrong");
    let shown = page.html("script");
    let (_, below) = shown.split_once("id=\"s23\"").unwrap();
    let (finding, _) = below.split_once("id=\"s24\"").unwrap();
    assert!(finding.contains("error[TW1002]") && finding.contains("did you mean `ko`?"), "{finding}");
    assert!(mark(&page.parts, "timeline")["stale"] == true && page.html("timeline").contains("<svg"));
    page.until("the steps before it", |it| it["steps"]["steps"].as_array().unwrap().len() == 17);

    save(folder.path(), &SCRIPT.replace("\"C\": 1", "\"C\": 2"));
    page.until("the other timeline", |it| contains(it, "timeline", "A_shared  shared      3"));
    page.until("what is new", |it| {
        let is_new = |panel| mark(it, panel)["stale"] == false && mark(it, panel)["changed"] == true;
        ["program", "kernel", "source", "timeline"].into_iter().all(is_new)
    });
    page.until("what changed", |it| contains(it, "changes", "data-of=\"timeline\""));
    assert!(page.html("changes").contains("Script: 1 line new, 1 line gone"));
    page.end();
}

#[test]
fn a_program_that_cannot_be_lowered_shows_its_steps() {
    let folder = folder(
        r#"schedule(
            workload: "matmul", target: "cuda", params: {"m": 64, "n": 64, "k": 64},
            steps: [
                cache_read(block: "C", buffer: "A", scope: "shared"),
                bind(loop: "i", axis: "blockIdx.x"),
                bind(loop: "j", axis: "threadIdx.x"),
            ],
        )"#,
    );
    let mut page = Page::open(folder.path(), &[]);
    page.until_state("wrong");
    page.until("the program", |it| {
        contains(it, "program", "A_shared") && mark(it, "program")["stale"] == false
    });
    // It is told at the step that made what is wrong.
    let (_, below) = page.html("script").split_once("id=\"s4\"").unwrap();
    assert!(below.split_once("id=\"s5\"").unwrap().0.contains("error[TW2001]"), "{below}");
    assert_eq!((page.parts["steps"]["steps"].as_array().unwrap().len(), page.html("kernel")), (3, ""));
    page.end();
}

#[test]
fn a_script_may_go_away_and_come_back() {
    let folder = folder(SCRIPT);
    let path = folder.path().join("a.ron");
    let mut page = Page::open(folder.path(), &[]);
    page.until_state("legal");
    fs::rename(&path, folder.path().join("b.ron")).unwrap();
    page.until_state("missing");
    assert_eq!(mark(&page.parts, "program")["stale"], true);
    fs::rename(folder.path().join("b.ron"), &path).unwrap();
    page.until_state("legal");
    page.until("the same panel", |it| mark(it, "program")["stale"] == false);
    // What is no text is no script, and mended as well.
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    save(folder.path(), "schedule(");
    page.until_state("wrong");
    save(folder.path(), SCRIPT);
    page.until_state("legal");
    page.end();
}

#[test]
fn only_its_own_page_is_answered() {
    let folder = folder(SCRIPT);
    let page = Page::open(folder.path(), &[]);
    let port = page.port;
    let (status, answer) = ask(port, "GET", "/", &host(port));
    assert!(status == 200 && answer.contains("content-security-policy: default-src 'none'"), "{answer}");
    for path in ["/studio.css", "/studio.js"] {
        assert_eq!(ask(port, "GET", path, &format!("Host: localhost:{port}")).0, 200, "{path}");
    }
    // A name of somebody else's that leads here, and a page of somebody else's that sends a form.
    for host in [format!("Host: evil.example:{port}"), "Host: evil.example".to_owned(), "X: y".to_owned()] {
        let (status, answer) = ask(port, "GET", "/events", &host);
        assert!(status == 403 && answer.contains("answers at http://127.0.0.1:"), "{host}: {answer}");
    }
    let foreign = format!("{}\r\nOrigin: http://evil.example", host(port));
    assert_eq!(ask(port, "POST", "/virtual-gpu", &foreign).0, 403);
    assert_eq!(ask(port, "GET", "/etc/passwd", &host(port)).0, 404);
    assert_eq!(ask(port, "GET", "/virtual-gpu", &host(port)).0, 405);
    page.end();
}

#[test]
fn the_virtual_gpu_waits_to_be_asked_where_it_takes_long() {
    let folder = folder(SCRIPT);
    let sizes = ["--param", "m=1024", "--param", "n=1024", "--param", "k=1024"];
    let mut page = Page::open(folder.path(), &sizes);
    page.until("why it waits", |it| state(it) == "legal" && mark(it, "virtual-gpu")["why"] != Value::Null);
    assert!(mark(&page.parts, "virtual-gpu")["why"].as_str().unwrap().contains("assignments"));
    assert_eq!(ask(page.port, "POST", "/virtual-gpu", &host(page.port)).0, 202);
    let running = |it: &Value| it["progress"].as_str().is_some_and(|it| it.contains("run 1 of"));
    page.until("how far it is", |it| running(mark(it, "virtual-gpu")));
    // A save ends it.
    save(folder.path(), &SCRIPT.replace("\"C\": 1", "\"C\": 2"));
    page.until("the next save", |it| contains(it, "timeline", "A_shared  shared      3"));
    page.until("its end", |it| mark(it, "virtual-gpu")["progress"] == Value::Null);
    page.end();
}

#[test]
fn a_browser_is_started_where_that_is_asked_for() {
    let folder = folder(SCRIPT);
    // What stands for the browser says its address into a pipe, which can be waited for.
    let path = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(path("opened")).status().unwrap().success());
    for name in ["open", "xdg-open"] {
        fs::write(path(name), "#!/bin/sh\necho \"$1\" > \"${0%/*}/opened\"\n").unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (send, opened) = channel();
    let pipe = path("opened");
    thread::spawn(move || send.send(fs::read_to_string(pipe)));
    let page = Page::open(folder.path(), &["--open"]);
    let url = opened.recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(url.trim(), format!("http://127.0.0.1:{}/", page.port));
    page.end();
}

#[test]
fn a_port_is_taken_or_a_script_not_there() {
    let folder = folder(SCRIPT);
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let told = tilewright(folder.path(), &["studio", "a.ron", "--port", &port]);
    insta::assert_snapshot!(told.replace(&port, "PORT"));
    let told = tilewright(folder.path(), &["studio", "b.ron", "--port", "0"]);
    assert!(told.contains("error[TW5001]") && told.ends_with("exit code 2"), "{told}");
}
