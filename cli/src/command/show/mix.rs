//! Lines of machine code, and which instructions there are how often, by what of a machine they keep busy.

use indexmap::IndexMap;

/// A line of machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CodeLine<'a> {
    /// The name of a function.
    Function(&'a str),
    /// A place to jump to.
    Label(&'a str),
    /// An instruction, and the source line that it comes from where that is told.
    Instruction(&'a str, Option<usize>),
}

/// How a machine's code is written.
pub(super) struct Notation {
    /// Its name.
    pub(super) title: &'static str,
    /// What an instruction ends with.
    pub(super) end: &'static str,
    /// The class of an instruction and its operation; none where there is no operation.
    pub(super) class: fn(&str) -> Option<(Class, &str)>,
}

/// That of NVIDIA's GPUs.
pub(super) const SASS: Notation = Notation { title: "SASS", end: ";", class };

/// What an instruction is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Class {
    Tensor,
    Float,
    Global,
    AsyncCopy,
    Shared,
    Matrix,
    Local,
    Load,
    Store,
    Constant,
    Sync,
    Lanes,
    Convert,
    Integer,
    Move,
    Control,
    Padding,
    Other,
}

/// The operations of SASS of a class, in the order in which tables have the classes. Where there is a variant for values that a whole
/// warp shares, it has a `U` before its name.
const CLASSES: [(Class, &str, &str); 18] = [
    // Every operation that ends with MMA is one, of whatever type.
    (Class::Tensor, "tensor cores", ""),
    (
        Class::Float,
        "floating point",
        "FFMA FFMA2 FFMA32I FMUL FMUL2 FMUL32I FADD FADD2 FADD32I FMNMX FMNMX3 FSEL FSET FSETP FCHK FSWZADD MUFU DFMA DADD DMUL \
         DMNMX DSETP HFMA2 HFMA2_32I HADD2 HADD2_32I HMUL2 HMUL2_32I HMNMX2 HSET2 HSETP2",
    ),
    (Class::Global, "global memory", "LDG STG LD ST RED REDG ATOM ATOMG CCTL"),
    (Class::AsyncCopy, "asynchronous copies", "LDGSTS UBLKCP UBLKPF UBLKRED UTMALDG UTMASTG UTMAPF UTMAREDG"),
    (Class::Shared, "shared memory", "LDS STS ATOMS"),
    (Class::Matrix, "matrices from and to shared memory", "LDSM STSM"),
    (Class::Local, "local memory", "LDL STL"),
    // Those of a CPU.
    (Class::Load, "loads", ""),
    (Class::Store, "stores", ""),
    (Class::Constant, "constants", "LDC LDCU"),
    (
        Class::Sync,
        "barriers and waits",
        "BAR WARPSYNC MEMBAR DEPBAR LDGDEPBAR ERRBAR CGAERRBAR FENCE SYNCS ARRIVES NANOSLEEP",
    ),
    (Class::Lanes, "between lanes", "SHFL VOTE MATCH REDUX MOVM"),
    (Class::Convert, "conversions", "F2F F2I F2FP F2IP I2F I2FP I2I I2IP FRND"),
    (
        Class::Integer,
        "integers and addresses",
        "IADD IADD3 IADD32I IADD64 IMAD IMUL IMUL32I LEA ISCADD SHF SHL SHR LOP LOP3 LOP32I PLOP3 ISETP ISET IABS IMNMX IMNMX3 \
         VIMNMX VIMNMX3 VIADD VIADDMNMX VABSDIFF VABSDIFF4 IDP IDP4A XMAD BFE BFI FLO POPC BREV BMSK SGXT LEPC",
    ),
    (Class::Move, "moves", "MOV MOV32I SEL PRMT CS2R S2R S2UR R2UR P2R R2P P2UR UR2UP PSETP"),
    (
        Class::Control,
        "control",
        "BRA BRX BRXU JMP JMX JMXU EXIT RET CALL BSSY BSYNC BREAK BMOV KILL YIELD BPT RPCMOV ELECT ACQBULK PREEXIT",
    ),
    (Class::Padding, "padding", "NOP"),
    (Class::Other, "other", ""),
];

impl Class {
    /// Its name in tables.
    pub(super) fn title(self) -> &'static str {
        CLASSES.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }
}

