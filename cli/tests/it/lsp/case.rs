//! Transcripts: a case is a text with files and what an editor does, one after the other, and its snapshot has the answers.
//!
//! ```text
//! === file w.tw            the lines behind it are a file on the disk
//! === open a.ron           … are the text of an editor; without lines, that of the file
//! === edit a.ron: OLD => NEW
//! === errors a.ron         what is told to be wrong
//! === hover a.ron: bef‸ore         ‸ is the cursor, in a part of the text
//! === complete a.ron: "‸"          what is offered; with `| more` the manual of the first, too
//! === accept a.ron: uns‸ | unroll  takes an item
//! === definition a.ron: "k‸i"
//! === hints a.ron, symbols a.ron, format a.ron, text a.ron, close a.ron
//! === fixes a.ron          what would mend the errors
//! === fix a.ron: TITLE     does it
//! ```

use std::{fmt::Write, fs, path::Path};

use serde_json::{Value, json};

use super::client::Client;

/// The most items that are shown.
const MOST_ITEMS: usize = 12;

/// What is said and answered.
pub(super) fn transcript(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let is_utf8 = text.starts_with("=== utf-8\n");
    let mut client = Client::start(folder.path(), is_utf8);
    let mut out = String::new();
    for section in text.split("=== ").skip(1) {
        let (line, body) = section.split_once('\n').unwrap();
        let _ = write!(out, "=== {line}\n{}\n", step(&mut client, folder.path(), line, body).trim_end());
    }
    assert_eq!(client.end(), Some(0));
    out
}

fn step(client: &mut Client, folder: &Path, line: &str, body: &str) -> String {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (name, what) = rest.split_once(": ").unwrap_or((rest, ""));
    match verb {
        "file" => {
            fs::write(folder.join(name), body).unwrap();
            String::new()
        }
        "open" => {
            let file = fs::read_to_string(folder.join(name)).unwrap_or_default();
            client.open(name, if body.is_empty() { &file } else { body });
            String::new()
        }
        "close" => {
            client.close(name);
            String::new()
        }
        "edit" => {
            let (old, new) = what.split_once(" =>").unwrap();
            let (old, new) = (old.replace("\\n", "\n"), new.strip_prefix(' ').unwrap_or_default());
            let at = client.texts[name].1.find(&old).unwrap_or_else(|| panic!("{line}: there is none"));
            client.replace(name, at, at + old.len(), &new.replace("\\n", "\n"));
            client.forget();
            String::new()
        }
        "errors" => errors(client, name),
        "hover" => {
            let answer = ask_at(client, "hover", name, what);
            let Some(value) = answer["contents"]["value"].as_str() else { return "nothing".to_owned() };
            format!("{}\n\n{value}", client.words(name, &answer["range"]))
        }
        "complete" => complete(client, name, what),
        "accept" => {
            let (at, label) = what.split_once(" | ").unwrap();
            let items = ask_at(client, "completion", name, at);
            let item = items.as_array().unwrap().iter().find(|it| it["label"] == label).unwrap().clone();
            client.apply(name, &item["textEdit"]);
            client.texts[name].1.clone()
        }
        "definition" => {
            let answer = ask_at(client, "definition", name, what);
            let Some(uri) = answer["uri"].as_str() else { return "nothing".to_owned() };
            let target = client.neutral(uri);
            format!("{target} {}", client.words(&target, &answer["range"]))
        }
        "hints" => hints(client, name),
        "symbols" => {
            let answer = ask(client, "documentSymbol", name, json!({}));
            let mut out = String::new();
            symbols(client, name, &answer, 0, &mut out);
            out
        }
        "format" => format(client, name),
        "fixes" | "fix" => fix(client, name, what),
        "text" => client.texts[name].1.clone(),
        "utf-8" => String::new(),
        _ => panic!("{line}: nothing does that"),
    }
}

