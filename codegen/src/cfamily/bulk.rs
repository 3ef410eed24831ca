//! The copy engine and mbarriers: what a kernel has of them before its statements, and the statements that use them.

use ir::{Arrival, BulkCopy, BulkKind, Group, Index, Kernel, Mbarriers, Name, Phase, Wait};

use super::{Printer, helper::Helper, names::identifier, ptx::Ptx};
use crate::launch::{mbarrier_offsets, shared_alignment};

impl Printer<'_> {
    /// Its tensor maps as parameters.
    pub(super) fn map_parameters(&mut self, kernel: &Kernel) -> Vec<String> {
        let of = |name: &Name| {
            let of = self.require(Helper::Ptx(Ptx::TensorMap));
            format!("const __grid_constant__ {of} {}", identifier(name))
        };
        kernel.maps.keys().map(of).collect()
    }

    /// What the host has to encode, so that all that the machine code relies on is in its source; and a stop where shared memory does not
    /// start at a multiple of what swizzles permute addresses within.
    pub(super) fn tensor_maps(&mut self, kernel: &Kernel) {
        for (name, map) in &kernel.maps {
            self.line(&format!("// {name} = {map}"));
        }
        let align = shared_alignment(kernel);
        if kernel.maps.values().any(|it| it.swizzle.is_some()) {
            let address = self.require(Helper::Ptx(Ptx::SharedAddress));
            self.line(&format!("if ({address}(tw_shared) & {}) __trap();", align - 1));
        }
    }

    /// Mbarriers in their first phase, before any thread goes on.
    pub(super) fn mbarriers(&mut self, kernel: &Kernel) {
        for (name, offset) in mbarrier_offsets(kernel) {
            let name = identifier(&name).into_owned();
            self.line(&format!(
                "unsigned long long *const {name} = (unsigned long long *)(tw_shared + {offset});"
            ));
        }
        if kernel.maps.is_empty() && kernel.mbarriers.is_empty() {
            return;
        }
        let maps = kernel.maps.keys();
        self.nest("if (threadIdx.x + threadIdx.y + threadIdx.z == 0)", |printer| {
            for name in maps {
                let prefetch = printer.require(Helper::Ptx(Ptx::PrefetchMap));
                printer.line(&format!("{prefetch}(&{});", identifier(name)));
            }
            for (name, Mbarriers { slots, arrivals }) in &kernel.mbarriers {
                let init = printer.require(Helper::Ptx(Ptx::MbarrierInit));
                let slot = format!("for (int tw_slot = 0; tw_slot < {slots}; ++tw_slot) ");
                printer.line(&format!("{slot}{init}(&{}[tw_slot], {arrivals});", identifier(name)));
            }
            if !kernel.mbarriers.is_empty() {
                let fence = printer.require(Helper::Ptx(Ptx::MbarrierInitFence));
                printer.line(&format!("{fence}();"));
            }
        });
        if !kernel.mbarriers.is_empty() {
            self.mbarriers_are_known();
        }
    }

    /// One of some mbarriers.
    pub(super) fn mbarrier(&mut self, name: &Name, slot: &Index) -> String {
        format!("&{}[{}]", identifier(name), self.index(slot))
    }

    /// A wait for a phase. The function takes the last bit of its number, which is right below zero, too.
    pub(super) fn await_phase(&mut self, it: &Phase) {
        let name = self.require(Helper::Ptx(Ptx::Await));
        let (at, phase) = (self.mbarrier(&it.barrier, &it.slot), self.index(&it.phase));
        self.line(&format!("{name}({at}, {phase});"));
        self.tensor_fence(false);
    }

    /// An arrival, with bytes or without.
    pub(super) fn arrive(&mut self, it: &Arrival) {
        let at = self.mbarrier(&it.barrier, &it.slot);
        match &it.bytes {
            Some(bytes) => {
                let name = self.require(Helper::Ptx(Ptx::Expect { at_first: it.at_first }));
                let bytes = self.index(bytes);
                self.line(&format!("{name}({at}, {bytes});"));
            }
            None if it.is_late => self.commit_at(it, &at),
            None if it.at_first => {
                self.tensor_fence(true);
                let name = self.require(Helper::Ptx(Ptx::ArriveInBlock));
                self.line(&format!("{name}({at}, 0);"));
            }
            None if it.along.is_empty() => {
                self.tensor_fence(true);
                let name = self.require(Helper::Ptx(Ptx::Arrive));
                self.line(&format!("{name}({at});"));
            }
            None => {
                self.tensor_fence(true);
                let name = self.require(Helper::Ptx(Ptx::ArriveInBlock));
                for block in self.blocks_along(&it.along) {
                    self.line(&format!("{name}({at}, {block});"));
                }
            }
        }
    }

    /// A copy of a box.
    pub(super) fn bulk(&mut self, it: &BulkCopy) {
        let map = format!("&{}", identifier(&it.map));
        let coordinates: Vec<_> = it.global.indices.iter().map(|it| self.index(it)).collect();
        let (rank, coordinates) = (coordinates.len(), coordinates.join(", "));
        let at = self.address(&it.shared.first);
        let line = match &it.kind {
            BulkKind::Load { barrier, slot, along, at_first } => {
                let (multicast, at_first) = (along.is_some(), *at_first);
                let name = self.require(Helper::Ptx(Ptx::BulkLoad { rank, multicast, at_first }));
                let mask = along.map(|it| format!(", {}", self.multicast_mask(&[it]))).unwrap_or_default();
                format!("{name}({at}, {map}, {coordinates}, {}{mask});", self.mbarrier(barrier, slot))
            }
            kind => {
                let adds = *kind == BulkKind::Add;
                let name = self.require(Helper::Ptx(Ptx::BulkStore { rank, adds }));
                format!("{name}({map}, {coordinates}, {at});")
            }
        };
        self.line(&line);
    }

    /// Closes a group.
    pub(super) fn commit(&mut self, group: Group) {
        let name = self.require(Helper::Ptx(Ptx::Commit(group)));
        self.line(&format!("{name}();"));
    }

    /// Waits for groups of this thread.
    pub(super) fn wait(&mut self, it: &Wait) {
        let Wait { group, reads_only, in_flight, ref buffers } = *it;
        let name = self.require(Helper::Ptx(Ptx::Wait { group, reads_only, in_flight }));
        let words = buffers.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let comment = if words.is_empty() { words } else { format!(" // {words}") };
        self.line(&format!("{name}();{comment}"));
    }
}
