//! Kernels through their public items: lowered, printed, compiled, and run.

mod bindings;
mod cpu_device;
mod emit;
mod execute;
mod hopper;
mod lower;
mod nvrtc;
mod passes;
mod swizzle;
mod timeline;
mod vectors;
mod vgpu;
