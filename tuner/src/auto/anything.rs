//! The rule for all other programs: what is independent is given to threads, statement by statement.

use ir::{Func, Loop, Stmt, Target};
use schedule::{Session, Step};

use super::{Draft, Request, free, size::Size};

/// Its name.
pub(super) const RULE: &str = "anything";

/// Threads of a block.
const THREADS: i64 = 128;

/// Steps that are each tried on the program, and left out where they are refused.
pub(super) fn draft(request: &Request<'_>) -> Draft {
    let about = "Independent iterations go to threads; the rest is as the workload has it.".to_owned();
    let mut trial = Trial {
        session: Session::new(request.func.clone(), Some(request.target.clone())),
        out: Draft::new(RULE, about, &[], request),
        threads: THREADS.into(),
    };
    if let Target::Cuda(_) = request.target {
        trial.threads = trial.out.knob("threads", THREADS, &[32, 64, 256, 512]);
    }
    for (number, nest) in nests(request.func).into_iter().enumerate() {
        let loops: Vec<_> = nest.iter().map(|it| it.var.to_string()).collect();
        match request.target {
            Target::Cpu => {
                let step = format!("parallel(loop: {:?})", loops[0]);
                if trial.takes(std::slice::from_ref(&step)) {
                    trial.out.step(step);
                }
            }
            Target::Cuda(_) => trial.bind(&loops, number),
        }
    }
    trial.out
}

struct Trial {
    session: Session,
    out: Draft,
    /// How many threads a block has.
    threads: Size,
}

impl Trial {
    /// Gives as many of the outer loops to threads as are independent.
    fn bind(&mut self, loops: &[String], number: usize) {
        for count in (1..=loops.len()).rev() {
            let name = |it: &str| free(self.session.func(), &format!("{it}_{number}")).to_string();
            let (all, block, thread) = (name("all"), name("block"), name("thread"));
            let fuse = if count > 1 {
                vec![format!("fuse(loops: {:?}, into: {all:?})", &loops[..count])]
            } else {
                vec![]
            };
            let target = if count > 1 { &all } else { &loops[0] };
            let steps = |threads: &Size| {
                let rest = [
                    format!("split(loop: {target:?}, into: {{{block:?}: None, {thread:?}: {threads}}})"),
                    format!("bind(loop: {block:?}, axis: \"blockIdx.x\")"),
                    format!("bind(loop: {thread:?}, axis: \"threadIdx.x\")"),
                ];
                [fuse.clone(), rest.to_vec()].concat()
            };
            if self.takes(&steps(&THREADS.into())) {
                for step in steps(&self.threads) {
                    self.out.step(step);
                }
                return;
            }
        }
        self.reduce_by_one_block(loops, number);
    }

    /// Lets the threads of one block reduce together, where nothing is independent.
    fn reduce_by_one_block(&mut self, loops: &[String], number: usize) {
        let name = |it: &str| free(self.session.func(), &format!("{it}_{number}")).to_string();
        let (all, part, thread) = (name("all"), name("part"), name("thread"));
        let target = if loops.len() > 1 { &all } else { &loops[0] };
        let steps = |threads: &Size| {
            let fuse = (loops.len() > 1).then(|| format!("fuse(loops: {loops:?}, into: {all:?})"));
            let rest = [
                format!("split(loop: {target:?}, into: {{{part:?}: None, {thread:?}: {threads}}})"),
                format!("bind(loop: {thread:?}, axis: \"threadIdx.x\")"),
            ];
            fuse.into_iter().chain(rest).collect::<Vec<_>>()
        };
        if self.takes(&steps(&THREADS.into())) {
            for step in steps(&self.threads) {
                self.out.step(step);
            }
        }
    }

    /// Whether all of the steps could be applied; else none is.
    fn takes(&mut self, steps: &[String]) -> bool {
        let mut next = self.session.clone();
        for step in steps {
            let step = Step::from_ron(step).expect("the steps are written here");
            if next.apply(&step).is_err() {
                return false;
            }
        }
        self.session = next;
        true
    }
}

/// The loops of each statement of the program that contain each other alone, from the outside in.
fn nests(func: &Func) -> Vec<Vec<&Loop>> {
    let mut out = vec![];
    let tops: Vec<&Stmt> = match &func.body {
        Stmt::Seq(all) => all.iter().collect(),
        one => vec![one],
    };
    for top in tops {
        let mut nest = vec![];
        let mut at = top;
        while let Stmt::Loop(it) = at {
            nest.push(&**it);
            at = &it.body;
        }
        if !nest.is_empty() {
            out.push(nest);
        }
    }
    out
}
