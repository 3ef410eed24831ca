//! Functions that are one instruction in PTX: of mbarriers, of the copy engine, and of teams of threads.
//!
//! What they do to memory the compiler does not see, and they must stay in their order: so they are volatile, and those that memory has to
//! do with clobber it. Addresses of shared memory are what a generic address is converted to, which costs nothing where the compiler sees
//! that it is one.

use std::fmt::Write as _;

use ir::{Fence, Group};

use super::{Printer, claim, helper::Helper, tcgen05};

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Ptx {
    /// The type of a tensor map (`CUtensorMap`).
    TensorMap,
    /// The address of shared memory as instructions take it.
    SharedAddress,
    /// Whether a lane is the one of its warp that is elected.
    Elect,
    /// A number of registers for each thread of the warpgroup, more or fewer than it has.
    Registers { count: u32, grows: bool },
    /// A barrier of some threads of the block.
    NamedBarrier { number: i64, threads: i64 },
    /// What lets the kernel behind this one start.
    LaunchDependents,
    /// A wait for the kernels ahead of this one, and for what they wrote.
    AwaitPrerequisites,
    /// An arrival there, without a wait for the others.
    NamedArrival { number: i64, threads: i64 },
    /// The first phase of an mbarrier.
    MbarrierInit,
    /// What makes that known to the copy engine.
    MbarrierInitFence,
    /// A hint that a tensor map is soon used.
    PrefetchMap,
    /// A wait for a phase.
    Await,
    /// An arrival.
    Arrive,
    /// An arrival at the mbarrier that stands at the same place in another block of the cluster.
    ArriveInBlock,
    /// A barrier of all threads of a cluster, behind which mbarriers are known that were initialised before it.
    ClusterBarrier,
    /// A barrier of all threads of a cluster, behind which each finds what the others wrote.
    ClusterMeeting,
    /// The shared memory that stands at the same place in another block of the cluster.
    InBlock,
    /// An arrival with bytes to wait for: at the mbarrier of the block, or that of the first one of its cluster.
    Expect { at_first: bool },
    /// A copy of a box to shared memory, for an mbarrier of the block, or of the first one of its cluster.
    BulkLoad { rank: usize, multicast: bool, at_first: bool },
    /// A copy or an addition of a box to global memory.
    BulkStore { rank: usize, adds: bool },
    /// A claim for a block that has not begun; the answer comes to all blocks of the cluster, or to this one.
    Claim { multicast: bool },
    /// What an answer says: whether there is such a block, and where in the grid.
    Take,
    /// The end of a group.
    Commit(Group),
    /// A wait for all but the youngest groups.
    Wait { group: Group, reads_only: bool, in_flight: u32 },
    /// A fence.
    Fence(Fence),
    /// The descriptor of a matrix in shared memory.
    Matrix,
    /// The same for products into tensor memory.
    TensorMatrix,
    /// A copy of scales from shared to tensor memory.
    TensorCopy,
    /// A warp asks for columns of tensor memory, and asks for no more; of a pair of blocks, a warp of each.
    TensorAlloc { pair: bool },
    /// It gives them back.
    TensorFree { pair: bool },
    /// The end of a group of products into tensor memory: it arrives at an mbarrier when they are over, or at those at the same place in
    /// several blocks of a cluster.
    TensorCommit { pair: bool, multicast: bool },
    /// What was done in tensor memory comes before a barrier, or what is done there behind it.
    TensorFence { before: bool },
}

/// The shared memory at a pointer, as an operand.
pub(super) const SHARED: &str = "\"r\"(tw_shared_address(at))";

