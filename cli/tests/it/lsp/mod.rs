//! `tilewright lsp`, through its protocol.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod case;
mod client;
mod fuzz;

use std::fs;

use case::transcript;
use client::Client;
use serde_json::{Value, json};

use crate::tidy::root;

#[test]
fn conversations_go_as_they_should() {
    insta::glob!("../../lsp", "*.txt", |path| {
        let text = fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(transcript(&text));
    });
}

/// A word that the language learns is coloured, too.
#[test]
fn the_grammars_know_all_types_and_scopes() {
    for file in ["vscode/syntaxes/program.tmLanguage.json", "nvim/syntax/tilewright.vim"] {
        let text = fs::read_to_string(root().join("editors").join(file)).unwrap();
        for it in ir::DType::ALL.map(ir::DType::as_str) {
            assert!(text.contains(it), "{file} does not know {it}");
        }
    }
    let text = fs::read_to_string(root().join("editors/vscode/syntaxes/program.tmLanguage.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&text).unwrap()["repository"].is_object());
    for it in ir::Scope::ALL {
        assert!(text.contains(it.as_str()), "{}", it.as_str());
    }
}

/// A server in a folder of its own, which goes with the guard.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn requests_out_of_turn_are_refused_with_the_codes_of_the_protocol() {
    let folder = folder();
    let mut client = Client::unborn(folder.path());
    let code = |it: &Value| it["error"]["code"].as_i64();
    assert_eq!(code(&client.ask("textDocument/hover", &json!({}))), Some(-32002), "before initialize");
    assert_eq!(code(&client.ask("initialize", &json!({"capabilities": 1}))), Some(-32602));
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    assert!(client.ask("initialize", &params)["result"]["capabilities"].is_object());
    assert_eq!(code(&client.ask("initialize", &params)), Some(-32600), "twice");
    assert_eq!(code(&client.ask("textDocument/nothing", &json!({}))), Some(-32601));
    for params in [json!({}), json!(null), json!([1]), json!({"textDocument": {"uri": 1}, "position": "x"})] {
        assert_eq!(code(&client.ask("textDocument/hover", &params)), Some(-32602));
    }
    let place = json!({"textDocument": {"uri": "file:///a.ron"}, "position": {"line": 0, "character": 0}});
    assert_eq!(code(&client.ask("textDocument/hover", &place)), Some(-32602), "it is not open");
    // What is said and cannot be read is passed over.
    for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/other"] {
        client.say(method, &json!({"textDocument": 1}));
    }
    client.raw(b"Content-Length: 5\r\n\r\n{nope");
    let broken = client.answer(&Value::Null);
    assert_eq!(code(&broken), Some(-32700));
    client.say("$/cancelRequest", &json!({"id": 4711}));
    assert!(client.ask("shutdown", &Value::Null).get("error").is_none());
    assert_eq!(code(&client.ask("textDocument/hover", &json!({}))), Some(-32600), "after shutdown");
    client.say("exit", &Value::Null);
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn leaving_without_a_word_is_an_error() {
    let folder = folder();
    assert_eq!(Client::start(folder.path(), false).leave(), Some(1));
    let mut client = Client::start(folder.path(), false);
    client.say("exit", &Value::Null);
    assert_eq!(client.leave(), Some(1));
    assert_eq!(Client::start(folder.path(), true).end(), Some(0));
}

#[test]
fn files_that_change_on_the_disk_are_read_again() {
    let folder = folder();
    let write = |loops: &str| {
        let text = format!(
            "func f\n  in A: f32[8]\n  out B: f32[8]\n\n  for {loops} in 0..8\n    block B(v: 8 = {loops})\n      B[v] = A[v]\n"
        );
        fs::write(folder.path().join("w.tw"), text).unwrap();
    };
    write("i");
    let mut client = Client::unborn(folder.path());
    let capabilities = json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    client.ask("initialize", &json!({"processId": null, "rootUri": null, "capabilities": capabilities}));
    client.say("initialized", &json!({}));
    let asked = client.receive();
    assert_eq!(asked["method"], "client/registerCapability");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": null}));
    client.open("a.ron", "schedule(workload: \"./w.tw\", steps: [unroll(loop: \"i\")])");
    assert!(client.wrong("a.ron").is_empty());
    write("l");
    client.forget();
    let changes = json!([{"uri": client.uri("w.tw"), "type": 2}]);
    client.say("workspace/didChangeWatchedFiles", &json!({"changes": changes}));
    assert_eq!(client.wrong("a.ron")[0]["code"], "TW1002");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn requests_that_are_taken_back_are_answered_so() {
    let folder = folder();
    let mut client = Client::start(folder.path(), false);
    client.open("a.ron", "schedule(workload: \"matmul\", steps: [])");
    // Both come in one piece, so that the first is still waiting when the second is read.
    let place =
        json!({"textDocument": {"uri": client.uri("a.ron")}, "position": {"line": 0, "character": 0}});
    let mut bytes = vec![];
    let mut messages = vec![];
    for id in 0..50 {
        messages.push(json!({"jsonrpc": "2.0", "id": format!("r{id}"), "method": "textDocument/hover", "params": place}));
    }
    messages.push(json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "r49"}}));
    for it in &messages {
        let text = it.to_string();
        bytes.extend(format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes());
    }
    client.raw(&bytes);
    let answer = client.answer(&json!("r49"));
    // It may have been faster than the one that takes it back.
    assert!(answer["error"]["code"] == -32800 || answer.get("result").is_some(), "{answer}");
    assert_eq!(client.end(), Some(0));
}
