//! What the addresses of a kernel's arguments must be multiples of.

use ir::{Module, Name, Target, TensorMap};

/// What the address of an argument must be a multiple of, in bytes: its widest access on a GPU, or what its tensor map asks for; its
/// elements' size in C, whose vectors may start at any element.
pub fn argument_alignment(module: &Module, target: &Target, name: &Name) -> usize {
    let bytes = module.args[name].dtype.bytes();
    let mut lanes = 1;
    if *target != Target::Cpu {
        for op in module.kernels.iter().flat_map(|it| &it.body) {
            op.each_access(&mut |access, _| {
                if access.buffer == *name {
                    lanes = lanes.max(access.lanes as usize);
                }
            });
        }
    }
    let is_mapped = module.kernels.iter().flat_map(|it| it.maps.values()).any(|it| it.buffer == *name);
    let unit = if is_mapped { usize::try_from(TensorMap::UNIT).expect("it is small") } else { 1 };
    (bytes * lanes).max(unit)
}
