//! What the comments at the top of a script say that must happen.
//!
//! ```text
//! // expect: accepted                 or `refused` by the schedule, or `not lowered`
//! // says: before `B` has written     words of the refusal; may stand several times
//! // dims: n=1..8                     values of symbolic dimensions; also as constants, where extents stay positive
//! // slots: B=2 C=1                   rows of a buffer's ring, if that is all
//! // barriers: 1                      in one iteration of the steady loop
//! // all barriers: 3                  in the text of all kernels
//! // copies: 2                        asynchronous ones in one iteration of the steady loop
//! // shared: 1024                     bytes of shared memory of the largest kernel
//! // tvm: B=2 barriers=2              what TVM 0.27 needs
//! ```

use std::ops::RangeInclusive;

use indexmap::IndexMap;
use ir::Name;

/// What a script says that must happen.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) verdict: ScriptEnd,
    pub(crate) says: Vec<String>,
    pub(crate) dims: Vec<(Name, RangeInclusive<i64>)>,
    pub(crate) slots: IndexMap<Name, i64>,
    pub(crate) barriers: Option<i64>,
    pub(crate) all_barriers: Option<i64>,
    pub(crate) copies: Option<i64>,
    pub(crate) shared: Option<i64>,
    /// TVM's slots.
    pub(crate) tvm: IndexMap<Name, i64>,
    /// TVM's barriers in one iteration.
    pub(crate) tvm_barriers: Option<i64>,
}

/// Where a script ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptEnd {
    Accepted,
    Refused,
    NotLowered,
}

impl Header {
    pub(crate) fn parse(text: &str) -> Header {
        let mut out = Header {
            verdict: ScriptEnd::Accepted,
            says: vec![],
            dims: vec![],
            slots: IndexMap::new(),
            barriers: None,
            all_barriers: None,
            copies: None,
            shared: None,
            tvm: IndexMap::new(),
            tvm_barriers: None,
        };
        let mut judged = false;
        for line in text.lines().map_while(|it| it.strip_prefix("// ")) {
            let Some((key, value)) = line.split_once(": ") else { panic!("no comment of a script: {line}") };
            match key {
                "expect" => {
                    judged = true;
                    out.verdict = match value {
                        "accepted" => ScriptEnd::Accepted,
                        "refused" => ScriptEnd::Refused,
                        "not lowered" => ScriptEnd::NotLowered,
                        other => panic!("no verdict: {other}"),
                    }
                }
                "says" => out.says.push(value.to_owned()),
                "dims" => out.dims = pairs(value).map(|(name, it)| (name, range(&it))).collect(),
                "slots" => out.slots = pairs(value).map(|(name, it)| (name, it.parse().unwrap())).collect(),
                "barriers" => out.barriers = Some(value.parse().unwrap()),
                "all barriers" => out.all_barriers = Some(value.parse().unwrap()),
                "copies" => out.copies = Some(value.parse().unwrap()),
                "shared" => out.shared = Some(value.parse().unwrap()),
                "tvm" => {
                    out.tvm = pairs(value).map(|(name, it)| (name, it.parse().unwrap())).collect();
                    out.tvm_barriers = out.tvm.shift_remove("barriers");
                }
                other => panic!("no key of a script's comments: {other}"),
            }
        }
        assert!(judged, "the comments do not say what to expect");
        out
    }

    /// Every choice of values for the dimensions; the one empty choice if there are none.
    pub(crate) fn all_dims(&self) -> Vec<IndexMap<Name, i64>> {
        let mut out = vec![IndexMap::new()];
        for (name, values) in &self.dims {
            let with = |dims: &IndexMap<Name, i64>, value| {
                let mut dims = dims.clone();
                dims.insert(name.clone(), value);
                dims
            };
            out = out.iter().flat_map(|dims| values.clone().map(|it| with(dims, it))).collect();
        }
        out
    }
}

fn pairs(text: &str) -> impl Iterator<Item = (Name, String)> {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap();
        (Name::new(name), value.to_owned())
    };
    text.split_whitespace().map(pair)
}

fn range(text: &str) -> RangeInclusive<i64> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    first.parse().unwrap()..=last.parse().unwrap()
}
