//! The conversation with a client.

use std::{
    any::Any,
    collections::VecDeque,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use gen_lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, PublishDiagnosticsParams, Uri,
};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

use super::{
    answers::{Answers, initialized},
    documents::Documents,
    text::{Encoding, Text},
    uri::path_of,
};
use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// How long a client is silent before it is told what is wrong.
const SILENCE: Duration = Duration::from_millis(60);

/// How many messages in a row may be none before the server gives up.
const MOST_BROKEN: usize = 64;

/// What comes from a client.
enum Incoming {
    Message(Message),
    /// Something that is no message.
    Broken(String),
}

/// Serves a client on standard input until it says that it is done.
///
/// # Errors
///
/// A client that goes away without saying so.
pub(crate) fn serve(out: &mut dyn Write) -> Result<(), Diagnostic> {
    let (send, incoming) = channel();
    thread::spawn(move || {
        let (mut input, mut broken) = (io::stdin().lock(), 0);
        loop {
            let next = match Message::read(&mut input) {
                Ok(Some(it)) => {
                    broken = 0;
                    Incoming::Message(it)
                }
                Ok(None) => break,
                Err(err) => {
                    broken += 1;
                    Incoming::Broken(err.to_string())
                }
            };
            if broken > MOST_BROKEN || send.send(next).is_err() {
                break;
            }
        }
    });
    let answers = Answers::new(Documents::new(Encoding::Utf16));
    let mut server = Server { out, incoming, queue: VecDeque::new(), answers, state: State::Silent };
    server.run()
}

/// How far a conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before `initialize`.
    Silent,
    Open,
    /// After `shutdown`.
    Closing,
}

