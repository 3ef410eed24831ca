//! The language through its public items: texts, refusals, meaning.

mod common;
mod interp;
mod raster;
mod refused;
mod round_trip;
mod text;
