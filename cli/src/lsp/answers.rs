//! Questions about texts, and their answers in the words of the protocol.

use std::{collections::HashMap, ops::Range, path::PathBuf};

use gen_lsp_types::{
    self as lsp, CodeAction, CodeActionKind, CodeActionOptions, CodeActionParams, CompletionItem,
    CompletionItemKind, CompletionOptions, CompletionParams, DefinitionParams, DocumentFormattingParams,
    DocumentSymbolParams, Documentation, HoverParams, InitializeParams, InitializeResult, InlayHint,
    InlayHintKind, InlayHintParams, InsertTextFormat, Location, MarkupContent, MarkupKind,
    PositionEncodingKind, ServerCapabilities, ServerInfo, TextDocumentPositionParams, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextEdit, Uri, WorkspaceEdit,
};
use lsp_server::ErrorCode;
use schedule::format;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    completion::{Item, ItemKind, complete},
    definition::definition,
    documents::{Documents, Open},
    fixes::fixes,
    hints::hints,
    hover::hover,
    symbols::symbols,
    text::{Encoding, Text},
    uri::{path_of, uri_of},
};

/// What is wrong with a question.
type Refusal = (ErrorCode, String);

/// The texts that are open, and what the client understands.
pub(super) struct Answers {
    pub(super) documents: Documents,
    /// Whether it fills in snippets.
    has_snippets: bool,
    /// Whether it tells of files that change, if it is asked to.
    pub(super) is_watching: bool,
}

/// What is made of `initialize`: what is agreed on, and the answer.
pub(super) fn initialized(params: &Value) -> Result<(Answers, Value), String> {
    let params: InitializeParams = serde_json::from_value(params.clone()).map_err(|err| err.to_string())?;
    let capabilities = params.capabilities;
    let encodings = capabilities.general.and_then(|it| it.position_encodings).unwrap_or_default();
    let is_utf8 = encodings.contains(&PositionEncodingKind::UTF8);
    let files = capabilities.workspace.and_then(|it| it.did_change_watched_files);
    let is_watching = files.and_then(|it| it.dynamic_registration) == Some(true);
    let completion = capabilities.text_document.and_then(|it| it.completion);
    let item = completion.and_then(|it| it.completion_item);
    let has_snippets = item.and_then(|it| it.snippet_support) == Some(true);
    let encoding = if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::Incremental),
        ..TextDocumentSyncOptions::default()
    };
    let triggers = ["\"", "(", "{", "["].map(str::to_owned).to_vec();
    let completion = CompletionOptions { trigger_characters: Some(triggers), ..CompletionOptions::default() };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QuickFix]),
        ..CodeActionOptions::default()
    };
    let capabilities = ServerCapabilities {
        position_encoding: Some(if is_utf8 {
            PositionEncodingKind::UTF8
        } else {
            PositionEncodingKind::UTF16
        }),
        text_document_sync: Some(sync.into()),
        completion_provider: Some(completion),
        hover_provider: Some(true.into()),
        definition_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        code_action_provider: Some(actions.into()),
        document_formatting_provider: Some(true.into()),
        inlay_hint_provider: Some(true.into()),
        ..ServerCapabilities::default()
    };
    let info =
        ServerInfo { name: "tilewright".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
    let result = InitializeResult { capabilities, server_info: Some(info) };
    let result = serde_json::to_value(result).map_err(|err| err.to_string())?;
    Ok((Answers { documents: Documents::new(encoding), has_snippets, is_watching }, result))
}

impl Answers {
    /// Before anything is agreed on.
    pub(super) fn new(documents: Documents) -> Answers {
        Answers { documents, has_snippets: false, is_watching: false }
    }