fn ask(client: &mut Client, method: &str, name: &str, mut params: Value) -> Value {
    params["textDocument"] = json!({"uri": client.uri(name)});
    let answer = client.ask(&format!("textDocument/{method}"), &params);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Asks about the place of `‸` in a part of a text.
fn ask_at(client: &mut Client, method: &str, name: &str, part: &str) -> Value {
    let (before, behind) = part.split_once('‸').unwrap();
    let found = client.texts[name].1.find(&format!("{before}{behind}").replace("\\n", "\n"));
    let at = found.unwrap_or_else(|| panic!("{part} is not in the text")) + before.replace("\\n", "\n").len();
    let position = client.position(name, at);
    ask(client, method, name, json!({"position": position}))
}

fn errors(client: &mut Client, name: &str) -> String {
    let all = client.wrong(name);
    let mut out = String::new();
    for it in &all {
        assert_eq!((it["severity"].as_i64(), it["source"].as_str()), (Some(1), Some("tilewright")));
        let code = it["code"].as_str().unwrap();
        assert!(it["codeDescription"]["href"].as_str().unwrap().ends_with(&format!("/{code}.md")));
        let message = client.neutral(it["message"].as_str().unwrap()).replace('\n', "\n  ");
        let _ = writeln!(out, "{}\n  {code}: {message}", client.words(name, &it["range"]));
        for other in it["relatedInformation"].as_array().into_iter().flatten() {
            let place = &other["location"];
            let file = client.neutral(place["uri"].as_str().unwrap());
            let words = client.words(&file, &place["range"]);
            let _ = writeln!(out, "  {file} {words}: {}", other["message"].as_str().unwrap());
        }
    }
    if all.is_empty() { "none".to_owned() } else { out }
}

/// What is offered, as far as it begins like what stands there.
fn complete(client: &mut Client, name: &str, what: &str) -> String {
    let (at, is_long) = what.split_once(" | ").map_or((what, false), |it| (it.0, true));
    let items = ask_at(client, "completion", name, at);
    let typed: String = at
        .split('‸')
        .next()
        .unwrap()
        .chars()
        .rev()
        .take_while(|it| it.is_alphanumeric() || *it == '_')
        .collect();
    let typed: String = typed.chars().rev().collect();
    let items =
        items.as_array().unwrap().iter().filter(|it| it["label"].as_str().unwrap().starts_with(&typed));
    let items: Vec<_> = items.collect();
    let mut out = String::new();
    for it in items.iter().take(MOST_ITEMS) {
        let text = |field: &str| it[field].as_str().unwrap_or_default();
        let written = it["textEdit"]["newText"].as_str().unwrap();
        let _ = writeln!(out, "{}: `{written}` {}", text("label"), text("detail"));
        if is_long {
            return format!("{out}{}", it["documentation"]["value"].as_str().unwrap_or_default());
        }
    }
    match items.len() {
        0 => "nothing".to_owned(),
        n if n > MOST_ITEMS => format!("{out}… {} more", n - MOST_ITEMS),
        _ => out,
    }
}

/// The text as it is laid out.
fn format(client: &mut Client, name: &str) -> String {
    let options = json!({"tabSize": 4, "insertSpaces": true});
    let edits = ask(client, "formatting", name, json!({"options": options}));
    let Some(edits) = edits.as_array() else { return "nothing".to_owned() };
    for it in edits {
        client.apply(name, it);
    }
    client.texts[name].1.clone()
}

/// The lines that have hints, with these in them.
fn hints(client: &mut Client, name: &str) -> String {
    let end = client.texts[name].1.len();
    let range = client.range(name, 0, end);
    let answer = ask(client, "inlayHint", name, json!({"range": range}));
    let lines: Vec<&str> = client.texts[name].1.lines().collect();
    let mut out = String::new();
    for it in answer.as_array().unwrap() {
        let [line, column] =
            ["line", "character"].map(|at| usize::try_from(it["position"][at].as_u64().unwrap()).unwrap());
        let (before, behind) = lines[line].split_at(column);
        let _ = writeln!(out, "{}⟨{}⟩{behind}", before.trim_start(), it["label"].as_str().unwrap());
    }
    out
}

fn symbols(client: &Client, name: &str, all: &Value, level: usize, out: &mut String) {
    for it in all.as_array().into_iter().flatten() {
        let detail = it["detail"].as_str().map(|it| format!(" {it}")).unwrap_or_default();
        let place = client.words(name, &it["selectionRange"]);
        let place = place.split(' ').next().unwrap();
        let _ = writeln!(out, "{}{place} {}{detail}", "  ".repeat(level), it["name"].as_str().unwrap());
        symbols(client, name, &it["children"], level + 1, out);
    }
}

/// What would mend what is wrong, or, with a title, that done.
fn fix(client: &mut Client, name: &str, title: &str) -> String {
    let wrong = client.wrong(name);
    let mut out = String::new();
    for it in &wrong {
        let params = json!({"range": it["range"], "context": {"diagnostics": [it]}});
        let actions = ask(client, "codeAction", name, params);
        for action in actions.as_array().unwrap() {
            assert_eq!(
                (&action["kind"], &action["diagnostics"][0]["code"]),
                (&json!("quickfix"), &it["code"])
            );
            let edit = action["edit"]["changes"][client.uri(name)][0].clone();
            if action["title"] == title {
                client.apply(name, &edit);
                return client.texts[name].1.clone();
            }
            let (place, words) = (client.words(name, &edit["range"]), edit["newText"].as_str().unwrap());
            let _ = writeln!(out, "{}: {place} => {words}", action["title"].as_str().unwrap());
        }
    }
    assert!(title.is_empty(), "nothing is called `{title}`");
    if out.is_empty() { "none".to_owned() } else { out }
}
