//! What primitives rewrite, and the look-ups that they ask before rewriting.

use ir::{Block, Buffer, Func, Loop, LoopAttrs, LoopKind, Name, Scope, Target, is_reserved};

use crate::{ScheduleError, error::Thing};

/// A program under rewriting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleState {
    /// The program.
    pub func: Func,
    /// What it is scheduled for, where that is known: some checks need a machine.
    pub target: Option<Target>,
}

impl ScheduleState {
    /// The loop of a name.
    pub fn expect_loop(&self, name: &Name) -> Result<&Loop, ScheduleError> {
        let path = self.expect_path(name)?;
        path.last().copied().ok_or_else(|| self.missing(name, Thing::Loop))
    }

    /// The loops from the outermost to the named one, itself included.
    pub fn expect_path(&self, name: &Name) -> Result<Vec<&Loop>, ScheduleError> {
        self.func.path_around_blocks(name).ok_or_else(|| match self.func.find_loop(name) {
            Some(_) => ScheduleError::InsideBlock { name: name.clone() },
            None => self.missing(name, Thing::Loop),
        })
    }

    /// The block of a name.
    pub fn expect_block(&self, name: &Name) -> Result<&Block, ScheduleError> {
        self.func.find_block(name).ok_or_else(|| self.missing(name, Thing::Block))
    }

    /// The buffer of a name.
    pub fn expect_buffer(&self, name: &Name) -> Result<&Buffer, ScheduleError> {
        self.func.buffers.get(name).ok_or_else(|| self.missing(name, Thing::Buffer))
    }

    /// The memory of a word.
    pub fn expect_scope(&self, word: &Name) -> Result<Scope, ScheduleError> {
        let known = || Scope::ALL.iter().map(|it| Name::from(it.as_str())).collect();
        let missing = || ScheduleError::NoSuch { thing: Thing::Scope, name: word.clone(), known: known() };
        Scope::parse(word.as_str()).ok_or_else(missing)
    }

    /// A name that may be given to something new.
    pub fn expect_fresh(&self, name: &Name) -> Result<(), ScheduleError> {
        if !name.is_valid() {
            return Err(ScheduleError::NotAName { name: name.clone() });
        }
        if is_reserved(name.as_str()) {
            return Err(ScheduleError::Reserved { name: name.clone() });
        }
        if self.func.is_taken(name) || self.is_iter(name) {
            return Err(ScheduleError::NameTaken { name: name.clone() });
        }
        Ok(())
    }

    /// A serial loop.
    pub fn expect_serial_loop(&self, name: &Name) -> Result<&Loop, ScheduleError> {
        let it = self.expect_loop(name)?;
        match it.kind {
            LoopKind::Serial => Ok(it),
            kind @ (LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled | LoopKind::Bound(_)) => {
                Err(ScheduleError::LoopHasKind { name: name.clone(), kind: kind_word(kind) })
            }
        }
    }

    /// A serial loop without annotations: what split, fuse and reorder may take apart.
    pub fn expect_plain_loop(&self, name: &Name) -> Result<&Loop, ScheduleError> {
        let it = self.expect_serial_loop(name)?;
        match it.attrs.entries().into_keys().next() {
            Some(key) => Err(ScheduleError::LoopHasAnnotation { name: name.clone(), key }),
            None => Ok(it),
        }
    }

    /// A serial loop of which no more is asked than an order: what may be run at the same time.
    pub fn expect_unmarked_loop(&self, name: &Name) -> Result<&Loop, ScheduleError> {
        let it = self.expect_serial_loop(name)?;
        let only = LoopAttrs { raster: it.attrs.raster, ..LoopAttrs::default() };
        if it.attrs == only { Ok(it) } else { self.expect_plain_loop(name) }
    }

    /// The names of all loops, blocks or buffers.
    pub fn known(&self, thing: Thing) -> Vec<Name> {
        match thing {
            Thing::Loop => self.func.loops().into_iter().map(|it| it.var.clone()).collect(),
            Thing::Block => self.func.body.blocks().into_iter().map(|it| it.name.clone()).collect(),
            Thing::Buffer => self.func.buffers.keys().cloned().collect(),
            Thing::Iterator
            | Thing::Scope
            | Thing::Axis
            | Thing::Annotation
            | Thing::Knob
            | Thing::Style
            | Thing::Mode
            | Thing::Mechanism
            | Thing::Intrinsic
            | Thing::Role => vec![],
        }
    }

    fn missing(&self, name: &Name, wanted: Thing) -> ScheduleError {
        let name = name.clone();
        let others = [Thing::Loop, Thing::Block, Thing::Buffer];
        match others.into_iter().find(|it| self.known(*it).contains(&name)) {
            Some(found) => ScheduleError::WrongThing { name, found, wanted },
            None => ScheduleError::NoSuch { thing: wanted, name, known: self.known(wanted) },
        }
    }

    fn is_iter(&self, name: &Name) -> bool {
        self.func.body.blocks().iter().any(|it| it.find_iter(name).is_some())
    }
}

/// How messages name the kind of a loop: "loop `i` is already vectorized".
pub(crate) const fn kind_word(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Serial => "serial",
        LoopKind::Parallel => "parallel",
        LoopKind::Vectorized => "vectorized",
        LoopKind::Unrolled => "unrolled",
        LoopKind::Bound(_) => "bound to a thread axis",
    }
}