    /// The answer to a question.
    pub(super) fn answer(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "textDocument/completion" => {
                let it: CompletionParams = read(params)?;
                self.completion(&it.text_document_position_params)
            }
            "textDocument/hover" => {
                let it: HoverParams = read(params)?;
                self.hover(&it.text_document_position_params)
            }
            "textDocument/definition" => {
                let it: DefinitionParams = read(params)?;
                self.definition(&it.text_document_position_params)
            }
            "textDocument/inlayHint" => self.hints(&read(params)?),
            "textDocument/documentSymbol" => self.symbols(&read(params)?),
            "textDocument/codeAction" => self.actions(&read(params)?),
            "textDocument/formatting" => self.formatting(&read(params)?),
            _ => Err((ErrorCode::MethodNotFound, format!("nothing answers `{method}`"))),
        }
    }

    /// The path of a text that is open, and the text.
    fn open(&self, uri: &Uri) -> Result<(PathBuf, Text), Refusal> {
        let path = path_of(uri);
        let open = self.documents.get(&path).map(|it| it.text.clone());
        let words = || format!("`{uri}` is not open");
        open.map(|it| (path, it)).ok_or_else(|| (ErrorCode::InvalidParams, words()))
    }

    fn at(&self, it: &TextDocumentPositionParams) -> Result<(PathBuf, Text, usize), Refusal> {
        let (path, text) = self.open(&it.text_document.uri)?;
        let offset = text.offset(it.position);
        Ok((path, text, offset))
    }

    fn completion(&mut self, it: &TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (path, text, offset) = self.at(it)?;
        let unsaved = self.documents.unsaved.clone();
        let has_snippets = self.has_snippets;
        let all = self.documents.script(&path).map(|it| complete(it, &path, offset, &unsaved));
        let all = all.unwrap_or_default().into_iter().enumerate();
        let items: Vec<_> = all.map(|(n, it)| item(it, n, &text, has_snippets)).collect();
        written(&items)
    }

    fn hover(&mut self, it: &TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (path, text, offset) = self.at(it)?;
        let unsaved = self.documents.unsaved.clone();
        let found = self.documents.script(&path).and_then(|it| hover(it, &path, offset, &unsaved));
        written(&found.map(|(span, words)| lsp::Hover {
            contents: MarkupContent::new(MarkupKind::Markdown, words).into(),
            range: Some(text.range(&span)),
        }))
    }

    fn definition(&mut self, it: &TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (path, _, offset) = self.at(it)?;
        let (unsaved, encoding) = (self.documents.unsaved.clone(), self.documents.encoding);
        let found = self.documents.script(&path).and_then(|it| definition(it, &path, offset, &unsaved));
        written(
            &found.map(|it| Location::new(uri_of(&it.path), Text::new(&it.text, encoding).range(&it.span))),
        )
    }

    fn hints(&mut self, it: &InlayHintParams) -> Result<Value, Refusal> {
        let (path, text) = self.open(&it.text_document.uri)?;
        let wanted = text.offset(it.range.start)..=text.offset(it.range.end);
        let all = self.documents.script(&path).map(hints).unwrap_or_default();
        let shown = all.into_iter().filter(|it| wanted.contains(&it.at)).map(|it| InlayHint {
            position: text.position(it.at),
            label: it.label.into(),
            kind: Some(InlayHintKind::Type),
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        });
        written(&shown.collect::<Vec<_>>())
    }

    fn symbols(&self, it: &DocumentSymbolParams) -> Result<Value, Refusal> {
        let (path, text) = self.open(&it.text_document.uri)?;
        let all = self.documents.get(&path).map(|it| symbols(&text, &it.outline));
        written(&all.unwrap_or_default())
    }

    fn actions(&mut self, it: &CodeActionParams) -> Result<Value, Refusal> {
        let (path, text) = self.open(&it.text_document.uri)?;
        let wanted = text.offset(it.range.start)..text.offset(it.range.end);
        let is_near = |it: &Range<usize>| it.start <= wanted.end && wanted.start <= it.end;
        let encoding = self.documents.encoding;
        let Some(open) = self.documents.diagnose(&path) else { return Ok(Value::Null) };
        let near = open.findings.iter().filter(|it| is_near(&it.span));
        let all = near.flat_map(|found| {
            let fixes = fixes(found, &text.whole, &open.outline);
            let is_only = fixes.len() == 1;
            fixes.into_iter().map(move |fix| (fix, found, is_only))
        });
        let all = all.map(|(fix, found, is_only)| CodeAction {
            title: fix.title,
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![found.shown(&open.text, encoding)]),
            is_preferred: is_only.then_some(true),
            edit: Some(WorkspaceEdit {
                changes: Some(HashMap::from([(
                    it.text_document.uri.clone(),
                    vec![TextEdit::new(text.range(&fix.span), fix.text)],
                )])),
                ..WorkspaceEdit::default()
            }),
            disabled: None,
            command: None,
            data: None,
            tags: None,
        });
        written(&all.collect::<Vec<_>>())
    }

    /// The text as `fmt` lays it out: one change, from the first to the last line that is another; nothing where it is no RON.
    fn formatting(&self, it: &DocumentFormattingParams) -> Result<Value, Refusal> {
        let (path, text) = self.open(&it.text_document.uri)?;
        let is_ours = self.documents.get(&path).is_some_and(Open::is_ron);
        let Some(out) = format::format(&text.whole).ok().filter(|_| is_ours) else { return Ok(Value::Null) };
        let old: Vec<&str> = text.whole.split_inclusive('\n').collect();
        let new: Vec<&str> = out.split_inclusive('\n').collect();
        let same = old.iter().zip(&new).take_while(|it| it.0 == it.1).count();
        let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
        let behind = rest.take_while(|it| it.0 == it.1).count();
        let bytes = |lines: &[&str]| lines.iter().map(|it| it.len()).sum::<usize>();
        let start = bytes(&old[..same]);
        let end = text.whole.len() - bytes(&old[old.len() - behind..]);
        if start == end && new.len() == same + behind {
            return written(&Vec::<TextEdit>::new());
        }
        let inner = new[same..new.len() - behind].concat();
        written(&vec![TextEdit::new(text.range(&(start..end)), inner)])
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|err| (ErrorCode::InvalidParams, err.to_string()))
}

fn written(value: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|err| (ErrorCode::InternalError, err.to_string()))
}

/// An item as the protocol has it; they are shown in their order.
fn item(it: Item, n: usize, text: &Text, has_snippets: bool) -> CompletionItem {
    let kind = match it.kind {
        ItemKind::Step => CompletionItemKind::Function,
        ItemKind::Procedure => CompletionItemKind::Method,
        ItemKind::Field => CompletionItemKind::Field,
        ItemKind::Name => CompletionItemKind::Variable,
        ItemKind::Word => CompletionItemKind::Keyword,
    };
    let is_snippet = has_snippets && it.snippet.contains("${");
    let written = if has_snippets { it.snippet } else { without_stops(&it.snippet) };
    CompletionItem {
        label: it.label,
        kind: Some(kind),
        detail: (!it.detail.is_empty()).then_some(it.detail),
        documentation: it.manual.map(|it| Documentation::from(MarkupContent::new(MarkupKind::Markdown, it))),
        sort_text: Some(format!("{n:04}")),
        insert_text_format: is_snippet.then_some(InsertTextFormat::Snippet),
        text_edit: Some(TextEdit::new(text.range(&it.replaces), written).into()),
        ..CompletionItem::default()
    }
}

/// A snippet without the places to fill in.
fn without_stops(snippet: &str) -> String {
    let mut parts = snippet.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, it| out + it.split_once('}').map_or(it, |it| it.1))
}
