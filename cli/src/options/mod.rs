//! Flags that several commands share, and how their values are read.

pub(crate) mod dims;
pub(crate) mod measure;
pub(crate) mod workers;
