//! The fenced blocks of a page.

use std::ops::Range;

/// A block that does something.
#[derive(Debug)]
pub(crate) enum Block {
    /// A file to write.
    File { name: String, text: String },
    /// Commands, each with what it prints.
    Console { commands: Vec<Command>, needs: Needs },
}

/// A line `$ command` and the lines after it.
#[derive(Debug)]
pub(crate) struct Command {
    /// Without the `$`.
    pub(crate) line: String,
    /// The expected output, with its line breaks.
    pub(crate) expected: String,
    /// The bytes of the page at which that stands.
    pub(crate) place: Range<usize>,
}

/// What a machine has to have for a block to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    Nothing,
    Nvrtc,
    Gpu,
}

/// The blocks of a page that do something, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut out = vec![];
    let mut at = 0;
    let mut open: Option<(&str, usize)> = None;
    for line in page.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(info) = line.strip_prefix("```") {
            open = match open {
                None => Some((info.trim(), next)),
                Some((info, start)) => {
                    out.extend(block(page, info, start..at));
                    None
                }
            };
        }
        at = next;
    }
    out
}

fn block(page: &str, info: &str, range: Range<usize>) -> Option<Block> {
    let mut words = info.split(',').map(str::trim);
    let language = words.next()?;
    let rest: Vec<&str> = words.collect();
    if language == "console" {
        let needs = match rest.as_slice() {
            [] => Needs::Nothing,
            ["nvrtc"] => Needs::Nvrtc,
            ["gpu"] => Needs::Gpu,
            other => panic!("a console block with {other:?}: there is `nvrtc` and `gpu`"),
        };
        return Some(Block::Console { commands: commands(page, range), needs });
    }
    let name = rest.iter().find_map(|it| it.strip_prefix("file="))?;
    Some(Block::File { name: name.to_owned(), text: page[range].to_owned() })
}

fn commands(page: &str, range: Range<usize>) -> Vec<Command> {
    let mut out: Vec<Command> = vec![];
    let mut at = range.start;
    for line in page[range].split_inclusive('\n') {
        let next = at + line.len();
        match (line.strip_prefix("$ "), out.last_mut()) {
            (Some(command), _) => {
                out.push(Command {
                    line: command.trim().to_owned(),
                    expected: String::new(),
                    place: next..next,
                });
            }
            (None, Some(last)) => {
                last.expected += line;
                last.place.end = next;
            }
            (None, None) => panic!("a console block begins with a `$` line, not with {line:?}"),
        }
        at = next;
    }
    out
}
