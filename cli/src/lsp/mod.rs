//! `tilewright lsp`: what editors ask, by the Language Server Protocol.
//!
//! One thread reads what the client says; this one answers, in order. What is wrong is told once the client has been silent for a
//! moment, so that not every letter is checked; questions are answered at once, of the text as it is. A request that is taken back
//! before it is looked at is answered as the protocol wants it.
//!
//! All that is known of scripts comes from what `check` asks, too ([`crate::plan::Plan`], [`crate::build::emitted`]).

mod answers;
mod completion;
mod definition;
mod describe;
mod documents;
mod findings;
mod fixes;
mod hints;
mod hover;
mod outline;
mod script;
mod server;
mod slot;
mod symbols;
#[cfg(test)]
mod tests;
mod text;
mod top;
mod uri;

pub(crate) use server::serve;
