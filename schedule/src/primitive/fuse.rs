use ir::{Index, Name, Stmt};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{
    ScheduleError, ScheduleState,
    check::chain::is_only_child,
    nest,
    rewrite::{simplify_loop, subst_loops},
};

/// Fuses loops that are nested in each other into one.
///
/// ```text
/// fuse(loops: ["i", "j"], into: "ij")
///
/// for i in 0..m { for j in 0..n { s } }
/// ->
/// for ij in 0..m*n { s[i := ij floordiv n, j := ij mod n] }
/// ```
///
/// Each loop has to be all that the one before it contains, and none may run more or less often for another
/// iteration of an outer one. The order in which iterations run does not change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fuse {
    /// The loops to fuse, outermost first.
    pub loops: Vec<Name>,
    /// The name of the loop to make.
    pub into: Name,
}

impl Primitive for Fuse {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let [top, .., _] = self.loops.as_slice() else {
            return Err(ScheduleError::TooFewLoops { primitive: "fuse", needed: 2 });
        };
        let loops =
            self.loops.iter().map(|name| state.expect_plain_loop(name)).collect::<Result<Vec<_>, _>>()?;
        if let Some(name) = (1..self.loops.len())
            .map(|n| (&self.loops[n], &self.loops[..n]))
            .find(|(it, all)| all.contains(it))
        {
            return Err(ScheduleError::NamedTwice { name: name.0.clone() });
        }
        for pair in loops.windows(2) {
            if !is_only_child(pair[0], &pair[1].var) {
                let (outer, inner) = (pair[0].var.clone(), pair[1].var.clone());
                return Err(ScheduleError::NotNested { outer, inner });
            }
        }
        for it in &loops {
            if let Some(on) = it.extent.vars().into_iter().find(|on| self.loops.contains(on)) {
                return Err(ScheduleError::DependentExtent { name: it.var.clone(), on });
            }
        }
        if !self.loops.contains(&self.into) {
            state.expect_fresh(&self.into)?;
        }

        let extents: Vec<&Index> = loops.iter().map(|it| &it.extent).collect();
        let values = nest::unfused(&self.into, &extents);
        let product = extents.iter().fold(Index::int(1), |product, it| &product * *it);
        state.func.replace_loop(top, |old| {
            let mut body = self.loops[1..].iter().fold(old.body, |body, _| inside(body));
            let at = |var: &Name| self.loops.iter().position(|it| it == var);
            subst_loops(&mut body, &|var| at(var).map(|at| values[at].clone()));
            Stmt::serial(&self.into, product, body)
        });
        simplify_loop(&mut state.func, &self.into);
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}

/// The body of a loop that is known to be one.
fn inside(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::Loop(it) => it.body.clone(),
        other @ (Stmt::Block(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_)) => other,
    }
}
