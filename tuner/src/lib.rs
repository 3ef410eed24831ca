//! Measurement, records and search.
