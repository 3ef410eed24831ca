//! What can be checked of a workload before its parameters are known: names, ranks, and the order of stages.

mod stage;

use std::{collections::BTreeSet, ops::Range};

use ir::{DType, Role};

use super::{
    choice::Choice,
    error::{Problem, WorkloadError},
    expr::unary_of,
    form::{Form, ParamKind, unknown},
    lex::Text,
    param::{Meaning, Param, RESERVED, meaning},
    value::iterator,
};

/// The longest name of an axis or tensor, so that names put together of two of them are names as well.
const MAX_NAME: usize = 30;

/// The most stages.
const MAX_STAGES: usize = 100;

/// Checks a workload for all values of its parameters.
pub(super) fn check(form: &Form) -> Result<(), WorkloadError> {
    if !ir::Name::new(form.name.value.as_str()).is_valid() {
        return Err(WorkloadError::new(Problem::BadName(form.name.value.clone()), form.name.span.clone()));
    }
    let mut checker = Checker { form, used: BTreeSet::new() };
    checker.names()?;
    checker.reserved()?;
    checker.params()?;
    checker.types()?;
    checker.tensors()?;
    form.tolerance.iter().try_for_each(|it| checker.choice(it))?;
    checker.choice(&form.stages)?;
    for stages in form.stages.leaves() {
        checker.stages(stages)?;
    }
    checker.unused()
}

struct Checker<'a> {
    form: &'a Form,
    /// What was used: a kind of thing and its name.
    used: BTreeSet<(&'static str, &'a str)>,
}

impl<'a> Checker<'a> {
    /// No name has two meanings; only an axis may be called as the size that it runs over.
    fn names(&self) -> Result<(), WorkloadError> {
        let form = self.form;
        let taken = |name: &str, at: &Range<usize>, other| {
            Err(WorkloadError::new(Problem::Taken { name: name.to_owned(), other }, at.clone()))
        };
        let params = form.params.iter().map(|(name, it)| (name, &it.at));
        let types = form.types.iter().map(|(name, it)| (name, &it.at));
        let axes = form.axes.iter().map(|(name, it)| (name, &it.at));
        let tensors = form.tensors.iter().map(|(name, it)| (name, &it.at));
        for (name, at) in params.chain(types.clone()).chain(axes.clone()).chain(tensors.clone()) {
            if RESERVED.contains(&name.as_str()) || unary_of(name).is_some() {
                return taken(name, at, "a function or an operator");
            }
            if name.parse::<DType>().is_ok() {
                return taken(name, at, "a type");
            }
        }
        for (name, at) in types.chain(tensors) {
            if form.params.contains_key(name) {
                return taken(name, at, "a parameter");
            }
        }
        for (name, at) in axes.clone() {
            match form.params.get(name).map(|it| &it.it) {
                Some(ParamKind::Number { .. } | ParamKind::Type { .. } | ParamKind::Word { .. }) => {
                    return taken(name, at, "a parameter");
                }
                Some(ParamKind::Size { .. } | ParamKind::Int { .. }) | None => {}
            }
            if form.tensors.contains_key(name) {
                return taken(name, at, "a tensor");
            }
        }
        let all = form.axes.iter().map(|(name, it)| (name, &it.at));
        let all = all.chain(form.tensors.iter().map(|(name, it)| (name, &it.at)));
        for (name, at) in all {
            if *name == form.name.value {
                return taken(name, at, "the workload");
            }
            if name.len() > MAX_NAME {
                return Err(WorkloadError::new(
                    Problem::LongName { name: name.clone(), most: MAX_NAME },
                    at.clone(),
                ));
            }
        }
        Ok(())
    }

    /// No name of the program, nor one that it makes of an axis, is one of other languages.
    fn reserved(&self) -> Result<(), WorkloadError> {
        let form = self.form;
        let tensors = form.tensors.iter().map(|(name, it)| (name, &it.at));
        let axes = form.axes.iter().map(|(name, it)| (name, &it.at));
        let iterators = axes.clone().map(|(name, at)| (name, at, iterator(name).to_string()));
        let plain = [(&form.name.value, &form.name.span)].into_iter().chain(axes).chain(tensors);
        let mut all = plain.map(|(name, at)| (name, at, name.clone())).chain(iterators);
        match all.find(|(_, _, made)| ir::is_reserved(made)) {
            Some((name, at, made)) => {
                Err(WorkloadError::new(Problem::Reserved { name: name.clone(), made }, at.clone()))
            }
            None => Ok(()),
        }
    }