struct Server<'a> {
    out: &'a mut dyn Write,
    incoming: Receiver<Incoming>,
    /// What has come and is not looked at yet.
    queue: VecDeque<Incoming>,
    answers: Answers,
    state: State,
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), Diagnostic> {
        loop {
            let Some(next) = self.next()? else {
                let title = "the editor went away without saying that it is done";
                return Err(Diagnostic::failed(UsageError::Process, title));
            };
            match next {
                Incoming::Broken(what) => {
                    let error = json!({"code": ErrorCode::ParseError as i32, "message": what});
                    self.send_value(&json!({"jsonrpc": "2.0", "id": null, "error": error}))?;
                }
                Incoming::Message(Message::Request(it)) => {
                    let response = self.request(it);
                    self.send(&response.into())?;
                }
                Incoming::Message(Message::Notification(it)) if it.method == "exit" => {
                    let title = "the editor said exit without shutdown";
                    let is_due = self.state == State::Closing;
                    return if is_due { Ok(()) } else { Err(Diagnostic::failed(UsageError::Process, title)) };
                }
                Incoming::Message(Message::Notification(it)) => self.notification(it)?,
                // All that is asked of clients is to watch files, and they may or may not.
                Incoming::Message(Message::Response(_)) => {}
            }
        }
    }

    /// What is to be looked at next; nothing if no more will come. While nothing comes, what is wrong is told.
    fn next(&mut self) -> Result<Option<Incoming>, Diagnostic> {
        while self.queue.is_empty() {
            let untold = self.answers.documents.untold();
            if untold.is_empty() {
                let Ok(next) = self.incoming.recv() else { return Ok(None) };
                self.queue.push_back(next);
                break;
            }
            match self.incoming.recv_timeout(SILENCE) {
                Ok(next) => self.queue.push_back(next),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.tell()?,
            }
        }
        self.queue.extend(self.incoming.try_iter());
        self.cancel()?;
        Ok(self.queue.pop_front().or(Some(Incoming::Message(Message::Notification(nothing())))))
    }

    /// Answers the requests that were taken back before they were looked at.
    fn cancel(&mut self) -> Result<(), Diagnostic> {
        let id_of = |it: &Incoming| match it {
            Incoming::Message(Message::Notification(it)) if it.method == "$/cancelRequest" => {
                serde_json::from_value::<RequestId>(it.params["id"].clone()).ok()
            }
            _ => None,
        };
        let taken_back: Vec<RequestId> = self.queue.iter().filter_map(id_of).collect();
        for id in taken_back {
            let is_it = |it: &Incoming| matches!(it, Incoming::Message(Message::Request(it)) if it.id == id);
            if let Some(at) = self.queue.iter().position(is_it) {
                self.queue.remove(at);
                let code = ErrorCode::RequestCanceled as i32;
                self.send(&Response::new_err(id, code, "it was taken back".to_owned()).into())?;
            }
        }
        Ok(())
    }

    fn request(&mut self, it: Request) -> Response {
        let fail = |code: ErrorCode, words: String| Response::new_err(it.id.clone(), code as i32, words);
        match (self.state, it.method.as_str()) {
            (State::Silent, "initialize") => match initialized(&it.params) {
                Ok((answers, result)) => {
                    (self.answers, self.state) = (answers, State::Open);
                    Response::new_ok(it.id, result)
                }
                Err(words) => fail(ErrorCode::InvalidParams, words),
            },
            (State::Silent, _) => fail(ErrorCode::ServerNotInitialized, "initialize comes first".to_owned()),
            (State::Open, "shutdown") => {
                self.state = State::Closing;
                Response::new_ok(it.id, Value::Null)
            }
            (State::Open, "initialize") | (State::Closing, _) => {
                fail(ErrorCode::InvalidRequest, format!("`{}` comes too late", it.method))
            }
            (State::Open, method) => {
                let answer =
                    catch_unwind(AssertUnwindSafe(|| self.answers.answer(method, it.params.clone())));
                match answer {
                    Ok(Ok(value)) => Response::new_ok(it.id, value),
                    Ok(Err((code, words))) => fail(code, words),
                    Err(panic) => fail(ErrorCode::InternalError, words_of(panic.as_ref())),
                }
            }
        }
    }

    /// What a client says without asking. What cannot be read is passed over, as the protocol wants it.
    fn notification(&mut self, it: Notification) -> Result<(), Diagnostic> {
        if self.state != State::Open {
            return Ok(());
        }
        match it.method.as_str() {
            "initialized" if self.answers.is_watching => {
                let watchers = json!([{"globPattern": "**/*.{ron,tw}"}]);
                let method = "workspace/didChangeWatchedFiles";
                let one = json!({"id": "files", "method": method, "registerOptions": {"watchers": watchers}});
                let params = json!({"registrations": [one]});
                let id = RequestId::from("files".to_owned());
                self.send(&Request::new(id, "client/registerCapability".to_owned(), params).into())?;
            }
            "textDocument/didOpen" => {
                let Ok(it) = serde_json::from_value::<DidOpenTextDocumentParams>(it.params) else {
                    return Ok(());
                };
                let it = it.text_document;
                let text = Text::new(&it.text, self.answers.documents.encoding);
                self.answers.documents.set(&path_of(&it.uri), it.uri, it.version, text);
            }
            "textDocument/didChange" => {
                let Ok(it) = serde_json::from_value::<DidChangeTextDocumentParams>(it.params) else {
                    return Ok(());
                };
                let uri = it.text_document.text_document_identifier.uri;
                let path = path_of(&uri);
                let Some(open) = self.answers.documents.get(&path) else { return Ok(()) };
                let text = it.content_changes.iter().fold(open.text.clone(), |text, it| text.changed(it));
                self.answers.documents.set(&path, uri, it.text_document.version, text);
            }
            "textDocument/didClose" => {
                let Ok(it) = serde_json::from_value::<DidCloseTextDocumentParams>(it.params) else {
                    return Ok(());
                };
                if let Some(it) = self.answers.documents.close(&path_of(&it.text_document.uri)) {
                    self.publish(it.uri, None, vec![])?;
                }
            }
            "workspace/didChangeWatchedFiles" => {
                let Ok(it) = serde_json::from_value::<DidChangeWatchedFilesParams>(it.params) else {
                    return Ok(());
                };
                for it in it.changes {
                    self.answers.documents.stale(&path_of(&it.uri));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Tells what is wrong with a text, the first of those of which it is not told yet.
    fn tell(&mut self) -> Result<(), Diagnostic> {
        let Some(path) = self.answers.documents.untold().into_iter().next() else { return Ok(()) };
        let documents = &mut self.answers.documents;
        let found = catch_unwind(AssertUnwindSafe(|| {
            let encoding = documents.encoding;
            let open = documents.diagnose(&path)?;
            let all = open.findings.iter().map(|it| it.shown(&open.text, encoding)).collect();
            Some((open.uri.clone(), open.version, all))
        }));
        self.answers.documents.told(&path);
        match found {
            Ok(Some((uri, version, all))) => self.publish(uri, Some(version), all),
            // Something else than the text is wrong: its own error went to standard error.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    fn publish(
        &mut self,
        uri: Uri,
        version: Option<i32>,
        diagnostics: Vec<gen_lsp_types::Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let params = PublishDiagnosticsParams { uri, version, diagnostics };
        let method = "textDocument/publishDiagnostics".to_owned();
        self.send(&Notification::new(method, params).into())
    }

    fn send(&mut self, message: &Message) -> Result<(), Diagnostic> {
        message.write(&mut self.out)?;
        Ok(())
    }

    /// What [`Message`] has no form for.
    fn send_value(&mut self, value: &Value) -> Result<(), Diagnostic> {
        let text = value.to_string();
        write!(self.out, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        Ok(self.out.flush()?)
    }
}

/// A notification that nobody heeds.
fn nothing() -> Notification {
    Notification { method: "$/nothing".to_owned(), params: Value::Null }
}

/// What a panic says.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it broke");
    format!("tilewright is wrong, not the text: {text}")
}
