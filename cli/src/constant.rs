//! Types of one value, for fields of reports that always say the same.

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $value.serialize(to)
            }
        }

        #[cfg(feature = "cli")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"const": $value})
            }
        }
    )*};
}

constants! {
    /// The `ok` of what never is well.
    False = false;
}

#[cfg(feature = "cli")]
constants! {
    /// The `ok` of what is always well where it is told, and whatever else is always true.
    True = true;
}

/// What tells reports of one command apart.
#[cfg(feature = "cli")]
pub(crate) mod word {
    constants! {
        Counters = "counters";
        Deps = "deps";
        Diff = "diff";
        Html = "html";
        Pipeline = "pipeline";
        Resources = "resources";
        Space = "space";
    }
}
