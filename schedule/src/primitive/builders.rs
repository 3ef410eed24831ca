//! Typed builders: `Split::new("i", [("io", None), ("ii", Some(8))])?.with_overlap()`, made of the declarations of the primitives by
//! the build script. By hand there is only what values become fields.

use indexmap::{IndexMap, map::Entry};
use ir::Name;

use super::{
    AddUnitLoop, Annotate, AnnotationValue, Bind, Blockize, CacheRead, CacheWrite, ClusterLaunchControl,
    ComputeAt, ComputeInline, CrossBlockReduction, DecomposePadding, DecomposeReduction, DecomposeScan,
    DoubleBufferScope, Forced, Fuse, Merge, Order, PadEinsum, Padding, Parallel, Persistent, PingPong,
    Primitive, Rasterize, Reindex, RemoveNoOp, Reorder, Reverse, ReverseComputeAt, ReverseComputeInline,
    Rfactor, RollingScan, RollingUpdate, SetScope, SoftwarePipeline, SoftwarePipelineAcross,
    SoftwarePipelineAsyncStages, SoftwarePipelineOrder, SoftwarePipelineStage, Split, Stages, Step,
    StorageAlign, Swizzle, Tensorize, TransformBlockLayout, TransformLayout, Unroll, Vectorize,
    WarpSpecialize,
};
use crate::{Number, ScheduleError};

include!(concat!(env!("OUT_DIR"), "/builders.rs"));

impl From<&Step> for Step {
    fn from(step: &Step) -> Step {
        step.clone()
    }
}

/// A value that a field with names in it can be made of: an array, a vector or a map of pairs, and for the fields that take several
/// forms each of these.
///
/// ```
/// use tilewright_schedule::{Step, primitive::{Padding, PadEinsum}};
///
/// let by_name: Step = PadEinsum::new("C", [("i", 16), ("j", 8)])?.into();
/// assert_eq!(by_name.to_ron(), r#"pad_einsum(block: "C", padding: {"i": 16, "j": 8})"#);
/// let in_order: Step = PadEinsum::new("C", [16, 8, 16])?.into();
/// assert_eq!(in_order.to_ron(), r#"pad_einsum(block: "C", padding: [16, 8, 16])"#);
/// assert!(PadEinsum::new("C", [("i", 16), ("i", 8)]).is_err(), "`i` is given twice");
/// # Ok::<(), tilewright_schedule::ScheduleError>(())
/// ```
pub trait IntoField<T> {
    /// The field.
    ///
    /// # Errors
    /// [`ScheduleError::NamedTwice`], as texts in RON refuse a key that stands twice.
    fn into_field(self) -> Result<T, ScheduleError>;
}

/// Pairs as a map in which each name stands once.
fn unique<V>(pairs: impl IntoIterator<Item = (Name, V)>) -> Result<IndexMap<Name, V>, ScheduleError> {
    let mut out = IndexMap::new();
    for (name, value) in pairs {
        match out.entry(name) {
            Entry::Occupied(it) => return Err(ScheduleError::NamedTwice { name: it.key().clone() }),
            Entry::Vacant(it) => drop(it.insert(value)),
        }
    }
    Ok(out)
}

impl<K: Into<Name>, I: IntoIterator<Item = (K, Option<i64>)>> IntoField<IndexMap<Name, Option<Number>>>
    for I
{
    fn into_field(self) -> Result<IndexMap<Name, Option<Number>>, ScheduleError> {
        unique(self.into_iter().map(|(name, factor)| (name.into(), factor.map(Number::Int))))
    }
}

impl<K: Into<Name>, V: Into<Number>, I: IntoIterator<Item = (K, V)>> IntoField<IndexMap<Name, Number>> for I {
    fn into_field(self) -> Result<IndexMap<Name, Number>, ScheduleError> {
        unique(self.into_iter().map(|(name, number)| (name.into(), number.into())))
    }
}

