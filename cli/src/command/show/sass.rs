//! `tilewright show --emit sass`: machine code, each stretch under the source line that it came from.
//!
//! The emitted source uses the names of the schedule, so that a line leads from an instruction to loops, blocks and buffers of
//! the script. An instruction of a helper that was inlined counts for the line that calls the helper.

use std::fmt::Write;

use codegen::device::{disasm, nvrtc};
use ir::{Arch, Func, Target};
use tuner::build::target_word;

use super::{
    form::{Emit, Form},
    mix::CodeLine,
};
use crate::{
    build::{expect_gpu, lower, source},
    constant::True,
    diagnostic::Diagnostic,
    term::shell::Shell,
};

/// How much of a source line is shown.
const MAX_SOURCE_COLUMNS: usize = 100;

pub(super) fn show(func: &Func, target: &Target, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let arch = expect_gpu(target)?;
    let (module, notes) = lower(func, target)?;
    let source = source(func, &module, target)?;
    let (text, tool) = printed(&source, func, arch)?;
    let text = listing(&text, &source);
    let (target, notes, tool) = (Some(target_word(target)), Some(notes.as_slice()), Some(tool));
    shell.report(&Form { ok: True, emit: Emit::Sass, text: &text, target, notes, tool })
}

/// The machine code of a source as its disassembler prints it, and the name of that program.
pub(super) fn printed(source: &str, func: &Func, arch: &Arch) -> Result<(String, &'static str), Diagnostic> {
    // What is compiled for is asked first: the compiler is what most users lack.
    nvrtc::find()?;
    let tool = disasm::find()?;
    let compiled = nvrtc::compile(source, &format!("{}.cu", func.name), arch, &["-lineinfo"])?;
    Ok((tool.print(&compiled.cubin)?, tool.tool.as_str()))
}

/// What a disassembler prints, less directives, encodings and blank lines.
pub(super) fn lines(printed: &str) -> Vec<CodeLine<'_>> {
    let mut named = None;
    let mut out = vec![];
    for line in printed.lines() {
        let word = line.trim();
        if let Some(it) = word.strip_prefix("//##") {
            named = source_line(it);
        } else if let Some(name) = word.strip_prefix("Function :").or(label(line)) {
            let name = name.trim();
            out.push(if name.starts_with('.') { CodeLine::Label(name) } else { CodeLine::Function(name) });
        } else if word.starts_with("/*") && word.contains(';') {
            let end = word.find(';').unwrap_or(word.len());
            out.push(CodeLine::Instruction(word[..end].trim_end(), named));
        }
    }
    out
}

/// The same as a text, with the text of source lines.
fn listing(printed: &str, source: &str) -> String {
    let texts: Vec<&str> = source.lines().collect();
    let mut out = String::new();
    // The source line that was written last.
    let mut written = None;
    for line in lines(printed) {
        match line {
            CodeLine::Function(name) | CodeLine::Label(name) => {
                written = None;
                let _ = writeln!(out, "{name}:");
            }
            CodeLine::Instruction(text, from) => {
                if from != written {
                    out.extend(from.map(|it| heading(it, &texts)));
                    written = from;
                }
                let _ = writeln!(out, "  {text};");
            }
        }
    }
    out
}

/// A label: a function or a place to jump to. Sections have labels too, which say nothing new.
fn label(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?;
    let is_name = !name.starts_with(char::is_whitespace) && !name.starts_with(".text");
    is_name.then_some(name)
}

/// The line that ` File "x.cu", line 6 inlined at "x.cu", line 37` leads to: the last, where the call stands.
fn source_line(words: &str) -> Option<usize> {
    let number = words.rsplit("line ").next()?;
    number.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

fn heading(line: usize, lines: &[&str]) -> String {
    let text = lines.get(line.saturating_sub(1)).map_or("", |it| it.trim());
    let mut shown: String = text.chars().take(MAX_SOURCE_COLUMNS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("  // {line}: {shown}\n")
}

#[cfg(test)]
mod tests {
    use super::listing;

    const SOURCE: &str =
        "// mine\nfloat helper(float x) { return x; }\nvoid mine() {\n  A[i] = helper(B[i]);\n}\n";

    #[test]
    fn what_nvdisasm_prints() {
        let printed = "\t.target\tsm_80\n\n//--------------------- .text.mine --------------------------\n\
            \t.section\t.text.mine,\"ax\",@progbits\n        .global         mine\nmine:\n.text.mine:\n\
            \t//## File \"/somewhere/mine.cu\", line 3\n        /*0000*/                   MOV R1, c[0x0][0x28] ;\n\
            \t//## File \"/somewhere/mine.cu\", line 2 inlined at \"/somewhere/mine.cu\", line 4\n\
            \t//## File \"/somewhere/mine.cu\", line 4\n\
            \x20       /*0010*/                   LDG.E R0, [R2.64] ;\n\
            \t//## File \"/somewhere/mine.cu\", line 4\n        /*0020*/              @P0  EXIT ;\n\
            .L_x_0:\n        /*0030*/                   BRA `(.L_x_0);\n.L_x_1:\n";
        insta::assert_snapshot!(listing(printed, SOURCE));
    }

    #[test]
    fn what_cuobjdump_prints() {
        let printed = "\n\tcode for sm_80\n\t.target\tsm_80\n\n\t\tFunction : mine\n\t.headerflags\t@\"EF_CUDA_SM80\"\n\
            \x20       /*0000*/        MOV R1, c[0x0][0x28] ;     /* 0x00000a0000017a02 */\n\
            \x20                                                  /* 0x000fe40000000f00 */\n\
            \x20       /*0010*/        EXIT ;                     /* 0x0000000000037919 */\n";
        insta::assert_snapshot!(listing(printed, SOURCE));
    }
}
