//! What steps take: their fields, what each means, and which values it may have. Read from the types of the primitives, so that it
//! cannot lag behind them; only what a name is the name of stands in a table here, which the tests hold against all scripts.

use std::sync::LazyLock;

use ir::{CrossBlock, Mechanism, Scope, Swizzle, ThreadAxis, intrin, pipeline};

use crate::{
    declared::{DeclaredField, declared},
    error::Thing,
    primitive::{CHOOSE, FOR_EACH, SOURCES, WHEN, annotate::annotation_keys},
};

/// A field of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name in scripts.
    pub name: String,
    /// What it is, in a sentence or two.
    pub about: String,
    /// Whether a step needs it.
    pub is_needed: bool,
    /// How its value is built.
    pub shape: Shape,
    /// What its value is, or the elements of its list, or the values of its map.
    pub takes: Takes,
    /// What the keys of its map are, if it may be one.
    pub keys: Takes,
}

/// How a value is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One value.
    One,
    /// A list.
    List,
    /// A map.
    Map,
    /// A list or a map.
    ListOrMap,
    /// One value or a map.
    OneOrMap,
    /// A map to lists.
    MapOfLists,
    /// A list of steps.
    Steps,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// The name of something that is there, or one of some words.
    Thing(Thing),
    /// The name of something that the step makes.
    Fresh,
    /// A number, or an expression in quotes.
    Number,
    /// `true` or `false`.
    Flag,
    /// Anything else.
    Other,
}

/// The fields of a primitive or of a form such as `choose`, in their order; none for another word.
pub fn fields(step: &str) -> &'static [Field] {
    FIELDS.iter().find(|it| it.0 == step).map_or(&[], |it| &it.1)
}

static FIELDS: LazyLock<Vec<(&'static str, Vec<Field>)>> = LazyLock::new(|| {
    let primitives = SOURCES.iter().map(|(name, source)| (*name, read(name, source)));
    primitives.chain(forms()).collect()
});

