//! From a script with calls to one with plain steps.

use std::{ops::Range, sync::Arc};

use super::{
    MAX_CALL_DEPTH, MAX_CALLS, MAX_WRITTEN,
    argument::{Argument, Arguments, of_call},
    definition::{Definitions, FindLibrary, RawScript, is_word},
    for_each::{ForEach, elements},
    origin::{Call, Expanded, Piece, ProcedureError, Site, frames},
};
use crate::{
    nearest,
    placed::unknown_step,
    primitive::{self, FOR_EACH},
    ron_letters::{self, behind_comma, head, indent, strings},
    ron_text::{parse, parse_at, range_of},
    script::{MAX_LENGTH, check_size},
    script_error::{ScriptError, ScriptProblem},
    space::item::nested,
};

/// Puts plain steps in place of all calls of procedures. `name` is the path of the script. A text that has no procedures, or is
/// no script at all, stays as it is: [`crate::Script::read`] says what is wrong with it.
///
/// # Errors
///
/// Libraries that are not found or cannot be read, calls with other arguments than their procedure takes, recursion, and
/// expansions that do not end.
pub fn expand(name: &str, text: &str, find: &FindLibrary<'_>) -> Result<Expanded, ProcedureError> {
    let plain = || Ok(Expanded::plain(name, text));
    if check_size(text).is_err() {
        return plain();
    }
    let Ok(raw) = parse::<RawScript<'_>>(text) else { return plain() };
    if raw.uses.is_none() && raw.define.is_none() && !text.contains(FOR_EACH) {
        return plain();
    }
    let definitions = Definitions::of_script(name, text, &raw, find)?;
    let steps = raw.steps.iter().map(|it| (range_of(text, it), true));
    let fields = [("use", raw.uses), ("define", raw.define)];
    let fields =
        fields.into_iter().filter_map(|(key, it)| Some((field(text, key, range_of(text, it?)), false)));
    let mut parts: Vec<_> = steps.chain(fields).collect();
    parts.sort_by_key(|it| it.0.start);

    let mut expander =
        Expander { definitions: &definitions, out: String::new(), pieces: vec![], calls: vec![], written: 0 };
    let nothing = Arguments::new();
    let script = Context { source: 0, call: None, arguments: &nothing, within: &[] };
    expander.splice(&(0..text.len()), &parts, &script)?;
    let Expander { out, pieces, calls, .. } = expander;
    Ok(Expanded { text: out.into(), sources: definitions.sources, pieces, calls })
}

/// The whole of a field, from its key to the comma behind its value, with the blanks before it.
fn field(text: &str, key: &str, value: Range<usize>) -> Range<usize> {
    let start = ron_letters::field(text, key).unwrap_or(value.start);
    text[..start].trim_end().len()..behind_comma(text, value.end)
}

/// Where a text stands that is being expanded.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// Which text it is of.
    source: usize,
    /// The call that it is expanded for.
    call: Option<usize>,
    arguments: &'a Arguments,
    /// The procedures that are being expanded, outermost first.
    within: &'a [usize],
}

struct Expander<'a> {
    definitions: &'a Definitions,
    out: String,
    pieces: Vec<Piece>,
    calls: Vec<Call>,
    /// How many bytes were written out for calls, with arguments that were put together for others.
    written: usize,
}

