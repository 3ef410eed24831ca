//! `tilewright report`: a tuning log as one HTML page.
//!
//! The page has its charts inside as SVG and its style as CSS, runs no script and loads nothing, so that it can be sent and
//! kept. It is a function of the log: no clock, no random numbers, no hash order. Everything from the log is escaped by
//! [`crate::markup`], and a policy in its head forbids whatever would get past that.
//!
//! `page` puts it together from one file for each part. `plot` has scales, axes and marks, `view` what follows from a run at
//! once, `words` numbers as text.

mod coverage;
mod failures;
mod figure;
mod finals;
mod head;
mod knobs;
mod page;
mod plot;
mod progress;
mod roofline;
mod steps;
mod strips;
mod times;
mod top;
mod view;
mod words;
mod write;

#[cfg(test)]
mod tests;

use tuner::Bound;

fn bound(it: Bound) -> &'static str {
    match it {
        Bound::Compute => "compute",
        Bound::Memory => "memory",
    }
}
