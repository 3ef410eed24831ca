//! Warps that go in step: what they are at, and what they have under way.

use std::collections::HashMap;

use ir::{For, Group, Kernel, Name, Op, Participants, ThreadAxis, axis_var};

/// Those of a role with the same place on y and z, or all of a block.
pub(super) struct Team<'a> {
    /// The block that they are of, among those on the multiprocessor, and the role.
    pub(super) block: usize,
    pub(super) role: Option<&'a Name>,
    /// Its number among the teams of its role: the first has the leaders of the role and of the block.
    pub(super) number: usize,
    pub(super) warps: f64,
    pub(super) env: HashMap<Name, i64>,
    pub(super) now: f64,
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) is_waiting: bool,
    pub(super) under_way: HashMap<Group, UnderWay>,
    /// When registers can be used that something is loaded into, by buffer and element.
    pub(super) ready: HashMap<(Name, i64), f64>,
}

/// A list of statements, and how far it is.
pub(super) struct Frame<'a> {
    pub(super) ops: &'a [Op],
    pub(super) at: usize,
    /// The loop that it is the body of, which iteration this is, and of how many.
    pub(super) around: Option<(&'a For, i64, i64)>,
    /// Who does it.
    pub(super) by: Option<Participants>,
}

/// Asynchronous work of one kind: when it has read what it reads, and when it is over.
#[derive(Default)]
pub(super) struct UnderWay {
    pub(super) open: (f64, f64),
    pub(super) closed: Vec<(f64, f64)>,
}

impl<'a> Team<'a> {
    /// The teams of one block.
    pub(super) fn all(kernel: &'a Kernel, env: &HashMap<Name, i64>, block: usize) -> Vec<Team<'a>> {
        let mut out = vec![];
        if kernel.roles.is_empty() {
            let extents = kernel.launch.iter().filter_map(|(axis, it)| Some((*axis, it.as_int()?)));
            let axes = extents.filter(|it| it.0.is_thread()).collect::<Vec<_>>();
            out.extend(teams(&axes, None, &kernel.body, env, block));
        }
        for (name, role) in &kernel.roles {
            let bodies = kernel.body.iter().filter_map(|op| match op {
                Op::Role(of, body) if of == name => Some(body),
                _ => None,
            });
            let axes: Vec<_> = role.axes.iter().map(|(axis, it)| (*axis, *it)).collect();
            out.extend(bodies.flat_map(|body| teams(&axes, Some(name), body, env, block)));
        }
        out
    }

    /// Warps, and threads that do something in all, at the statement that it is at.
    pub(super) fn doing(&self) -> (f64, f64) {
        match self.frames.iter().rev().find_map(|it| it.by) {
            None => (self.warps, self.warps * 32.0),
            Some(Participants::Warp) => (self.warps, self.warps),
            Some(Participants::Warpgroup) => ((self.warps / 4.0).max(1.0), (self.warps / 4.0).max(1.0)),
            Some(_) => (1.0, 1.0),
        }
    }
}

/// One for each place on y and z where warpgroups have them to themselves, else one of all threads.
fn teams<'a>(
    axes: &[(ThreadAxis, i64)],
    role: Option<&'a Name>,
    body: &'a [Op],
    env: &HashMap<Name, i64>,
    block: usize,
) -> Vec<Team<'a>> {
    let extent = |axis: ThreadAxis| axes.iter().find(|it| it.0 == axis).map_or(1, |it| it.1);
    let [x, y, z] = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ].map(extent);
    let is_apart = x % 128 == 0;
    let places = if is_apart { y * z } else { 1 };
    let threads = if is_apart { x } else { x * y * z };
    let team = |at: i64| {
        let mut env = env.clone();
        env.insert(axis_var(ThreadAxis::ThreadX), 0);
        env.insert(axis_var(ThreadAxis::ThreadY), if is_apart { at % y } else { 0 });
        env.insert(axis_var(ThreadAxis::ThreadZ), if is_apart { at / y } else { 0 });
        Team {
            block,
            role,
            number: usize::try_from(at).expect("a place"),
            warps: (threads as f64 / 32.0).ceil(),
            env,
            now: 0.0,
            frames: vec![Frame { ops: body, at: 0, around: None, by: None }],
            is_waiting: false,
            under_way: HashMap::new(),
            ready: HashMap::new(),
        }
    };
    (0..places).map(team).collect()
}
