//! Emitted C and CUDA C++: as text, through the compilers, and run.

mod build;
mod c;
mod cuda;
mod programs;
