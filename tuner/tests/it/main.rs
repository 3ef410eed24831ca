//! The tuner through its public items: measurement, workers, logs, spaces and searches.

mod bench;
mod log;
mod log_tools;
mod pool;
mod search;
mod space;
mod types;
