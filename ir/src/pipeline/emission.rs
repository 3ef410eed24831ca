//! Which statement runs for which iteration at which time.

use super::{Component, PipelinePlan, Style};
use crate::{Index, Less, arith::Bounds};

/// A pipelined loop as steps of time: in each, some components run, each for an iteration of its own.
#[derive(Clone, Debug)]
pub struct Emission {
    /// Steps written out before the steady loop; all steps where there is none.
    pub prologue: Vec<Step>,
    /// The loop in which every component runs.
    pub steady: Option<Steady>,
    /// Steps written out after it.
    pub epilogue: Vec<Step>,
    /// How many of these, the first ones, are steps in which every component runs, left over by an unrolled loop.
    pub leftover: usize,
    /// Whether which components run in a step is known only when the program runs.
    pub is_dynamic: bool,
}

/// What runs at one time, in order.
pub type Step = Vec<Instance>;

/// A loop over time.
#[derive(Clone, Debug)]
pub struct Steady {
    /// How often it runs.
    pub extent: Index,
    /// The steps of one run: one, or as many as make the slots of register arrays constant.
    pub steps: Vec<Step>,
}

/// A component at some iteration.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its place in [`PipelinePlan::components`].
    pub component: usize,
    /// The iteration, over the loop's variable, which counts the runs of the steady loop.
    pub iteration: Index,
    /// The conditions under which it has that iteration to run; empty if it always has.
    pub guards: Vec<Less>,
}

/// Places the components of a plan in time. `bounds` knows the loops around.
pub fn emit(plan: &PipelinePlan, bounds: &Bounds) -> Emission {
    let emitter = Emitter { plan, bounds, last: plan.last_stage(), components: plan.in_order() };
    match (plan.style, bounds.simplify(&plan.extent).as_int()) {
        (Style::Peel, Some(extent)) => emitter.peeled(extent),
        (Style::Peel, None) if plan.unroll == 1 => emitter.peeled_symbolic(),
        (Style::PeelPrologue, _) if plan.unroll == 1 => emitter.prologue_peeled(),
        (Style::Peel | Style::PeelPrologue | Style::Predicate, _) => emitter.predicated(),
    }
}

struct Emitter<'a> {
    plan: &'a PipelinePlan,
    bounds: &'a Bounds,
    last: i64,
    components: Vec<(usize, &'a Component)>,
}

impl Emitter<'_> {
    /// A constant extent: exactly what runs is written out, around a loop without conditions.
    fn peeled(&self, extent: i64) -> Emission {
        let step = |time: i64| -> Step {
            let runs = self.components.iter().filter(|it| (0..extent).contains(&(time - it.1.stage)));
            runs.map(|(at, it)| Instance::sure(*at, Index::int(time - it.stage))).collect()
        };
        let steps = |times: std::ops::Range<i64>| times.map(step).collect::<Vec<_>>();
        let (unroll, runs) = (self.plan.unroll, (extent - self.last).max(0) / self.plan.unroll);
        if runs == 0 {
            let prologue = steps(0..extent + self.last);
            return Emission { prologue, steady: None, epilogue: vec![], leftover: 0, is_dynamic: false };
        }
        let first = Index::var(&self.plan.var) * unroll + self.last;
        let each = (0..unroll).map(|n| {
            let at = |(at, it): &(usize, &Component)| Instance::sure(*at, &first + (n - it.stage));
            self.components.iter().map(at).collect()
        });
        Emission {
            prologue: steps(0..self.last),
            steady: Some(Steady { extent: Index::int(runs), steps: each.collect() }),
            epilogue: steps(self.last + runs * unroll..extent + self.last),
            leftover: usize::try_from(extent - self.last - runs * unroll).expect("less than a run is left"),
            is_dynamic: false,
        }
    }

    /// An extent known at run time, written out around the steady loop all the same: what is written out is guarded.
    fn peeled_symbolic(&self) -> Emission {
        let (extent, last) = (&self.plan.extent, Index::int(self.last));
        let prologue = (0..self.last).map(|time| {
            let runs = self.components.iter().filter(|it| it.1.stage <= time);
            runs.map(|(at, it)| self.guarded(*at, Index::int(time - it.stage))).collect()
        });
        let runs = self.bounds.simplify(&(extent + -self.last).maximum(&Index::int(0)));
        let each = |(at, it): &(usize, &Component)| {
            Instance::sure(*at, Index::var(&self.plan.var) + (self.last - it.stage))
        };
        let steady = Steady { extent: runs, steps: vec![self.components.iter().map(each).collect()] };
        let end = extent.maximum(&last);
        let epilogue = (0..self.last).map(|time| {
            let runs = self.components.iter().filter(|it| it.1.stage > time);
            runs.map(|(at, it)| self.guarded(*at, &end + (time - it.stage))).collect()
        });
        Emission {
            prologue: prologue.collect(),
            steady: Some(steady),
            epilogue: epilogue.collect(),
            leftover: 0,
            is_dynamic: true,
        }
    }

    /// What runs ahead of the last stage is written out before the loop, and in it no more than there is: right for every extent, and
    /// what runs last has no conditions.
    fn prologue_peeled(&self) -> Emission {
        let prologue = (0..self.last).map(|time| {
            let runs = self.components.iter().filter(|it| it.1.stage <= time);
            let all = runs.map(|(at, it)| self.guarded(*at, Index::int(time - it.stage)));
            let may_run = |it: &Instance| it.guards.iter().all(|it| self.bounds.prove(it) != Some(false));
            all.filter(may_run).collect()
        });
        let mut bounds = self.bounds.clone();
        bounds.insert(&self.plan.var, &self.plan.extent);
        let inside = Emitter { bounds: &bounds, components: self.components.clone(), ..*self };
        let each = |(at, it): &(usize, &Component)| {
            inside.guarded(*at, Index::var(&self.plan.var) + (self.last - it.stage))
        };
        let steps = vec![self.components.iter().map(each).collect()];
        Emission {
            prologue: prologue.collect(),
            steady: Some(Steady { extent: self.plan.extent.clone(), steps }),
            epilogue: vec![],
            leftover: 0,
            is_dynamic: true,
        }
    }

    /// One loop over all times: right for every extent.
    fn predicated(&self) -> Emission {
        let unroll = self.plan.unroll;
        let times = &self.plan.extent + self.last;
        let runs = self.bounds.simplify(&times.ceil_div(&Index::int(unroll)));
        let mut bounds = self.bounds.clone();
        bounds.insert(&self.plan.var, &runs);
        let inside = Emitter { bounds: &bounds, components: self.components.clone(), ..*self };
        let steps = (0..unroll).map(|n| {
            let time = Index::var(&self.plan.var) * unroll + n;
            self.components.iter().map(|(at, it)| inside.guarded(*at, &time + -it.stage)).collect()
        });
        let steady = Steady { extent: runs, steps: steps.collect() };
        Emission { prologue: vec![], steady: Some(steady), epilogue: vec![], leftover: 0, is_dynamic: true }
    }

    fn guarded(&self, component: usize, iteration: Index) -> Instance {
        let started = Less::new(Index::int(0), &iteration + 1);
        let running = Less::new(iteration.clone(), self.plan.extent.clone());
        let guards = [started, running].into_iter().filter(|it| self.bounds.prove(it) != Some(true));
        Instance { component, iteration, guards: guards.collect() }
    }
}

impl Instance {
    fn sure(component: usize, iteration: Index) -> Instance {
        Instance { component, iteration, guards: vec![] }
    }
}
