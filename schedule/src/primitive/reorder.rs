use std::sync::Arc;

use ir::{Loop, Name, Stmt};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{
    ScheduleError, ScheduleState,
    check::{chain::expect_chain, independent::expect_reorderable},
};

/// Puts loops of one chain into another order.
///
/// ```text
/// reorder(order: ["k", "i"])
///
/// for i in 0..m { for j in 0..n { for k in 0..l { s } } }
/// ->
/// for k in 0..l { for j in 0..n { for i in 0..m { s } } }
/// ```
///
/// The loops named take each other's places; a loop between them that is not named stays where it is. Nothing but
/// loops may stand between them, how often a loop runs may not depend on one that would come to be inside it, and
/// blocks that reduce have to tell all the loops apart. Sums of floats are added in another order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// The loops as they are to be nested, outermost first.
    pub order: Vec<Name>,
}

impl Primitive for Reorder {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        if self.order.len() < 2 {
            return Err(ScheduleError::TooFewLoops { primitive: "reorder", needed: 2 });
        }
        let chain = expect_chain(state, &self.order)?;
        for it in &chain {
            state.expect_plain_loop(&it.var)?;
        }
        let mut named = self.order.iter();
        let nest: Vec<Loop> = chain
            .iter()
            .map(
                |old| if self.order.contains(&old.var) { named.next().unwrap_or(&old.var) } else { &old.var },
            )
            .map(|name| state.expect_loop(name).cloned())
            .collect::<Result<_, _>>()?;
        for (at, it) in nest.iter().enumerate() {
            let inner = nest[at + 1..].iter().find(|inner| it.extent.any_var(&|var| *var == inner.var));
            if let Some(on) = inner {
                return Err(ScheduleError::DependentExtent { name: it.var.clone(), on: on.var.clone() });
            }
        }
        expect_reorderable(state, &chain)?;

        let (top, body) = (chain[0].var.clone(), chain[chain.len() - 1].body.clone());
        state.func.replace_loop(&top, |_| {
            nest.into_iter().rev().fold(body, |body, it| Stmt::Loop(Arc::new(Loop { body, ..it })))
        });
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}
