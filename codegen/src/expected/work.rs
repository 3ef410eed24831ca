//! What statements ask of a multiprocessor, and how long it takes.

use std::collections::{BTreeSet, HashMap};

use ir::{
    Access, BulkCopy, BulkKind, Completion, DType, Group, Index, Instr, Kernel, Mode, Module, Name, Op,
    Scope, ThreadAxis, Wgmma, axis_var,
};

use super::{
    cost::{Cost, Place},
    play::{Play, eval},
    rates::Resource,
    team::Team,
};

impl<'a> Play<'a> {
    pub(super) fn bulk(&mut self, at: usize, it: &'a BulkCopy) -> Option<()> {
        let size = self.module.args.get(&self.kernel.maps.get(&it.map)?.buffer)?.dtype.bytes() as f64;
        let bytes = it.shared.extents.iter().product::<i64>() as f64 * size;
        let now = self.teams[at].now;
        match &it.kind {
            BulkKind::Load { barrier, slot, along, at_first } => {
                if *at_first {
                    return None;
                }
                // Other blocks of the cluster copy their parts for this one, too.
                let parts = self.kernel.blocks_along(along.as_slice()) as f64;
                let sharing = self.sharing(at, it) * parts;
                let slot = eval(slot, &self.teams[at])?;
                let cycles = bytes * parts / self.rates.box_bytes(sharing);
                let (begin, end) = self.serve(Resource::Loads, now, cycles);
                self.serve(Resource::Shared, begin, bytes * parts / self.rates.shared_bytes());
                let done = end + self.rates.load() + self.rates.bulk();
                self.box_cycles = self.box_cycles.max(done - begin);
                let block = self.teams[at].block;
                self.issue(at, 1.0);
                self.count((block, barrier, slot), (0.0, 0.0, bytes * parts), done);
            }
            BulkKind::Store | BulkKind::Add => {
                let (begin, end) = self.serve(Resource::Stores, now, bytes / self.rates.store_bytes(true));
                self.serve(Resource::Shared, begin, bytes / self.rates.shared_bytes());
                let team = &mut self.teams[at];
                let open = &mut team.under_way.entry(Group::Bulk).or_default().open;
                *open = (open.0.max(end), open.1.max(end + self.rates.load()));
                self.issue(at, 1.0);
            }
        }
        Some(())
    }

    /// How many multiprocessors ask for the same box at a time, if all blocks are at the same place.
    fn sharing(&mut self, at: usize, it: &'a BulkCopy) -> f64 {
        let key = std::ptr::from_ref(it);
        if let Some(known) = self.sharing.get(&key) {
            return *known;
        }
        let team = &self.teams[at];
        let grid =
            |axis: ThreadAxis| self.kernel.launch.get(&axis).and_then(|it| eval(it, team)).unwrap_or(1);
        let axes: Vec<_> = ThreadAxis::ALL
            .into_iter()
            .filter(|it| !it.is_thread())
            .map(|it| (axis_var(it), grid(it)))
            .collect();
        let all = axes.iter().map(|it| it.1).product::<i64>().min(self.units).max(1);
        let mut found = BTreeSet::new();
        for mut number in 0..all {
            let mut own = HashMap::new();
            for (name, extent) in axes.iter().rev() {
                own.insert(name.clone(), number % extent);
                number /= extent;
            }
            let value = |name: &Name| own.get(name).or_else(|| team.env.get(name)).copied();
            found.insert(it.global.indices.iter().map(|it| it.eval(&value)).collect::<Vec<_>>());
        }
        let out = all as f64 / found.len().max(1) as f64;
        self.sharing.insert(key, out);
        out
    }

    pub(super) fn wgmma(&mut self, at: usize, it: &'a Wgmma) -> Option<()> {
        let factor = &it.right;
        let (_, dtype) = memory(self.module, self.kernel, &factor.first.buffer)?;
        let [columns, depth] = *factor.extents.as_slice() else { return None };
        let flops = 2.0 * 64.0 * (columns * depth) as f64;
        let read: i64 = it.tiles().map(|it| it.extents.iter().product::<i64>()).sum();
        let read = (read * dtype.bytes_i64()) as f64;
        let team = &self.teams[at];
        let (begin, end) = self.serve(Resource::Tensor, team.now, flops / self.rates.tensor(dtype));
        self.serve(Resource::Shared, begin, read / self.rates.shared_bytes());
        let team = &mut self.teams[at];
        let open = &mut team.under_way.entry(Group::Wgmma).or_default().open;
        let done = end + self.rates.warpgroup_product();
        *open = (open.0.max(done), open.1.max(done));
        self.group_cycles = self.group_cycles.max(done - team.now);
        // The warps stay at it until the tensor cores take it, so that those of several warpgroups alternate.
        team.now = team.now.max(begin);
        self.issue(at, 4.0);
        Some(())
    }

