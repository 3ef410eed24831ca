//! Text on a terminal or on a page: where it goes, its colours, tables, and what is made harmless in it.

pub(crate) mod bars;
pub(crate) mod code;
pub(crate) mod globals;
pub(crate) mod keys;
pub(crate) mod markdown;
pub(crate) mod markup;
pub(crate) mod page;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod width;
pub(crate) mod wrap;