impl Expander<'_> {
    fn text(&self, context: &Context<'_>) -> Arc<str> {
        self.definitions.sources[context.source].text.clone()
    }

    fn site(span: Range<usize>, context: &Context<'_>) -> Site {
        Site { source: context.source, span, call: context.call }
    }

    fn wrong(&self, error: ScriptError, context: &Context<'_>) -> ProcedureError {
        let site = Expander::site(error.span.clone(), context);
        ProcedureError { frames: frames(&self.definitions.sources, &self.calls, &site), error }
    }

    /// Copies a range in which some parts are steps, which are expanded, and others go. A comma behind what becomes
    /// nothing goes, too.
    fn splice(
        &mut self,
        range: &Range<usize>,
        parts: &[(Range<usize>, bool)],
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        let text = self.text(context);
        let mut at = range.start;
        for (part, is_step) in parts {
            self.copy(&(at..part.start), context)?;
            let before = self.out.len();
            if *is_step {
                self.step(part, context)?;
            }
            at = if self.out.len() == before { behind_comma(&text, part.end) } else { part.end };
        }
        self.copy(&(at..range.end), context)
    }

    /// A step, or what it stands for.
    fn step(&mut self, span: &Range<usize>, context: &Context<'_>) -> Result<(), ProcedureError> {
        let text = self.text(context);
        let word = head(&text[span.clone()]);
        if word == FOR_EACH {
            return self.repeat(&text, span, context);
        }
        if let Some(procedure) = self.definitions.scopes[context.source].get(word) {
            return self.call(&text, span, *procedure, context);
        }
        if !word.is_empty() && !primitive::names().chain(primitive::forms()).any(|it| it == word) {
            let callable = self.definitions.scopes[context.source].keys().map(|it| &**it);
            return Err(self.wrong(unknown_step(word, span.start, callable), context));
        }
        let inner: Vec<_> = nested(&text, span).into_iter().map(|it| (it, true)).collect();
        self.splice(span, &inner, context)
    }

    /// Steps of a procedure or a repetition, a line each.
    fn list(
        &mut self,
        steps: &[Range<usize>],
        indent: &str,
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        let first = self.out.len();
        for step in steps {
            let before = self.out.len();
            if before > first {
                self.out.push_str(",\n");
                self.out.push_str(indent);
            }
            let start = self.out.len();
            self.step(step, context)?;
            if self.out.len() == start {
                self.out.truncate(before);
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        text: &str,
        span: &Range<usize>,
        number: usize,
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        let procedure = &self.definitions.procedures[number];
        if context.within.contains(&number) {
            let message = format!("`{}` calls itself", procedure.name);
            let err = ScriptError::new(ScriptProblem::Recursion, message, span.clone());
            return Err(self.wrong(err.help("`for_each` repeats steps"), context));
        }
        let given = of_call(text, span, procedure).map_err(|it| self.wrong(it, context))?;
        let site = Expander::site(span.clone(), context);
        let default = |(name, text): (&String, &String)| {
            (name.clone(), Argument { text: text.as_str().into(), site: site.clone() })
        };
        let mut arguments: Arguments = procedure.defaults.iter().map(default).collect();
        for (name, value) in given {
            let site = Expander::site(value.clone(), context);
            arguments.insert(name, Argument { text: self.substituted(&value, context)?.into(), site });
        }
        let call = self.enter(site, &procedure.name, context)?;
        let within: Vec<_> = context.within.iter().copied().chain([number]).collect();
        let inner =
            Context { source: procedure.source, call: Some(call), arguments: &arguments, within: &within };
        self.list(&procedure.steps, indent(text, span.start), &inner)
    }

    fn repeat(
        &mut self,
        text: &str,
        span: &Range<usize>,
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        let read: ForEach<'_> =
            parse_at(&text[span.clone()], span.start).map_err(|it| self.wrong(it.into(), context))?;
        let place = range_of(text, read.list);
        read.expect_sound(span).map_err(|it| self.wrong(it, context))?;
        let list = self.substituted(&place, context)?;
        let all = elements(&list, read.params.len())
            .map_err(|err| self.wrong(ScriptError { span: place.clone(), ..err.into() }, context))?;
        let steps: Vec<_> = read.steps.iter().map(|it| range_of(text, it)).collect();
        let first = self.out.len();
        for element in all {
            let before = self.out.len();
            if before > first {
                self.out.push_str(",\n");
                self.out.push_str(indent(text, span.start));
            }
            let start = self.out.len();
            let words: Vec<_> =
                read.params.iter().zip(&element).map(|(it, to)| format!("{it} = {to}")).collect();
            let what = format!("{FOR_EACH} with {}", words.join(", "));
            let call = self.enter(Expander::site(span.clone(), context), &what, context)?;
            let mut arguments = context.arguments.clone();
            for (name, text) in read.params.iter().zip(element) {
                let site = Expander::site(place.clone(), context);
                arguments.insert(name.clone(), Argument { text: text.into(), site });
            }
            let inner = Context { call: Some(call), arguments: &arguments, ..*context };
            self.list(&steps, indent(text, span.start), &inner)?;
            if self.out.len() == start {
                self.out.truncate(before);
            }
        }
        Ok(())
    }

    /// Notes a call, unless there were too many.
    fn enter(&mut self, site: Site, what: &str, context: &Context<'_>) -> Result<usize, ProcedureError> {
        let depth = std::iter::successors(context.call, |it| self.calls[*it].site.call).count();
        let message = if depth >= MAX_CALL_DEPTH {
            format!("calls nest deeper than {MAX_CALL_DEPTH}")
        } else if self.calls.len() >= MAX_CALLS {
            format!("the script has more than {MAX_CALLS} calls and repetitions")
        } else if self.out.len() > MAX_LENGTH {
            format!("the steps of all calls are longer than {MAX_LENGTH} bytes")
        } else {
            self.calls.push(Call { site, procedure: what.into() });
            return Ok(self.calls.len() - 1);
        };
        Err(self.wrong(ScriptError::new(ScriptProblem::Recursion, message, site.span), context))
    }

    /// A range with arguments in place of parameters.
    fn substituted(&mut self, range: &Range<usize>, context: &Context<'_>) -> Result<String, ProcedureError> {
        let (len, pieces) = (self.out.len(), self.pieces.len());
        self.copy(range, context)?;
        self.pieces.truncate(pieces);
        Ok(self.out.split_off(len))
    }

    /// Copies a range; in what is expanded for a call, with arguments in place of parameters.
    fn copy(&mut self, range: &Range<usize>, context: &Context<'_>) -> Result<(), ProcedureError> {
        let text = self.text(context);
        let mut at = range.start;
        if context.call.is_some() {
            self.count(range.len(), range, context)?;
            for inside in strings(&text[range.clone()]) {
                let inside = range.start + inside.start..range.start + inside.end;
                self.fill(&text, &inside, &mut at, context)?;
            }
        }
        self.piece(&text, at..range.end, context);
        Ok(())
    }

    /// Puts arguments in the braces of a string. What lies between `at` and them is copied.
    fn fill(
        &mut self,
        text: &str,
        inside: &Range<usize>,
        at: &mut usize,
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        let mut from = inside.start;
        while let Some(open) = open_brace(&text[from..inside.end]).map(|it| from + it) {
            let close = text[open..inside.end].find('}').map(|it| open + it);
            // A brace that is open until the end is no name, and is refused with what stands behind it.
            let name = close.map_or(&text[open..inside.end], |it| &text[open + 1..it]);
            let close = close.unwrap_or(inside.end);
            let braces = open..(close + 1).min(inside.end);
            let argument = self.argument(name, &braces, context)?;
            let (written, place) = if braces == *inside {
                (argument.text.to_string(), inside.start - 1..inside.end + 1)
            } else {
                let within = argument.within_text().ok_or_else(|| {
                    let message =
                        format!("`{name}` is {} here, which cannot be a part of a text", argument.text);
                    self.wrong(ScriptError::new(ScriptProblem::Placeholder, message, braces.clone()), context)
                })?;
                (within, braces.clone())
            };
            self.piece(text, *at..place.start, context);
            self.count(written.len(), &braces, context)?;
            let site = Expander::site(place.clone(), context);
            self.pieces.push(Piece { start: self.out.len(), site, argument: Some(argument.site.clone()) });
            self.out.push_str(&written);
            *at = place.end;
            from = braces.end;
        }
        Ok(())
    }

    /// Counts what is written for a call: arguments of arguments may grow as fast as no text of a script does.
    fn count(
        &mut self,
        bytes: usize,
        place: &Range<usize>,
        context: &Context<'_>,
    ) -> Result<(), ProcedureError> {
        self.written += bytes;
        if self.written <= MAX_WRITTEN && self.out.len() + bytes <= 2 * MAX_LENGTH {
            return Ok(());
        }
        let message = "the arguments of calls grow without an end".to_owned();
        Err(self.wrong(ScriptError::new(ScriptProblem::Recursion, message, place.clone()), context))
    }

    /// What a parameter stands for.
    fn argument(
        &self,
        name: &str,
        braces: &Range<usize>,
        context: &Context<'_>,
    ) -> Result<Argument, ProcedureError> {
        if let Some(known) = context.arguments.get(name) {
            return Ok(known.clone());
        }
        let message = if is_word(name) {
            format!("there is no parameter `{name}`")
        } else {
            "a brace in a text of a procedure stands around the name of a parameter".to_owned()
        };
        let near = nearest(name, context.arguments.keys().map(String::as_str));
        let known: Vec<_> = context.arguments.keys().map(|it| format!("`{it}`")).collect();
        let help = near
            .map_or_else(|| format!("there is {}", known.join(", ")), |it| format!("did you mean `{it}`?"));
        let err = ScriptError::new(ScriptProblem::Placeholder, message, braces.clone());
        Err(self.wrong(if known.is_empty() { err } else { err.help(help) }, context))
    }

    /// Copies a range as it is.
    fn piece(&mut self, text: &str, range: Range<usize>, context: &Context<'_>) {
        if range.is_empty() {
            return;
        }
        self.out.push_str(&text[range.clone()]);
        let start = self.out.len() - range.len();
        self.pieces.push(Piece { start, site: Expander::site(range, context), argument: None });
    }
}

/// Where the first brace of a string is that belongs to no escape.
fn open_brace(inside: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &inside[at..];
        let next = rest.find(['{', '\\'])?;
        if rest[next..].starts_with('{') {
            return Some(at + next);
        }
        // `\u{e9}` has braces of its own.
        let escape = &rest[next..];
        let len =
            if escape.starts_with("\\u{") { escape.find('}').map_or(escape.len(), |it| it + 1) } else { 2 };
        at += next + escape.char_indices().map(|it| it.0).find(|it| *it >= len).unwrap_or(escape.len());
    }
}
