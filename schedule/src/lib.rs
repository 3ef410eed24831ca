//! Checked rewrites of programs, one primitive at a time.
