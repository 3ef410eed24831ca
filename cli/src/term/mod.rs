//! Text on a terminal or on a page: where it goes, tables, and what is made harmless in it.

pub(crate) mod markup;
pub(crate) mod shell;
pub(crate) mod table;
