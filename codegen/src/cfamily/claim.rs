//! Cluster launch control: the variables of a kernel whose blocks take over others, and the statements that do it.

use ir::{Claim, Kernel, Take, ThreadAxis, axis_var};

use super::{
    Printer,
    helper::Helper,
    names::identifier,
    ptx::{Ptx, SHARED, function},
};

impl Printer<'_> {
    /// For how many blocks of the grid the thread has stood.
    pub(super) fn claims(&mut self, kernel: &Kernel) {
        if let Some(count) = &kernel.claims {
            let of = self.index_type(self.frame.wide);
            self.line(&format!("{of} {} = 1;", identifier(count)));
        }
    }

    /// A claim; in a cluster the first block makes it, and the answer comes to all.
    pub(super) fn claim(&mut self, it: &Claim) {
        let multicast = self.frame.cluster.blocks() > 1;
        let name = self.require(Helper::Ptx(Ptx::Claim { multicast }));
        let (at, barrier) = (self.address(&it.answer), self.mbarrier(&it.barrier, &it.slot));
        let block = self.frame.block_in_cluster.clone().filter(|_| multicast);
        let condition = block.map(|it| format!("if ({} == 0) ", self.index(&it))).unwrap_or_default();
        self.line(&format!("{condition}{name}({at}, {barrier});"));
    }

    /// An answer that is taken. It names the first block of a cluster.
    pub(super) fn take(&mut self, it: &Take) {
        let name = self.require(Helper::Ptx(Ptx::Take));
        let at = self.address(&it.answer);
        self.line("unsigned int tw_x, tw_y, tw_z;");
        self.nest(&format!("if ({name}({at}, tw_x, tw_y, tw_z))"), |printer| {
            let axes = [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ];
            for (axis, word) in axes.into_iter().zip(["tw_x", "tw_y", "tw_z"]) {
                if printer.frame.axes.contains(&axis) {
                    let blocks = printer.frame.cluster.blocks_on(axis);
                    let by = if blocks > 1 { format!(" / {blocks}") } else { String::new() };
                    printer.line(&format!("{} = {word}{by};", axis_var(axis)));
                }
            }
            let count =
                printer.frame.claims.clone().expect("`check_instructions` refuses a kernel without it");
            printer.line(&format!("++{};", identifier(&count)));
        });
    }
}

/// PTX ISA, `clusterlaunchcontrol.try_cancel`.
pub(super) fn define_claim(name: &str, multicast: bool) -> String {
    let all = if multicast { ".multicast::cluster::all" } else { "" };
    function(
        name,
        "const void *at, const void *barrier",
        &format!(
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{all}.b128 [%0], [%1];"
        ),
        &[SHARED, "\"r\"(tw_shared_address(barrier))"],
    )
}

/// PTX ISA, `clusterlaunchcontrol.query_cancel`.
pub(super) fn define_take(name: &str) -> String {
    format!(
        "TW_INLINE bool {name}(const void *at, unsigned int &x, unsigned int &y, unsigned int &z) {{\n  \
           unsigned int is_one;\n  \
           asm volatile(\"{{ .reg .pred p; .reg .b128 answer; ld.shared.b128 answer, [%4]; \"\n               \
           \"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer; selp.u32 %0, 1, 0, p; \"\n               \
           \"mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0; \"\n               \
           \"@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%1, %2, %3, _}}, answer; }}\"\n               \
           : \"=r\"(is_one), \"=r\"(x), \"=r\"(y), \"=r\"(z) : {SHARED} : \"memory\");\n  \
           return is_one;\n}}\n"
    )
}
