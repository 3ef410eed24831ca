//! Why warps cannot have roles: data with names. Only the command line renders it.

use ir::Name;

use crate::{Blame, error_table::error_table};

error_table! {
    /// Why warps cannot have roles in a loop, or blocks live longer than an iteration.
    pub enum RoleError {
        1701 NotOutermost { name: Name, around: Name }
            ("loop `{name}` is not the outermost loop over threads: `{around}` stands around it")
            names [name, around]
            help "give roles to the warps of a whole kernel: name its outermost loop, or the one that is bound to blockIdx";
        1702 NotPipelined { block: Name, name: Name }
            ("block `{block}` is in no pipelined loop inside `{name}`")
            names [block, name]
            help "a role runs ahead of others through a ring: give the loop stages and an order first";
        1703 InTwoRoles { block: Name, first: Name, second: Name }
            ("block `{block}` has the role `{first}`, and cannot have `{second}`, too")
            names [block, first, second]
            at [Blame::Field("roles")];
        1704 NotAsynchronous { block: Name, name: Name }
            ("block `{block}` does not copy asynchronously in loop `{name}`")
            names [block, name]
            help "name its stage in software_pipeline_async_stages: a role of its own only starts copies";
        1705 Registers { role: Name, number: i64 }
            ("a thread of the role `{role}` cannot have {number} registers")
            names [role]
            at [Blame::Field("registers")]
            help "they are multiples of 8 from 24 to 256";
        1706 RegistersMissing { role: Name }
            ("the registers of role `{role}` are not said, and those of others are")
            names [role]
            at [Blame::Field("registers")]
            help "say them for each role, `compute` among them, or for none";
        1707 Exchange { block: Name, buffer: Name, other: Name }
            ("block `{block}` and block `{other}` of another role meet in `{buffer}`, and no ring orders them")
            names [block, buffer, other]
            help "let the block fill shared memory that others read in the same pipelined loop, and read nothing that they write";
        1708 Reserved { role: Name }
            ("the role `{role}` is what no other role runs, and cannot be given blocks")
            names [role]
            at [Blame::Field("roles")]
            help "leave it out: it is there by itself";
        1709 NotBlockBound { name: Name }
            ("loop `{name}` is not bound to blockIdx.x")
            names [name]
            help "bind it first: its iterations become the blocks of the grid";
        1710 GridShared { name: Name, other: Name }
            ("loop `{name}` cannot be persistent: loop `{other}` of its kernel is bound to blockIdx.x, too")
            names [name, other]
            help "deal one loop that has both inside, or let each have a kernel of its own";
        1711 TurnsRepeat { name: Name, other: Name }
            ("loop `{name}` cannot be persistent: the blocks of loop `{other}` reduce together, and their turns would come round again")
            names [name, other]
            help "leave one of the two out";
        1712 BlockCount { name: Name, number: i64 }
            ("loop `{name}` cannot be dealt to {number} blocks")
            names [name]
            at [Blame::Field("blocks")]
            help "as many as the GPU holds at once are a good choice: its multiprocessors times the blocks that each holds";
        1713 NotPersistent { name: Name }
            ("loop `{name}` is not persistent, so that nobody has several of its iterations to take in turn")
            names [name]
            help "apply `persistent` to it first";
        1714 NoRole { name: Name }
            ("all warps in loop `{name}` have one role, so that each of them would copy for itself")
            names [name]
            help "give the copies to warps of their own first, by `warp_specialize`";
        1715 NotATurn { name: Name, around: Name, why: &'static str }
            ("loop `{name}` cannot be run in turn in loop `{around}`: {why}")
            names [name, around]
            at [Blame::Field("turns")]
            help "name the pipelined loop whose copies have a role of their own";
        1716 AxisTaken { name: Name, other: Name, axis: &'static str }
            ("the warpgroups that take turns in loop `{name}` are numbered by {axis}, and loop `{other}` is bound to it")
            names [other, name]
            help "leave the loop serial or unroll it: each warpgroup then does all of it";
        1717 MemberCount { name: Name, number: i64 }
            ("the number of warpgroups that take the iterations of loop `{name}` in turn cannot be {number}")
            names [name]
            at [Blame::Field("members")]
            help "two can, and three where their registers suffice";
        1718 DealtTwice { name: Name }
            ("the iterations of loop `{name}` would be dealt to blocks twice: before the kernel runs, and while it does")
            names [name]
            help "leave out `persistent`, or `cluster_launch_control`";
    }
}
