//! An editor, as far as the protocol knows one: texts, requests, and what was told to be wrong.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// Longer than any answer takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A server and what a client knows of it.
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    folder: PathBuf,
    pub(super) is_utf8: bool,
    /// The texts that are open, by their names, with their versions.
    pub(super) texts: BTreeMap<String, (i64, String)>,
    /// What was told to be wrong last, and with which version.
    wrong: BTreeMap<String, (Value, Value)>,
    next: i64,
}

impl Client {
    /// Starts a server in a folder, and agrees on what both understand.
    pub(super) fn start(folder: &Path, is_utf8: bool) -> Client {
        let mut client = Client::unborn(folder);
        client.is_utf8 = is_utf8;
        let encodings = if is_utf8 { json!(["utf-8", "utf-16"]) } else { json!(["utf-16"]) };
        let capabilities = json!({
            "general": {"positionEncodings": encodings},
            "textDocument": {"completion": {"completionItem": {"snippetSupport": true}}},
        });
        let params = json!({"processId": null, "rootUri": null, "capabilities": capabilities});
        let answer = client.ask("initialize", &params);
        let agreed = if is_utf8 { "utf-8" } else { "utf-16" };
        assert_eq!(answer["result"]["capabilities"]["positionEncoding"], agreed, "{answer}");
        client.say("initialized", &json!({}));
        client
    }

    /// A server that was told nothing.
    pub(super) fn unborn(folder: &Path) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.arg("lsp").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (out, input) = (child.stdout.take().unwrap(), child.stdin.take());
        let (send, messages) = channel();
        thread::spawn(move || {
            let mut out = BufReader::new(out);
            while let Some(it) = read(&mut out) {
                if send.send(it).is_err() {
                    break;
                }
            }
        });
        let (texts, wrong) = (BTreeMap::new(), BTreeMap::new());
        Client { child, input, messages, folder: folder.to_owned(), is_utf8: false, texts, wrong, next: 1 }
    }

    pub(super) fn uri(&self, name: &str) -> String {
        format!("file://{}/{name}", self.folder.display())
    }

    /// A text of the server without the folder of the test.
    pub(super) fn neutral(&self, text: &str) -> String {
        let folder = self.folder.display();
        text.replace(&format!("file://{folder}/"), "").replace(&format!("{folder}/"), "")
    }

    /// Sends bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    pub(super) fn say(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.answer(&json!(id))
    }

    /// Waits for the answer to a request.
    pub(super) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let it = self.receive();
            if it.get("method").is_none() && it["id"] == *id {
                return it;
            }
        }
    }

    /// The next message; what is wrong is kept.
    pub(super) fn receive(&mut self) -> Value {
        let it = self.messages.recv_timeout(TIMEOUT).expect("the server answers");
        if it["method"] == "textDocument/publishDiagnostics" {
            let params = &it["params"];
            let name = self.neutral(params["uri"].as_str().unwrap());
            self.wrong.insert(name, (params["version"].clone(), params["diagnostics"].clone()));
        }
        it
    }

    /// What is wrong with a text as it is now.
    pub(super) fn wrong(&mut self, name: &str) -> Vec<Value> {
        let version = self.texts.get(name).map(|it| json!(it.0));
        while self.wrong.get(name).map(|it| &it.0) != version.as_ref() {
            self.receive();
        }
        self.wrong[name].1.as_array().unwrap().clone()
    }

    pub(super) fn open(&mut self, name: &str, text: &str) {
        let document = json!({"uri": self.uri(name), "languageId": "tilewright", "version": 1, "text": text});
        self.say("textDocument/didOpen", &json!({"textDocument": document}));
        self.texts.insert(name.to_owned(), (1, text.to_owned()));
        self.wrong.clear();
    }

    /// Waits for what is wrong to be told again, of texts that are as they were, too: another one that they use has changed.
    pub(super) fn forget(&mut self) {
        self.wrong.clear();
    }

    pub(super) fn close(&mut self, name: &str) {
        self.say("textDocument/didClose", &json!({"textDocument": {"uri": self.uri(name)}}));
        self.texts.remove(name);
        self.wrong.clear();
    }

    /// Puts a text in place of some bytes, by a change as small.
    pub(super) fn replace(&mut self, name: &str, from: usize, to: usize, text: &str) {
        let range = self.range(name, from, to);
        let uri = self.uri(name);
        let (version, old) = self.texts.get_mut(name).unwrap();
        old.replace_range(from..to, text);
        *version += 1;
        let document = json!({"uri": uri, "version": version});
        let changes = json!([{"range": range, "text": text}]);
        self.say("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Applies an edit of the server's.
    pub(super) fn apply(&mut self, name: &str, edit: &Value) {
        let text = &self.texts[name].1;
        let [from, to] = ["start", "end"].map(|it| self.offset(text, &edit["range"][it]));
        let new = edit["newText"].as_str().unwrap().to_owned();
        self.replace(name, from, to, &new);
    }

    pub(super) fn range(&self, name: &str, from: usize, to: usize) -> Value {
        json!({"start": self.position(name, from), "end": self.position(name, to)})
    }

    pub(super) fn position(&self, name: &str, at: usize) -> Value {
        let before = &self.texts[name].1[..at];
        let line = before.rsplit('\n').next().unwrap();
        let column = if self.is_utf8 { line.len() } else { line.encode_utf16().count() };
        json!({"line": before.matches('\n').count(), "character": column})
    }

    /// The byte of a place, which has to be one of a letter.
    fn offset(&self, text: &str, at: &Value) -> usize {
        let [line, column] =
            ["line", "character"].map(|it| usize::try_from(at[it].as_u64().unwrap()).unwrap());
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let mut left = column;
        for (byte, letter) in text[start..].char_indices() {
            if left == 0 {
                return start + byte;
            }
            left -= if self.is_utf8 { letter.len_utf8() } else { letter.len_utf16() };
        }
        assert_eq!(left, 0, "{at} is no place in the text");
        text.len()
    }

    /// A range in words: where it is, and what stands there.
    pub(super) fn words(&self, name: &str, range: &Value) -> String {
        let [from, to] = ["start", "end"].map(|it| &range[it]);
        let place = |it: &Value| format!("{}:{}", it["line"], it["character"]);
        let excerpt = self.texts.get(name).map(|(_, text)| {
            let part = &text[self.offset(text, from)..self.offset(text, to)];
            format!(" {}", part.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        format!("{}-{}{}", place(from), place(to), excerpt.unwrap_or_default())
    }

    /// Ends the conversation as the protocol wants it, and gives the exit code.
    pub(super) fn end(mut self) -> Option<i32> {
        let answer = self.ask("shutdown", &Value::Null);
        assert_eq!(answer["result"], Value::Null, "{answer}");
        self.say("exit", &Value::Null);
        self.child.wait().unwrap().code()
    }

    /// The exit code of a server that gets nothing more to read.
    pub(super) fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// A message of the server; nothing once it ends.
fn read(out: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if out.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        length = line.strip_prefix("Content-Length: ").map(|it| it.trim().parse().unwrap()).or(length);
    }
    let mut bytes = vec![0; length?];
    out.read_exact(&mut bytes).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}
