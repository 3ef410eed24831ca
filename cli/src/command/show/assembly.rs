//! The assembly that a C compiler writes: its instructions, the source lines that they come from, and what they are for.
//!
//! An instruction of a helper that was inlined counts for its line in the helper: a compiler's `.loc` says no more.

use std::collections::BTreeSet;

use super::mix::{Class, CodeLine, Notation};

/// That of the machine that compiles.
pub(super) const ASSEMBLY: Notation =
    Notation { title: "Assembly", end: "", class: if cfg!(target_arch = "aarch64") { arm } else { x86 } };

/// The instructions and the labels of an assembly, less directives and labels that nothing names.
pub(super) fn lines(printed: &str) -> Vec<CodeLine<'_>> {
    let (mut named, mut files) = (None, BTreeSet::new());
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut out = vec![];
    for line in printed.lines() {
        let word = line.trim();
        let begins = line.chars().next();
        if let Some(label) = word.strip_suffix(':').filter(|it| !it.contains(char::is_whitespace)) {
            out.push(if is_local(label) { CodeLine::Label(label) } else { CodeLine::Function(label) });
        } else if let Some(it) = word.strip_prefix(".file") {
            files.extend(file(it));
        } else if let Some(it) = word.strip_prefix(".loc") {
            named = place(it, &files);
        } else if begins.is_some_and(char::is_whitespace)
            && word.starts_with(|it: char| it.is_ascii_alphabetic())
        {
            let is_part = |it: char| it.is_alphanumeric() || matches!(it, '.' | '_' | '$');
            used.extend(word.split(|it| !is_part(it)).filter(|it| is_local(it)));
            out.push(CodeLine::Instruction(word, named));
        }
    }
    out.retain(|it| !matches!(it, CodeLine::Label(name) if !used.contains(name)));
    out
}

/// Whether a label is one of the compiler's own, within a function.
fn is_local(label: &str) -> bool {
    label.starts_with('.') || (cfg!(target_os = "macos") && label.starts_with('L'))
}

/// The number of a `.file` that is the source: ` 1 "kernel.c"`, ` 0 "/tmp/x" "kernel.c" md5 …`.
fn file(words: &str) -> Option<u32> {
    let is_source = words.split('"').any(|it| it == "kernel.c" || it.ends_with("/kernel.c"));
    is_source.then(|| words.split_whitespace().next()?.parse().ok()).flatten()
}

/// The source line of a `.loc`: ` 1 33 5 is_stmt 0`.
fn place(words: &str, files: &BTreeSet<u32>) -> Option<usize> {
    let mut words = words.split_whitespace();
    let file = words.next()?.parse().ok()?;
    let line = words.next()?.parse().ok()?;
    (files.contains(&file) && line > 0).then_some(line)
}

const X86_INTEGER: &str = "add adc sub sbb inc dec neg imul mul div idiv and or xor not sal shl sar shr rol ror test cmp lea set \
                           cmov bt bs tzcnt lzcnt popcnt clt cqt cwt rorx p k";
/// What rearranges the elements of vectors.
const X86_SHUFFLE: &str =
    "shuf perm unpck blend insert extract broadcast align pshuf punpck pack palign pblend pinsr pextr kmov";
const ARM_INTEGER: &str = "add adc sub sbc neg mul mla madd msub smull smlal smaddl umull umlal umaddl smulh umulh sdiv udiv and orr orn \
                           eor eon bic bif bit bsl mvn lsl lsr asr ror shl sshr sshl ushr ushl cmp cmn tst ccmp csel cset csinc csneg \
                           csinv cinc adr sxt uxt ubfx ubfiz sbfx sbfiz bfi bfxil clz rbit smax smin umax umin abs xtn sxtl uxtl while \
                           cnt inc dec index ptrue";
const ARM_MOVE: &str = "mov fmov dup ins umov smov zip uzp trn ext tbl tbx rev sel";

fn begins(name: &str, with: &str) -> bool {
    with.split_whitespace().any(|it| name.starts_with(it))
}

/// Of an x86, in AT&T's syntax: the last operand is what is written.
fn x86(instruction: &str) -> Option<(Class, &str)> {
    let (mut name, mut operands) = words(instruction)?;
    if ["lock", "rep", "repz", "notrack", "bnd"].contains(&name) {
        (name, operands) = words(operands)?;
    }
    let bare = name.strip_prefix('v').unwrap_or(name);
    let (to, from) = last_operand(operands);
    let is_float = ["ps", "pd", "ss", "sd", "ph", "sh"].iter().any(|it| bare.ends_with(it));
    let moved = || match (to.contains('('), from.contains('(')) {
        (true, _) => Class::Store,
        (false, true) => Class::Load,
        (false, false) => Class::Move,
    };
    let class = match bare {
        _ if begins(bare, "j call ret loop") => Class::Control,
        _ if bare.starts_with("nop") || (bare == "xchg" && operands == "%ax, %ax") => Class::Padding,
        _ if bare.starts_with("cvt") => Class::Convert,
        _ if begins(bare, "push scatter") => Class::Store,
        _ if begins(bare, "pop gather pgather") && bare != "popcnt" => Class::Load,
        "leave" | "movabsq" => Class::Move,
        _ if bare.starts_with("mov") || begins(bare, X86_SHUFFLE) || bare.starts_with("pbroadcast") => {
            moved()
        }
        // What is combined with itself is made zero.
        _ if begins(bare, "xorp pxor") && from.split(',').all(|it| it.trim() == to) => Class::Move,
        _ if is_float || begins(bare, "fmadd fmsub fnmadd fnmsub") => Class::Float,
        _ if begins(bare, X86_INTEGER) => Class::Integer,
        _ => Class::Other,
    };
    Some((class, name))
}

