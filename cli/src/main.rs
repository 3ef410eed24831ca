//! The command `tilewright`.

fn main() {}