impl<K, L, I> IntoField<IndexMap<Name, Vec<Name>>> for I
where
    K: Into<Name>,
    L: IntoIterator<Item: Into<Name>>,
    I: IntoIterator<Item = (K, L)>,
{
    fn into_field(self) -> Result<IndexMap<Name, Vec<Name>>, ScheduleError> {
        unique(self.into_iter().map(|(name, list)| (name.into(), list.into_iter().map(Into::into).collect())))
    }
}

/// The forms of a field: from these types, with these parameters, by this expression over the value.
macro_rules! forms {
    ($field:ty: $([$($generics:tt)*] $from:ty => |$it:ident| $value:expr;)*) => {
        impl IntoField<$field> for $field {
            fn into_field(self) -> Result<$field, ScheduleError> {
                Ok(self)
            }
        }

        $(impl<$($generics)*> IntoField<$field> for $from {
            fn into_field(self) -> Result<$field, ScheduleError> {
                let $it = self;
                Ok($value)
            }
        })*
    };
}

fn numbers(list: impl IntoIterator<Item = i64>) -> Vec<Number> {
    list.into_iter().map(Number::Int).collect()
}

fn names<'a>(list: impl IntoIterator<Item = &'a str>) -> Vec<Name> {
    list.into_iter().map(Into::into).collect()
}

forms! { Padding:
    [K: Into<Name>, const N: usize] [(K, i64); N] => |it| Padding::Map(it.into_field()?);
    [K: Into<Name>] Vec<(K, i64)> => |it| Padding::Map(it.into_field()?);
    [const N: usize] [i64; N] => |it| Padding::List(numbers(it));
    [] Vec<i64> => |it| Padding::List(numbers(it));
}

forms! { Stages:
    [K: Into<Name>, const N: usize] [(K, i64); N] => |it| Stages::Map(it.into_field()?);
    [K: Into<Name>] Vec<(K, i64)> => |it| Stages::Map(it.into_field()?);
    [const N: usize] [i64; N] => |it| Stages::List(numbers(it));
    [] Vec<i64> => |it| Stages::List(numbers(it));
}

forms! { Order:
    [const N: usize] [&str; N] => |it| Order::Names(names(it));
    [] Vec<&str> => |it| Order::Names(names(it));
    [] Vec<Name> => |it| Order::Names(it);
    [K: Into<Name>, const N: usize] [(K, i64); N] => |it| Order::Map(it.into_field()?);
    [K: Into<Name>] Vec<(K, i64)> => |it| Order::Map(it.into_field()?);
    [const N: usize] [i64; N] => |it| Order::List(it.to_vec());
    [] Vec<i64> => |it| Order::List(it);
}

forms! { Forced:
    [] &str => |it| Forced::All(it.into());
    [] Name => |it| Forced::All(it);
    [K: Into<Name>, V: Into<Name>, const N: usize] [(K, V); N] =>
        |it| Forced::Each(unique(it.into_iter().map(|(block, word)| (block.into(), word.into())))?);
    [K: Into<Name>, V: Into<Name>] Vec<(K, V)> =>
        |it| Forced::Each(unique(it.into_iter().map(|(block, word)| (block.into(), word.into())))?);
}

forms! { AnnotationValue:
    [] i64 => |it| AnnotationValue::Int(it);
    [] &str => |it| AnnotationValue::Text(it.to_owned());
    [] String => |it| AnnotationValue::Text(it);
    [const N: usize] [i64; N] => |it| AnnotationValue::List(it.to_vec());
    [] Vec<i64> => |it| AnnotationValue::List(it);
    [K: Into<Name>, const N: usize] [(K, i64); N] =>
        |it| AnnotationValue::Map(unique(it.into_iter().map(|(name, number)| (name.into(), number)))?);
    [K: Into<Name>] Vec<(K, i64)> =>
        |it| AnnotationValue::Map(unique(it.into_iter().map(|(name, number)| (name.into(), number)))?);
}
