//! Arguments of calls, and how they stand in texts.

use std::{ops::Range, sync::Arc};

use indexmap::IndexMap;

use super::{definition::Procedure, origin::Site};
use crate::{
    nearest,
    ron_letters::head,
    ron_text::{Fields, parse_at, range_of},
    script_error::{ScriptError, ScriptProblem},
};

/// What a parameter stands for.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    /// Its text in RON.
    pub text: Arc<str>,
    /// Where it was given.
    pub site: Site,
}

/// What each parameter stands for.
pub(super) type Arguments = IndexMap<String, Argument>;

/// The arguments of a call and where their values stand, if they are those that the procedure takes.
pub(super) fn of_call(
    text: &str,
    call: &Range<usize>,
    procedure: &Procedure,
) -> Result<Vec<(String, Range<usize>)>, ScriptError> {
    let name = &procedure.name;
    let word = call.start..call.start + head(&text[call.clone()]).len();
    let fields: Fields<'_> = parse_at(&text[word.end..call.end], word.end).map_err(|err| {
        let help =
            format!("arguments have names: `{name}({}: …)`", procedure.params.first().map_or("…", |it| it));
        ScriptError { help: Some(help), ..ScriptError::from(err) }
    })?;
    let mut out: Vec<(String, Range<usize>)> = vec![];
    for (param, value) in fields.0 {
        let place = range_of(text, value);
        let wrong = |problem, message: String| Err(ScriptError::new(problem, message, place.clone()));
        if !procedure.params.contains(&param) {
            let near = nearest(&param, procedure.params.iter().map(String::as_str));
            let err = wrong(ScriptProblem::Arguments, format!("`{name}` has no parameter `{param}`"));
            let help = near.map_or_else(|| takes(procedure), |it| format!("did you mean `{it}`?"));
            return err.map_err(|it| it.help(help));
        }
        if out.iter().any(|it| it.0 == param) {
            return wrong(ScriptProblem::Twice, format!("the argument `{param}` of `{name}` stands twice"));
        }
        out.push((param, place));
    }
    let is_given = |it: &str| out.iter().any(|known| known.0 == it) || procedure.defaults.contains_key(it);
    if let Some(missing) = procedure.params.iter().find(|it| !is_given(it)) {
        let message = format!("`{name}` needs the argument `{missing}`");
        return Err(ScriptError::new(ScriptProblem::Arguments, message, word).help(takes(procedure)));
    }
    Ok(out)
}

/// What a procedure takes, in words.
pub(super) fn takes(procedure: &Procedure) -> String {
    let param = |it: &String| match procedure.defaults.get(it) {
        Some(default) => format!("`{it}` ({default} unless given)"),
        None => format!("`{it}`"),
    };
    let params: Vec<_> = procedure.params.iter().map(param).collect();
    if params.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", params.join(", ")) }
}

impl Argument {
    /// The argument as a part of a longer text: a name or a number as it is, an expression in parentheses; nothing if it
    /// is a list, a map or another value.
    pub(super) fn within_text(&self) -> Option<String> {
        let inner = match self.text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
            Some(inner) => inner,
            None if self.text.contains(['[', '{', '(', '"']) => return None,
            None => &*self.text,
        };
        let is_word = inner.chars().all(|it| it.is_ascii_alphanumeric() || "_.".contains(it));
        Some(if is_word { inner.to_owned() } else { format!("({inner})") })
    }
}