    /// What threads do themselves.
    pub(super) fn own(&mut self, at: usize, it: &'a Instr) {
        let key = std::ptr::from_ref(it);
        if !self.costs.contains_key(&key) {
            let cost = self.cost(at, it);
            self.costs.insert(key, cost);
        }
        let cost = self.costs[&key].clone();
        self.operands(at, it);
        let warps = self.teams[at].doing().0;
        self.issue(at, cost.issue * warps);
        let mut done = self.teams[at].now;
        if cost.wavefronts > 0.0 {
            let (begin, end) = self.serve(Resource::Shared, done, cost.wavefronts * warps);
            let latency = if cost.reads_matrices { self.rates.matrix() } else { self.rates.shared() };
            // Threads go on once the last of what they asked for is under way.
            self.teams[at].now = end;
            done = if cost.reads_shared { end.max(begin + latency) } else { end };
        }
        if cost.products > 0.0 {
            let (_, dtype) = first_read(it)
                .and_then(|it| memory(self.module, self.kernel, it))
                .unwrap_or((Scope::Local, DType::F16));
            let cycles = cost.products * warps / (self.rates.tensor(dtype) * self.rates.product_share());
            let (begin, end) = self.serve(Resource::Tensor, done, cycles);
            self.teams[at].now = begin;
            done = end.max(begin + self.rates.product());
        }
        if cost.loaded > 0.0 {
            let (_, end) = self.serve(Resource::Loads, done, cost.loaded * warps / self.rates.load_bytes());
            done = end + self.rates.load();
        }
        if cost.stored > 0.0 {
            let cycles = cost.stored * warps / self.rates.store_bytes(cost.is_whole);
            let (_, end) = self.serve(Resource::Stores, done, cycles);
            self.teams[at].now = end;
        }
        let team = &mut self.teams[at];
        match it.completion() {
            Completion::WithGroup(group) => {
                let open = &mut team.under_way.entry(group).or_default().open;
                let over = done + self.rates.copy();
                *open = (open.0.max(over), open.1.max(over));
            }
            Completion::AtOnce | Completion::WithPhase => self.result(at, it, done),
        }
    }

    /// Waits for the registers that an instruction reads.
    fn operands(&mut self, at: usize, it: &Instr) {
        let team = &self.teams[at];
        if team.ready.is_empty() {
            return;
        }
        let mut now = team.now;
        it.each_access(&mut |access, mode| {
            if mode == Mode::Read
                && let Some(key) = register(access, team)
                && let Some(ready) = team.ready.get(&key)
            {
                now = now.max(*ready);
            }
        });
        self.teams[at].now = now;
    }

    /// Notes when a register can be read.
    fn result(&mut self, at: usize, it: &Instr, done: f64) {
        let mut place = None;
        it.each_access(&mut |access, mode| {
            if mode.writes() {
                place = register(access, &self.teams[at]);
            }
        });
        let Some(place) = place else { return };
        let team = &mut self.teams[at];
        if done > team.now + 1.0 {
            team.ready.insert(place, done);
        } else {
            team.ready.remove(&place);
        }
    }

    fn cost(&self, at: usize, it: &Instr) -> Cost {
        let team = &self.teams[at];
        let axes: Vec<(Name, i64)> = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ]
            .into_iter()
            .map(|it| (axis_var(it), self.kernel.launch.get(&it).and_then(Index::as_int).unwrap_or(i64::MAX)))
            .collect();
        let memory = |name: &Name| {
            memory(self.module, self.kernel, name).map_or((Scope::Global, 4), |it| (it.0, it.1.bytes_i64()))
        };
        let value = |name: &Name, lane: i64| {
            let mut rest = lane;
            for (axis, extent) in &axes {
                if axis == name {
                    let own = team.env.get(name).copied().unwrap_or(0);
                    return Some(own + rest % extent);
                }
                rest /= extent;
            }
            team.env.get(name).copied()
        };
        Place { memory: &memory, value: &value }.cost(it)
    }
}

/// The memory of a buffer, and the type of its elements.
fn memory(module: &Module, kernel: &Kernel, name: &Name) -> Option<(Scope, DType)> {
    if let Some(it) = module.args.get(name) {
        return Some((Scope::Global, it.dtype));
    }
    let mut out = None;
    for op in &kernel.body {
        op.walk(&mut |op| match op {
            Op::Alloc(it) if it.name == *name => out = Some((it.scope, it.dtype)),
            _ => {}
        });
    }
    out
}

/// The first buffer that is read beside the place.
fn first_read(it: &Instr) -> Option<&Name> {
    let mut all = vec![];
    it.each_access(&mut |access, mode| all.push((&access.buffer, mode)));
    let place = all.iter().find(|it| it.1.writes()).map(|it| it.0);
    all.into_iter().map(|it| it.0).find(|it| Some(*it) != place)
}

/// Registers by buffer and first element.
fn register(access: &Access, team: &Team<'_>) -> Option<(Name, i64)> {
    Some((access.buffer.clone(), eval(access.indices.last()?, team)?))
}