/// Of an ARM of 64 bits.
fn arm(instruction: &str) -> Option<(Class, &str)> {
    let (name, _) = words(instruction)?;
    let bare = name.split('.').next().unwrap_or(name);
    let class = match bare {
        "b" | "bl" | "br" | "blr" | "ret" | "cbz" | "cbnz" | "tbz" | "tbnz" => Class::Control,
        "nop" => Class::Padding,
        "dmb" | "dsb" | "isb" => Class::Sync,
        _ if bare.starts_with("ld") => Class::Load,
        _ if bare.starts_with("st") => Class::Store,
        _ if begins(bare, "fcvt scvtf ucvtf bfcvt") => Class::Convert,
        _ if begins(bare, ARM_MOVE) => Class::Move,
        _ if bare.starts_with('f') || begins(bare, "bfdot bfmla bfmmla") => Class::Float,
        _ if begins(bare, ARM_INTEGER) => Class::Integer,
        _ => Class::Other,
    };
    Some((class, name))
}

/// An operation and its operands.
fn words(instruction: &str) -> Option<(&str, &str)> {
    let text = instruction.trim();
    let (name, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!name.is_empty()).then_some((name, operands.trim()))
}

/// The last operand and those before it; commas within parentheses are none between operands.
fn last_operand(operands: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, it) in operands.char_indices().rev() {
        match it {
            ')' => depth += 1,
            '(' => depth -= 1,
            ',' if depth == 0 => return (operands[at + 1..].trim(), &operands[..at]),
            _ => {}
        }
    }
    (operands.trim(), "")
}

#[cfg(test)]
mod tests {
    use super::{Class, CodeLine, arm, lines, x86};

    #[test]
    fn lines_are_those_of_the_source() {
        let printed = "\t.file\t\"kernel.c\"\n\t.text\n\t.file 0 \"/tmp\" \"kernel.c\"\nmine:\n.LFB1:\n\t.file 1 \"kernel.c\"\n\
            \t.file 2 \"/usr/include/math.h\"\n\t.loc 1 20 54\n\tpushq\t%rbp\n.L2:\n\t.loc 2 5 1\n\tnop\n\t.loc 1 0 0\n\tjne\t.L2\n\
            \t.loc 0 7 3 is_stmt 0\n\tret\n\t.section\t.debug_info,\"\",@progbits\n.Ldebug_info0:\n\t.long\t0x1\n";
        let expected = [
            CodeLine::Function("mine"),
            CodeLine::Instruction("pushq\t%rbp", Some(20)),
            CodeLine::Label(".L2"),
            CodeLine::Instruction("nop", None),
            CodeLine::Instruction("jne\t.L2", None),
            CodeLine::Instruction("ret", Some(7)),
        ];
        assert_eq!(lines(printed), expected);
    }

    #[test]
    fn instructions_of_an_x86_have_classes() {
        for (text, expected) in [
            ("vmovups\t(%rdx), %zmm1", Class::Load),
            ("vmovaps\t%zmm1, -64(%rax)", Class::Store),
            ("movq\t%rsp, %rbp", Class::Move),
            ("vbroadcastss\t4(%rax,%rcx,4), %zmm0", Class::Load),
            ("vfmadd231ps\t(%rax), %zmm1, %zmm2", Class::Float),
            ("vmulss\t%xmm1, %xmm2, %xmm3", Class::Float),
            ("vxorps\t%xmm8, %xmm8, %xmm8", Class::Move),
            ("vpaddd\t%ymm1, %ymm2, %ymm3", Class::Integer),
            ("vcvtps2ph\t$4, %ymm0, (%rdi)", Class::Convert),
            ("leaq\t-120(%rsp), %r9", Class::Integer),
            ("lock xaddl\t%eax, (%rdi)", Class::Other),
            ("jne\t.L2", Class::Control),
            ("vzeroupper", Class::Other),
        ] {
            assert_eq!(x86(text).map(|it| it.0), Some(expected), "{text}");
        }
        assert_eq!(x86(" "), None);
    }

    #[test]
    fn instructions_of_an_arm_have_classes() {
        for (text, expected) in [
            ("ldp\tq0, q1, [x1]", Class::Load),
            ("str\tq0, [x0, 16]", Class::Store),
            ("fmla\tv0.4s, v1.4s, v2.s[0]", Class::Float),
            ("fmov\ts0, wzr", Class::Move),
            ("fcvtn\tv0.4h, v0.4s", Class::Convert),
            ("b.ne\t.L3", Class::Control),
            ("add\tx0, x0, 16", Class::Integer),
            ("movi\tv0.2d, #0000000000000000", Class::Move),
        ] {
            assert_eq!(arm(text).map(|it| it.0), Some(expected), "{text}");
        }
    }
}
