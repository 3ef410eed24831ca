//! Software pipelines against what they must do: situations that other systems test or get wrong, one file each, and
//! random loops under random annotations, judged by brute force.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod corpus;
mod generate;
mod header;
mod measure;
mod model;
mod nested;
mod oracle;
mod originals;
mod random;
mod run;
mod siblings;
mod situations;
mod table;
mod timelines;
mod unfilled;
