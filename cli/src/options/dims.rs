//! The values of symbolic dimensions: one, a list, or a range.

use indexmap::{IndexMap, IndexSet};
use ir::Name;

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Values that a user wants a symbolic dimension to have, in order.
pub(crate) type Values = (Name, Vec<i64>);

/// The most combinations that one command goes through.
const MAX_COMBINATIONS: usize = 100_000;

/// `--dim`: `m=512`, `m=1,17,300`, `m=1..300` with both ends, or several of these: `m=1..8,300`.
pub(crate) fn parse_values(word: &str) -> Result<Values, String> {
    let (name, list) = word.split_once('=').ok_or("a dimension is written `name=value`")?;
    let mut values = IndexSet::new();
    for part in list.split(',') {
        let (least, most) = part.split_once("..").unwrap_or((part, part));
        let number = |it: &str| {
            let value = it.parse::<i64>().ok().filter(|it| *it > 0);
            value.ok_or("a value is a whole number from 1, and a range `1..300` with both ends")
        };
        let (least, most) = (number(least)?, number(most)?);
        if least > most {
            return Err(format!("the range {part} is empty: it goes from the less to the greater"));
        }
        if most.abs_diff(least) >= MAX_COMBINATIONS as u64 || values.len() >= MAX_COMBINATIONS {
            return Err(format!("these are more than {MAX_COMBINATIONS} values"));
        }
        values.extend(least..=most);
    }
    Ok((Name::new(name), values.into_iter().collect()))
}

/// Every combination of the values, the last dimension fastest; one without values where there are no dimensions. Of what
/// is given twice the last counts.
pub(crate) fn combinations(all: &[Values]) -> Result<Vec<IndexMap<Name, i64>>, Diagnostic> {
    let all: IndexMap<&Name, &Vec<i64>> = all.iter().map(|(name, values)| (name, values)).collect();
    let count = all.values().try_fold(1usize, |count, it| count.checked_mul(it.len()));
    if count.is_none_or(|it| it > MAX_COMBINATIONS) {
        return Err(Diagnostic::usage(
            UsageError::Combinations,
            format!("these are more than {MAX_COMBINATIONS} combinations of dimensions"),
        ));
    }
    let mut out = vec![IndexMap::new()];
    for (name, values) in all {
        let with = |dims: &IndexMap<Name, i64>| {
            let dims = dims.clone();
            values.iter().map(move |value| {
                let mut dims = dims.clone();
                dims.insert(name.clone(), *value);
                dims
            })
        };
        out = out.iter().flat_map(with).collect();
    }
    Ok(out)
}

/// `m=33 n=5`.
pub(crate) fn words(dims: &IndexMap<Name, i64>) -> String {
    let words: Vec<_> = dims.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let values = |word: &str| parse_values(word).map(|it| it.1);
        assert_eq!(values("m=7"), Ok(vec![7]));
        assert_eq!(values("m=1,5,300"), Ok(vec![1, 5, 300]));
        assert_eq!(values("m=3..6,1,4..7"), Ok(vec![3, 4, 5, 6, 1, 7]));
        assert_eq!(values("m=1..300").map(|it| it.len()), Ok(300));
        for bad in
            ["m", "m=", "m=0", "m=-1..4", "m=1..", "m=..3", "m=5..3", "m=1..2..3", "m=1,,2", "m=1..1000000"]
        {
            assert!(values(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_combination_once() {
        let of = |list: &[&str]| {
            let list: Vec<_> = list.iter().map(|it| parse_values(it).unwrap()).collect();
            combinations(&list).map(|it| it.iter().map(words).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]).unwrap(), [""]);
        assert_eq!(of(&["m=1,2", "n=5..6"]).unwrap(), ["m=1 n=5", "m=1 n=6", "m=2 n=5", "m=2 n=6"]);
        assert_eq!(of(&["m=1,2", "m=3"]).unwrap(), ["m=3"]);
        assert!(of(&["m=1..1000", "n=1..1000"]).is_err());
    }
}