    /// Defaults are allowed values; a choice is by a parameter.
    fn params(&mut self) -> Result<(), WorkloadError> {
        for (name, decl) in &self.form.params {
            let allowed = |value: &Param, at: &Range<usize>| match meaning(name, &decl.it, value) {
                Ok(Meaning::Index(_) | Meaning::Number(_) | Meaning::Type(_) | Meaning::Word(_)) => Ok(()),
                Err(problem) => Err(WorkloadError::new(Problem::BadDefault(Box::new(problem)), at.clone())),
            };
            match &decl.it {
                ParamKind::Size { default: Some(it) } | ParamKind::Int { default: Some(it), .. } => {
                    allowed(&Param::Int(*it), &decl.at)?;
                }
                ParamKind::Number { default: Some(it) } => allowed(&Param::Float(*it), &decl.at)?,
                ParamKind::Type { default: Some(it), .. } | ParamKind::Word { default: Some(it), .. } => {
                    let place = self.form.params.get_index_of(name);
                    self.choice_before(it, place)?;
                    for word in it.leaves() {
                        allowed(&Param::Text(word.value.clone()), &word.span)?;
                    }
                }
                ParamKind::Size { default: None }
                | ParamKind::Int { default: None, .. }
                | ParamKind::Number { default: None }
                | ParamKind::Type { default: None, .. }
                | ParamKind::Word { default: None, .. } => {}
            }
        }
        Ok(())
    }

    fn types(&mut self) -> Result<(), WorkloadError> {
        for (at, decl) in self.form.types.values().enumerate() {
            self.choice(&decl.it)?;
            for word in decl.it.leaves() {
                self.dtype(word, at)?;
            }
        }
        Ok(())
    }

    fn tensors(&mut self) -> Result<(), WorkloadError> {
        for decl in self.form.tensors.values() {
            self.choice(&decl.it.dtype)?;
            for word in decl.it.dtype.leaves() {
                self.dtype(word, usize::MAX)?;
            }
            if let Some(stored) = &decl.it.stored {
                self.choice(stored)?;
            }
            decl.it.shape.iter().try_for_each(|it| self.index(it, false))?;
            if let Some(below) = &decl.it.below {
                self.index(below, false)?;
                if decl.it.role != Role::Input {
                    return Err(WorkloadError::new(Problem::BelowOf("no input"), below.span.clone()));
                }
            }
        }
        self.form.axes.values().try_for_each(|it| self.index(&it.it, false))
    }

    fn choice<T>(&mut self, choice: &'a Choice<T>) -> Result<(), WorkloadError> {
        self.choice_before(choice, None)
    }

    /// Checks a choice that may look at the parameters before the given one only.
    fn choice_before<T>(&mut self, choice: &Choice<T>, before: Option<usize>) -> Result<(), WorkloadError> {
        let form = self.form;
        let limit = before.unwrap_or(form.params.len());
        let mut words = Vec::new();
        let mut param = |text: &Text| match form.params.get_full(&text.value) {
            Some((at, name, decl)) if at < limit => {
                words.push(name);
                Ok(decl.it.clone())
            }
            Some(_) | None => {
                let known = form.params.keys().take(limit).map(String::as_str);
                Err(unknown("parameter", &text.value, text.span.clone(), known))
            }
        };
        let mut types = Vec::new();
        choice.check(&mut param, &mut |text| {
            types.push(text.clone());
            Ok(())
        })?;
        self.used.extend(words.into_iter().map(|it| ("parameter", it.as_str())));
        types.iter().try_for_each(|it| self.dtype(it, if before.is_some() { 0 } else { usize::MAX }))
    }

    /// A type's name: one of the first `limit` types of the workload, a parameter, or one of ours.
    fn dtype(&mut self, word: &Text, limit: usize) -> Result<(), WorkloadError> {
        if word.value.parse::<DType>().is_ok() || self.dtype_named(&word.value, limit) {
            return Ok(());
        }
        let types = self.form.types.keys().take(limit).map(String::as_str);
        Err(unknown("type", &word.value, word.span.clone(), types.chain(DType::ALL.map(DType::as_str))))
    }

    fn dtype_named(&mut self, word: &str, limit: usize) -> bool {
        if let Some((_, name, _)) = self.form.types.get_full(word).filter(|it| it.0 < limit) {
            self.used.insert(("type", name));
            return true;
        }
        match self.form.params.get_key_value(word) {
            Some((name, decl)) if matches!(decl.it, ParamKind::Type { .. }) => {
                self.used.insert(("parameter", name));
                true
            }
            Some(_) | None => false,
        }
    }

    fn unused(&self) -> Result<(), WorkloadError> {
        let form = self.form;
        let params = form.params.iter().map(|(name, it)| ("parameter", name, &it.at));
        let types = form.types.iter().map(|(name, it)| ("type", name, &it.at));
        let axes = form.axes.iter().map(|(name, it)| ("axis", name, &it.at));
        let tensors = form.tensors.iter().map(|(name, it)| ("tensor", name, &it.at));
        let mut all = tensors.chain(axes).chain(types).chain(params);
        match all.find(|(what, name, _)| !self.used.contains(&(*what, name.as_str()))) {
            Some((what, name, at)) => {
                Err(WorkloadError::new(Problem::Unused { what, name: name.clone() }, at.clone()))
            }
            None if form.tensors.values().all(|it| it.it.role != Role::Output) => {
                Err(WorkloadError::new(Problem::None("outputs"), form.name.span.clone()))
            }
            None => Ok(()),
        }
    }
}