impl Ptx {
    /// What the function is called.
    pub(super) fn name(self) -> String {
        let name = match self {
            Ptx::TensorMap => "tensor_map",
            Ptx::SharedAddress => "shared_address",
            Ptx::Elect => "elect",
            Ptx::Registers { count, grows: true } => return format!("tw_more_registers_{count}"),
            Ptx::Registers { count, grows: false } => return format!("tw_fewer_registers_{count}"),
            Ptx::NamedBarrier { number, threads } => return format!("tw_barrier_{number}_of_{threads}"),
            Ptx::LaunchDependents => "launch_dependents",
            Ptx::AwaitPrerequisites => "await_prerequisites",
            Ptx::NamedArrival { number, threads } => return format!("tw_arrival_{number}_of_{threads}"),
            Ptx::MbarrierInit => "mbarrier_init",
            Ptx::MbarrierInitFence => "fence_mbarrier_init",
            Ptx::PrefetchMap => "prefetch_map",
            Ptx::Await => "await",
            Ptx::Arrive => "arrive",
            Ptx::ArriveInBlock => "arrive_in_block",
            Ptx::ClusterBarrier => "cluster_barrier",
            Ptx::ClusterMeeting => "cluster_meeting",
            Ptx::InBlock => "in_block",
            Ptx::Expect { at_first: false } => "expect",
            Ptx::Expect { at_first: true } => "expect_at_first",
            Ptx::BulkLoad { rank, multicast: false, at_first } => {
                return format!("tw_bulk_load_{rank}d{}", if at_first { "_at_first" } else { "" });
            }
            Ptx::BulkLoad { rank, multicast: true, .. } => return format!("tw_bulk_multicast_{rank}d"),
            Ptx::BulkStore { rank, adds: false } => return format!("tw_bulk_store_{rank}d"),
            Ptx::BulkStore { rank, adds: true } => return format!("tw_bulk_add_{rank}d"),
            Ptx::Claim { multicast: false } => "claim",
            Ptx::Claim { multicast: true } => "claim_for_cluster",
            Ptx::Take => "take",
            Ptx::Commit(group) => return format!("tw_commit_{}", word(group)),
            Ptx::Wait { group, reads_only, in_flight } => {
                let reads = if reads_only { "_reads" } else { "" };
                return format!("tw_wait_{}{reads}_{in_flight}", word(group));
            }
            Ptx::Fence(Fence::Async) => "fence_async",
            Ptx::Fence(Fence::Wgmma) => "fence_wgmma",
            Ptx::Matrix => "matrix",
            Ptx::TensorMatrix => "tensor_matrix",
            Ptx::TensorCopy => "tensor_copy",
            Ptx::TensorAlloc { pair: false } => "tensor_alloc",
            Ptx::TensorAlloc { pair: true } => "tensor_alloc_of_pair",
            Ptx::TensorFree { pair: false } => "tensor_free",
            Ptx::TensorFree { pair: true } => "tensor_free_of_pair",
            Ptx::TensorCommit { pair, multicast } => match (pair, multicast) {
                (false, false) => "tensor_commit",
                (false, true) => "tensor_multicast",
                (true, false) => "tensor_commit_of_pair",
                (true, true) => "tensor_multicast_of_pair",
            },
            Ptx::TensorFence { before: true } => "tensor_fence_before",
            Ptx::TensorFence { before: false } => "tensor_fence_after",
        };
        format!("tw_{name}")
    }

    /// Whether it takes an address of shared memory.
    const fn takes_address(self) -> bool {
        matches!(
            self,
            Ptx::MbarrierInit
                | Ptx::Await
                | Ptx::Arrive
                | Ptx::ArriveInBlock
                | Ptx::Expect { .. }
                | Ptx::BulkLoad { .. }
                | Ptx::BulkStore { .. }
                | Ptx::Claim { .. }
                | Ptx::Take
                | Ptx::Matrix
                | Ptx::TensorMatrix
                | Ptx::TensorAlloc { .. }
                | Ptx::TensorCommit { .. }
        )
    }
}

/// What groups are called in names of functions.
const fn word(group: Group) -> &'static str {
    match group {
        Group::CpAsync => "copies",
        Group::Bulk => "bulk",
        Group::Wgmma => "wgmma",
        Group::Tcgen05 => "tcgen05",
    }
}

/// What commits and waits are in PTX, up to the number.
const fn groups(group: Group) -> [&'static str; 2] {
    match group {
        Group::CpAsync => ["cp.async.commit_group", "cp.async.wait_group"],
        Group::Bulk => ["cp.async.bulk.commit_group", "cp.async.bulk.wait_group"],
        Group::Wgmma => ["wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned"],
        // Those are counted by mbarriers, which the printer knows of.
        Group::Tcgen05 => ["tcgen05.commit", "mbarrier.try_wait"],
    }
}

