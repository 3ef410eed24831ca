//! How refusals are said: a table, one row a refusal.

/// Declares an enum of errors by a table.
///
/// A row has the code, the variant with its fields, and in parentheses the message, as `thiserror` takes it. Then come, over the
/// fields: `names`, those in the script and in the program that the message is about, the culprit first, or `buffer` if that
/// one is a buffer's; `at`, the part of the step that is to blame, if it is not the first of these names that it mentions; and
/// `help`, what to try instead, if there is one thing to say. After `of` stand variants that hold an error of another table,
/// and behind a semicolon those that hold one of another crate, which knows nothing of steps.
macro_rules! error_table {
    (
        $(#[$meta:meta])*
        pub enum $error:ident {
            $(
                $code:literal $variant:ident $({ $($field:ident: $type:ty),* })?
                ($($message:tt)*)
                $about:ident [$($name:expr),*]
                $(at [$blame:expr])?
                $(help $help:expr)?
            );* $(;)?
        } $(of { $($inner:ident($of:ty)),*; $($foreign:ident($from:ty)),* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
        #[expect(missing_docs, reason = "the message of each variant says what its fields are")]
        pub enum $error {
            $(#[error($($message)*)] $variant $({ $($field: $type),* })?,)*
            $(
                $(#[error(transparent)] $inner(#[from] $of),)*
                $(#[error(transparent)] $foreign(#[from] $from),)*
            )?
        }

        ir::codes!($error { $($variant = $code),* } $(of { $($inner,)* $($foreign),* })?);

        impl $error {
            /// The names in the script and in the program that the message is about; the first is the culprit.
            pub fn names(&self) -> Vec<&ir::Name> {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        $(let _ = ($($field),*);)?
                        vec![$($name),*]
                    })*
                    $($(Self::$inner(it) => it.names(),)* $(Self::$foreign(it) => it.names(),)*)?
                }
            }

            /// The name that means a buffer, where the error is about that first: a block may have the same name.
            pub fn buffer(&self) -> Option<&ir::Name> {
                match self {
                    $(Self::$variant { .. } => $crate::error_table::buffer_of!($about self.names()),)*
                    $($(Self::$inner(it) => it.buffer(),)* $(Self::$foreign(_) => None,)*)?
                }
            }

            /// The part of the step that is to blame.
            pub fn blame(&self) -> $crate::Blame {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        $(let _ = ($($field),*);)?
                        $crate::error_table::or!($crate::Blame::Name $(, $blame)?)
                    })*
                    $($(Self::$inner(it) => it.blame(),)* $(Self::$foreign(_) => $crate::Blame::Name,)*)?
                }
            }

            /// What to try instead, if there is one thing to say.
            pub fn help(&self) -> Option<String> {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        $(let _ = ($($field),*);)?
                        $crate::error_table::or!(None $(, $crate::error_table::Help::said($help))?)
                    })*
                    $($(Self::$inner(it) => it.help(),)* $(Self::$foreign(it) => it.help(),)*)?
                }
            }
        }
    };
}

/// The second where there is one.
macro_rules! or {
    ($otherwise:expr) => {
        $otherwise
    };
    ($otherwise:expr, $it:expr) => {
        $it
    };
}

/// The first of the names if they begin with that of a buffer.
macro_rules! buffer_of {
    (names $names:expr) => {
        None
    };
    (buffer $names:expr) => {
        $names.first().copied()
    };
}

pub(crate) use {buffer_of, error_table, or};

/// What a row may say for help.
pub(crate) trait Help {
    /// The sentence.
    fn said(self) -> Option<String>;
}

impl Help for &str {
    fn said(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Help for String {
    fn said(self) -> Option<String> {
        Some(self)
    }
}

impl Help for Option<&str> {
    fn said(self) -> Option<String> {
        self.map(str::to_owned)
    }
}