/// The class of an instruction of SASS and its operation without modifiers; none where there is no operation.
fn class(instruction: &str) -> Option<(Class, &str)> {
    let text = instruction.split("*/").last()?.trim_start_matches(|it: char| it == '{' || it.is_whitespace());
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let text = if first.starts_with('@') { rest.trim_start() } else { text };
    let (operation, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, modifiers) = operation.split_once('.').unwrap_or((operation, ""));
    let name = name.trim_end_matches(';');
    if name.is_empty() {
        return None;
    }
    // A multiplication of zeros and one that says so move a value: the compiler spreads moves over the units.
    let is_move = match name {
        "IMAD" => modifiers.starts_with("MOV"),
        "HFMA2" => operands.split(',').skip(1).take(2).all(|it| it.trim().trim_start_matches('-') == "RZ"),
        _ => false,
    };
    if is_move {
        return Some((Class::Move, name));
    }
    let of =
        |name: &str| CLASSES.iter().find(|it| it.2.split_whitespace().any(|it| it == name)).map(|it| it.0);
    let found = of(name).or_else(|| name.ends_with("MMA").then_some(Class::Tensor));
    let found = found.or_else(|| of(name.strip_prefix('U')?));
    Some((found.unwrap_or(Class::Other), name))
}

/// Instructions by class and operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Mix {
    /// How many of each operation.
    counts: IndexMap<(Class, String), usize>,
}

/// The instructions of a class.
pub(super) struct Share<'a> {
    pub(super) class: Class,
    pub(super) count: usize,
    /// How many of each operation, the most frequent first.
    pub(super) operations: Vec<(&'a str, usize)>,
}

impl Mix {
    /// Counts an instruction.
    pub(super) fn add(&mut self, (class, operation): (Class, &str)) {
        *self.counts.entry((class, operation.to_owned())).or_default() += 1;
    }

    /// How many instructions there are.
    pub(super) fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// The classes that there are.
    pub(super) fn classes(&self) -> Vec<Share<'_>> {
        let row = |class: Class| {
            let own = self.counts.iter().filter(|it| it.0.0 == class);
            let mut operations: Vec<_> = own.map(|it| (it.0.1.as_str(), *it.1)).collect();
            operations.sort_by_key(|it| (std::cmp::Reverse(it.1), it.0));
            let count = operations.iter().map(|it| it.1).sum();
            (count > 0).then_some(Share { class, count, operations })
        };
        CLASSES.iter().filter_map(|it| row(it.0)).collect()
    }

    /// The classes in words: `floating point 64, shared memory 16`.
    pub(super) fn words(&self) -> String {
        let word = |it: &Share<'_>| format!("{} {}", it.class.title(), it.count);
        self.classes().iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Mix, class};

    #[test]
    fn instructions_have_classes() {
        for (text, expected) in [
            ("/*0000*/                   MOV R1, c[0x0][0x28]", Some((Class::Move, "MOV"))),
            ("/*0010*/  @!P0 LDG.E.128.CONSTANT R4, [R2.64]", Some((Class::Global, "LDG"))),
            ("/*0020*/  HFMA2.MMA R90, -RZ, RZ, 0, 0", Some((Class::Move, "HFMA2"))),
            ("/*0030*/  HFMA2 R0, R1, RZ.H0_H0, R2", Some((Class::Float, "HFMA2"))),
            ("/*0040*/  IMAD.MOV.U32 R0, RZ, RZ, R2", Some((Class::Move, "IMAD"))),
            ("/*0050*/  IMAD.WIDE R4, R5, 0x4, R2", Some((Class::Integer, "IMAD"))),
            ("/*0060*/  HMMA.16816.F32 R4, R8, R12, R4", Some((Class::Tensor, "HMMA"))),
            ("/*0070*/  ULDC.64 UR4, c[0x0][0x118]", Some((Class::Constant, "ULDC"))),
            ("/*0080*/  UIADD3 UR4, UR5, 0x1, URZ", Some((Class::Integer, "UIADD3"))),
            ("/*0090*/  LDGSTS.E.BYPASS.128 [R1], [R2.64]", Some((Class::AsyncCopy, "LDGSTS"))),
            ("/*00a0*/  WHATEVER.X R1", Some((Class::Other, "WHATEVER"))),
            ("/*00b0*/  @P0  EXIT", Some((Class::Control, "EXIT"))),
            ("/*00c0*/", None),
            ("", None),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn a_mix_is_sorted() {
        let mut mix = Mix::default();
        for it in ["NOP", "FADD R1", "FFMA R1", "FFMA R2", "EXIT", "NOP"] {
            mix.add(class(it).unwrap());
        }
        assert_eq!((mix.total(), &*mix.words()), (6, "floating point 3, control 1, padding 2"));
        assert_eq!(mix.classes()[0].operations, [("FFMA", 2), ("FADD", 1)]);
    }
}