impl Printer<'_> {
    /// The definition of an instruction's function.
    pub(super) fn define_ptx(&mut self, it: Ptx) -> String {
        if it.takes_address() {
            self.require(Helper::Ptx(Ptx::SharedAddress));
        }
        let name = it.name();
        match it {
            // Aligned as the driver's type is.
            Ptx::TensorMap => format!("struct __align__(128) {name} {{ unsigned char bytes[128]; }};\n"),
            Ptx::SharedAddress => format!(
                "TW_INLINE unsigned int {name}(const void *at) {{ return (unsigned int)__cvta_generic_to_shared(at); }}\n"
            ),
            Ptx::Elect => define_elect(&name),
            Ptx::Registers { count, grows } => {
                let way = if grows { "inc" } else { "dec" };
                plain(&name, &format!("setmaxnreg.{way}.sync.aligned.u32 {count};"))
            }
            Ptx::NamedBarrier { number, threads } => plain(&name, &format!("bar.sync {number}, {threads};")),
            Ptx::LaunchDependents => plain(&name, "griddepcontrol.launch_dependents;"),
            Ptx::AwaitPrerequisites => plain(&name, "griddepcontrol.wait;"),
            Ptx::NamedArrival { number, threads } => {
                plain(&name, &format!("bar.arrive {number}, {threads};"))
            }
            Ptx::MbarrierInitFence => plain(&name, "fence.mbarrier_init.release.cluster;"),
            Ptx::Fence(Fence::Async) => plain(&name, "fence.proxy.async.shared::cta;"),
            Ptx::Fence(Fence::Wgmma) => plain(&name, "wgmma.fence.sync.aligned;"),
            // It moves no data; that it stays where it is, being volatile, is enough.
            Ptx::Commit(group) => {
                format!("TW_INLINE void {name}() {{ asm volatile(\"{};\"); }}\n", groups(group)[0])
            }
            Ptx::Wait { group, reads_only, in_flight } => {
                let read = if reads_only { ".read" } else { "" };
                plain(&name, &format!("{}{read} {in_flight};", groups(group)[1]))
            }
            Ptx::PrefetchMap => {
                function(&name, "const void *map", "prefetch.tensormap [%0];", &["\"l\"(map)"])
            }
            // Nothing but the mbarriers has to be seen, and their own fence says that: a barrier that releases costs a microsecond.
            Ptx::ClusterBarrier => {
                plain(&name, "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;")
            }
            Ptx::ClusterMeeting => {
                plain(&name, "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;")
            }
            // It only computes an address, which is a generic one.
            Ptx::InBlock => format!(
                "template <typename T> TW_INLINE T *{name}(T *at, unsigned int block) {{\n  \
                   T *there;\n  \
                   asm(\"mapa.u64 %0, %1, %2;\" : \"=l\"(there) : \"l\"(at), \"r\"(block));\n  \
                   return there;\n}}\n"
            ),
            Ptx::MbarrierInit | Ptx::Await | Ptx::Arrive | Ptx::ArriveInBlock | Ptx::Expect { .. } => {
                define_mbarrier(it, &name)
            }
            Ptx::BulkLoad { rank, at_first: true, .. } => define_load_at_first(&name, rank),
            Ptx::BulkLoad { rank, multicast, at_first: false } => define_load(&name, rank, multicast),
            Ptx::BulkStore { rank, adds } => define_store(&name, rank, adds),
            Ptx::Claim { multicast } => claim::define_claim(&name, multicast),
            Ptx::Take => claim::define_take(&name),
            Ptx::Matrix => define_matrix(&name),
            // The others are about tensor memory.
            it => tcgen05::define(it, &name),
        }
    }
}

/// A function without parameters.
pub(super) fn plain(name: &str, instruction: &str) -> String {
    format!("TW_INLINE void {name}() {{ asm volatile(\"{instruction}\" ::: \"memory\"); }}\n")
}

/// A function of one instruction.
pub(super) fn function(name: &str, parameters: &str, instruction: &str, operands: &[&str]) -> String {
    format!(
        "TW_INLINE void {name}({parameters}) {{\n  asm volatile(\"{instruction}\"\n               :: {} : \"memory\");\n}}\n",
        operands.join(", ")
    )
}

/// Whether a thread is the one that a warp elects.
fn define_elect(name: &str) -> String {
    format!(
        "TW_INLINE bool {name}() {{\n  \
           unsigned int is_elected;\n  \
           asm volatile(\"{{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }}\" : \"=r\"(is_elected));\n  \
           return is_elected;\n}}\n"
    )
}