/// What stands among steps and is none: how it is written is not what its type is.
fn forms() -> [(&'static str, Vec<Field>); 3] {
    let field = |name: &str, about: &str, shape, takes| Field {
        name: name.to_owned(),
        about: about.to_owned(),
        is_needed: name != "else",
        shape,
        takes,
        keys: Takes::Other,
    };
    let knob = Takes::Thing(Thing::Knob);
    [
        (
            CHOOSE,
            vec![
                field("knob", "The knob that decides.", Shape::One, knob),
                field("one_of", "The lists of steps.", Shape::List, Takes::Other),
            ],
        ),
        (
            FOR_EACH,
            vec![
                field("params", "The names of what the list has.", Shape::List, Takes::Fresh),
                field("in", "The list or the map.", Shape::ListOrMap, Takes::Other),
                field("steps", "What to repeat.", Shape::Steps, Takes::Other),
            ],
        ),
        (
            WHEN,
            vec![
                field("cond", "What has to be other than 0.", Shape::One, Takes::Number),
                field("then", "The steps if it is.", Shape::Steps, Takes::Other),
                field("else", "The steps if it is 0.", Shape::Steps, Takes::Other),
            ],
        ),
    ]
}

/// The fields of the first struct in the source of a primitive.
fn read(step: &str, source: &str) -> Vec<Field> {
    let declared = declared(source).expect("the source of a primitive declares its struct");
    declared.fields.iter().map(|it| field(step, it)).collect()
}

/// A field from its declaration.
fn field(step: &str, declared: &DeclaredField<'_>) -> Field {
    let (name, kind) = (declared.name(), declared.kind);
    let kind = kind.strip_prefix("Option<").and_then(|it| it.strip_suffix('>')).unwrap_or(kind);
    let named = meaning(step, name);
    let (shape, keys, takes) = match kind {
        "Name" => (Shape::One, Takes::Other, named),
        "Vec<Name>" => (Shape::List, Takes::Other, named),
        "IndexMap<Name, Vec<Name>>" => (Shape::MapOfLists, Takes::Fresh, named),
        "Number" | "i64" => (Shape::One, Takes::Other, Takes::Number),
        "Vec<Number>" | "Vec<usize>" => (Shape::List, Takes::Other, Takes::Number),
        "bool" => (Shape::One, Takes::Other, Takes::Flag),
        "Padding" | "Stages" => (Shape::ListOrMap, named, Takes::Number),
        "Order" => (Shape::ListOrMap, named, named),
        "Forced" => (Shape::OneOrMap, Takes::Thing(Thing::Block), named),
        it if it.starts_with("IndexMap<Name, ") => (Shape::Map, named, Takes::Number),
        _ => (Shape::One, Takes::Other, Takes::Other),
    };
    let (name, about, is_needed) = (name.to_owned(), declared.about.clone(), declared.is_needed());
    Field { name, about, is_needed, shape, takes, keys }
}

/// What a name in a field is the name of.
fn meaning(step: &str, field: &str) -> Takes {
    let thing = match (step, field) {
        ("split" | "fuse" | "merge" | "rasterize" | "add_unit_loop", "into") | (_, "name") => {
            return Takes::Fresh;
        }
        ("software_pipeline_order", "order")
        | ("software_pipeline_stage", "stages")
        | (_, "block" | "blocks" | "readers" | "benign" | "reuse" | "roles") => Thing::Block,
        ("transform_block_layout", "into") | (_, "padding") => Thing::Iterator,
        (_, "loop" | "loops" | "order" | "outer" | "inner" | "turns" | "serpentine") => Thing::Loop,
        (_, "buffer") => Thing::Buffer,
        (_, "scope") => Thing::Scope,
        (_, "axis") => Thing::Axis,
        (_, "intrin") => Thing::Intrinsic,
        (_, "mechanism") => Thing::Mechanism,
        (_, "style") => Thing::Style,
        (_, "mode") => Thing::Mode,
        (_, "key") => Thing::Annotation,
        (_, "registers") => Thing::Role,
        _ => return Takes::Other,
    };
    Takes::Thing(thing)
}

/// The words that a field of a step takes, where these do not depend on the program.
pub fn words(step: &str, thing: Thing) -> Vec<String> {
    match thing {
        Thing::Scope => Scope::ALL.iter().map(|it| it.as_str().to_owned()).collect(),
        Thing::Axis => ThreadAxis::ALL.iter().map(|it| it.as_str().to_owned()).collect(),
        Thing::Intrinsic => {
            let all = intrin::ALL.iter().map(|it| it.name).chain(intrin::families());
            all.map(str::to_owned).collect()
        }
        Thing::Mechanism if step == "cross_block_reduction" => {
            CrossBlock::ALL.iter().map(|it| it.as_str().to_owned()).collect()
        }
        Thing::Mechanism => Mechanism::ASKABLE.iter().map(|it| it.as_str().to_owned()).collect(),
        Thing::Style => {
            let all = [pipeline::Style::Peel, pipeline::Style::Predicate];
            all.iter().map(|it| it.as_str().to_owned()).collect()
        }
        Thing::Mode => Swizzle::words().iter().map(ToString::to_string).chain(["none".to_owned()]).collect(),
        Thing::Annotation => annotation_keys().map(str::to_owned).collect(),
        Thing::Loop | Thing::Role | Thing::Block | Thing::Buffer | Thing::Iterator | Thing::Knob => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitive::{forms, names};

    #[test]
    fn every_step_has_fields_that_say_what_they_are() {
        for step in names().chain(forms()) {
            let all = fields(step);
            assert!(!all.is_empty(), "{step}");
            for it in all {
                assert!(it.about.ends_with('.'), "{step}: {} is {:?}", it.name, it.about);
                let names_something = [it.takes, it.keys] != [Takes::Other; 2];
                let is_free = ["value", "index_map", "steps", "then", "else", "in", "one_of"];
                assert!(names_something || is_free.contains(&&*it.name), "{step}: {}", it.name);
            }
        }
        let needed = |step: &str| {
            let needed = fields(step).iter().filter(|it| it.is_needed);
            needed.map(|it| it.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(needed("split"), ["loop", "into"]);
        assert_eq!(needed("cache_read"), ["block", "buffer", "scope"]);
        assert_eq!(needed("tensorize"), ["intrin"]);
    }
}