/// What is done at an mbarrier. A wait asks until the phase is over; each question may take a while by itself.
fn define_mbarrier(it: Ptx, name: &str) -> String {
    let number = "unsigned int number";
    let parameters = |more: &str| {
        if more.is_empty() { "const void *at".to_owned() } else { format!("const void *at, {more}") }
    };
    match it {
        Ptx::MbarrierInit => function(
            name,
            &parameters("unsigned int arrivals"),
            "mbarrier.init.shared::cta.b64 [%0], %1;",
            &[SHARED, "\"r\"(arrivals)"],
        ),
        Ptx::Arrive => function(name, &parameters(""), "mbarrier.arrive.shared::cta.b64 _, [%0];", &[SHARED]),
        Ptx::ArriveInBlock => function(
            name,
            &parameters("unsigned int block"),
            "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }",
            &[SHARED, "\"r\"(block)"],
        ),
        Ptx::Expect { at_first: false } => function(
            name,
            &parameters("unsigned int bytes"),
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
            &[SHARED, "\"r\"(bytes)"],
        ),
        Ptx::Expect { at_first: true } => function(
            name,
            &parameters("unsigned int bytes"),
            "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, 0; mbarrier.arrive.expect_tx.shared::cluster.b64 _, [there], %1; }",
            &[SHARED, "\"r\"(bytes)"],
        ),
        _ => format!(
            "TW_INLINE void {name}({}) {{\n  \
               const unsigned int barrier = tw_shared_address(at);\n  \
               unsigned int is_over;\n  \
               do {{\n    \
                 asm volatile(\"{{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }}\"\n                 \
                 : \"=r\"(is_over) : \"r\"(barrier), \"r\"(number & 1) : \"memory\");\n  \
               }} while (!is_over);\n}}\n",
            parameters(number)
        ),
    }
}

/// Parameters for coordinates, outermost first, and the operands, which PTX has innermost first.
fn coordinates(rank: usize, from: usize) -> [String; 3] {
    let (mut parameters, mut operands, mut places) = (String::new(), Vec::new(), Vec::new());
    for at in 0..rank {
        let _ = write!(parameters, ", int c{at}");
        operands.push(format!("\"r\"(c{at})"));
        places.push(format!("%{}", from + rank - 1 - at));
    }
    [parameters, operands.join(", "), places.join(", ")]
}

fn define_load(name: &str, rank: usize, multicast: bool) -> String {
    let [parameters, operands, places] = coordinates(rank, 3);
    let (parameter, modifier, mask, operand) = if multicast {
        (", unsigned short blocks", ".multicast::cluster", format!(", %{}", rank + 3), ", \"h\"(blocks)")
    } else {
        ("", "", String::new(), "")
    };
    function(
        name,
        &format!("void *at, const void *map{parameters}, const void *barrier{parameter}"),
        &format!(
            "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{modifier} [%0], [%1, {{{places}}}], [%2]{mask};"
        ),
        &[SHARED, "\"l\"(map)", "\"r\"(tw_shared_address(barrier))", &format!("{operands}{operand}")],
    )
}

/// PTX ISA, `cp.async.bulk.tensor`: by `.cta_group::2` the mbarrier may be one of the other block of a pair.
fn define_load_at_first(name: &str, rank: usize) -> String {
    let [parameters, operands, places] = coordinates(rank, 3);
    function(
        name,
        &format!("void *at, const void *map{parameters}, const void *barrier"),
        &format!(
            "{{ .reg .b32 there; mapa.shared::cluster.u32 there, %2, 0; cp.async.bulk.tensor.{rank}d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{{places}}}], [there]; }}"
        ),
        &[SHARED, "\"l\"(map)", "\"r\"(tw_shared_address(barrier))", &operands],
    )
}

fn define_store(name: &str, rank: usize, adds: bool) -> String {
    let [parameters, operands, places] = coordinates(rank, 2);
    let (opcode, add) = if adds { ("cp.reduce.async", ".add") } else { ("cp.async", "") };
    function(
        name,
        &format!("const void *map{parameters}, const void *at"),
        &format!(
            "{opcode}.bulk.tensor.{rank}d.global.shared::cta{add}.tile.bulk_group [%1, {{{places}}}], [%0];"
        ),
        &[SHARED, "\"l\"(map)", &operands],
    )
}

/// PTX ISA, *Matrix Descriptor Format*: fields of 14 bits in units of 16 bytes, and the mode of the swizzle.
fn define_matrix(name: &str) -> String {
    format!(
        "TW_INLINE unsigned long long {name}(const void *at, unsigned int leading, unsigned int stride, unsigned int mode) {{\n  \
           const unsigned int low = (tw_shared_address(at) & 0x3ffff) >> 4 | leading >> 4 << 16;\n  \
           const unsigned int high = stride >> 4 | mode << 30;\n  \
           return (unsigned long long)high << 32 | low;\n}}\n"
    )
}
