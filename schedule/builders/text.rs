//! The texts that are made of declarations.

use std::fmt::Write;

use crate::declared::{Declared, DeclaredField, declared};

/// A way to make a primitive: its only one, or that by one of its groups of fields.
pub(crate) struct Builder<'a> {
    /// The word in scripts.
    word: &'a str,
    /// The first sentence of the manual.
    about: String,
    declared: Declared<'a>,
    /// The group, if there are several.
    group: Option<usize>,
}

impl<'a> Builder<'a> {
    /// All ways to make the primitive of that word, from its source.
    pub(crate) fn all(word: &'a str, source: &'a str) -> Vec<Builder<'a>> {
        let read = || declared(source).expect("the source of a primitive declares its struct");
        let doc = source.lines().skip_while(|it| !it.starts_with("///"));
        let doc = doc.map_while(|it| it.strip_prefix("///")).take_while(|it| !it.trim().is_empty());
        let about: String = doc.collect::<Vec<_>>().concat().trim().to_owned();
        let groups = read().groups.len();
        let groups: Vec<_> = if groups == 0 { vec![None] } else { (0..groups).map(Some).collect() };
        let one = |group| Builder { word, about: about.clone(), declared: read(), group };
        groups.into_iter().map(one).collect()
    }

    /// The fields of its group.
    fn own(&self) -> &[&str] {
        self.group.map_or(&[], |it| &self.declared.groups[it])
    }

    fn is_of_group(&self, field: &DeclaredField<'_>) -> bool {
        self.declared.groups.iter().flatten().any(|it| *it == field.ident)
    }

    /// What the constructor takes, in the order of the declaration.
    fn params(&self) -> Vec<&DeclaredField<'a>> {
        let is_taken = |it: &&DeclaredField<'_>| it.is_needed() || self.own().contains(&it.ident);
        self.declared.fields.iter().filter(is_taken).collect()
    }

    /// What has a setter.
    fn options(&self) -> Vec<&DeclaredField<'a>> {
        let is_free =
            |it: &&DeclaredField<'_>| !it.is_needed() && (self.declared.may_join || !self.is_of_group(it));
        self.declared.fields.iter().filter(is_free).collect()
    }

    /// The name in scripts of the first field of its group.
    fn group_word(&self) -> Option<&str> {
        let first = self.own().first().filter(|it| **it != "nothing")?;
        let field = self.declared.fields.iter().find(|it| it.ident == *first);
        Some(field.unwrap_or_else(|| panic!("`{}` has no field `{first}`", self.word)).name())
    }

    /// `new`, or `of_block`.
    fn constructor(&self) -> String {
        self.group_word().map_or("new".to_owned(), |it| format!("of_{it}"))
    }

    /// `split`, `tensorize_block`; `add_unit_loop` needs no `loop` behind it.
    fn method(&self) -> String {
        match self.group_word() {
            Some(it) if !self.word.ends_with(it) => format!("{}_{it}", self.word),
            Some(_) | None => self.word.to_owned(),
        }
    }

    fn is_fallible(&self) -> bool {
        self.params().iter().any(|it| Form::of(it).is_fallible)
    }
}

/// The structs: constructors, setters, and that they are steps.
pub(crate) fn structs(all: &[Builder<'_>]) -> String {
    let mut out = String::new();
    for (at, it) in all.iter().enumerate() {
        let name = it.declared.type_name;
        let _ = writeln!(out, "impl {name} {{\n{}", it.constructor_text());
        // Setters are the same for all groups.
        if all[..at].iter().all(|other| other.word != it.word) {
            it.options().iter().for_each(|field| out += &setter(field));
            let _ = writeln!(
                out,
                "}}\n\nimpl From<{name}> for Step {{\n    fn from(step: {name}) -> Step {{\n        Step::{name}(step)\n    }}"
            );
        }
        out += "}\n\n";
    }
    out += &step(all);
    out.replace("$crate", "crate")
}

/// What tells steps apart.
fn step(all: &[Builder<'_>]) -> String {
    let first = |at: usize, it: &Builder<'_>| all[..at].iter().all(|other| other.word != it.word);
    let words = all.iter().enumerate().filter(|(at, it)| first(*at, it));
    let words: Vec<_> = words.map(|(_, it)| (it.declared.type_name, it.word)).collect();
    let arms = |arm: &dyn Fn(&str, &str) -> String| -> String {
        let lines = words.iter().map(|(name, word)| format!("            {}", arm(name, word)));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    let same = arms(&|name, _| format!("Step::{name}(it) => it,"));
    let names = arms(&|name, word| format!("Step::{name}(_) => {word:?},"));
    format!(
        "impl Step {{\n    /// The primitive of the step.\n    pub fn get(&self) -> &dyn Primitive {{\n        match self {{\n{same}        }}\n    }}\n\n    \
         /// The primitive of the step, to put values in place of its knobs.\n    pub fn get_mut(&mut self) -> &mut dyn Primitive {{\n        \
         match self {{\n{same}        }}\n    }}\n\n    /// The word in scripts.\n    pub const fn name(&self) -> &'static str {{\n        \
         match self {{\n{names}        }}\n    }}\n}}\n"
    )
}

/// What a session and a schedule have for each primitive, as a macro that both use.
pub(crate) fn methods(all: &[Builder<'_>]) -> String {
    let methods: String = all.iter().map(Builder::method_text).collect();
    format!(
        "/// The methods that apply steps, one for each primitive: made of their declarations.\n#[doc(hidden)]\n#[macro_export]\n\
         macro_rules! step_methods {{\n    ($error:ty) => {{\n{methods}    }};\n}}\n"
    )
}

/// What the tests ask: `built` makes a step again by its builder and says whether it has no more than its method takes, `by_method`
/// applies such a step by that method.
pub(crate) fn tests(all: &[Builder<'_>]) -> String {
    // What has none of the groups comes behind what has one.
    let (mut all, none): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.own() != ["nothing"]);
    all.extend(none);
    let built: String = all.iter().map(|it| it.built_text()).collect();
    let by_method: String = all.iter().map(|it| it.by_method_text()).collect();
    let is_last = |it: &&&Builder<'_>| it.group.is_some_and(|group| group + 1 == it.declared.groups.len());
    let is_open = |it: &&&Builder<'_>| is_last(it) && it.declared.groups.iter().all(|it| *it != ["nothing"]);
    // A step of a script may say none of them, which no builder lets one say.
    let rest = |then: &str| {
        let arm = |it: &&Builder<'_>| format!("        Step::{}(_) => {then},\n", it.declared.type_name);
        all.iter().filter(is_open).map(arm).collect::<String>()
    };
    let (built, by_method) =
        (built + &rest("Ok((step.clone(), false))"), by_method + &rest("session.apply(step)"));
    format!(
        "#[allow(clippy::match_same_arms, clippy::too_many_lines, reason = \"an arm for each primitive\")]\nfn built(step: &Step) -> Result<(Step, bool), ScheduleError> {{\n    match step {{\n{built}    }}\n}}\n\n\
         #[allow(clippy::match_same_arms, clippy::too_many_lines, reason = \"an arm for each primitive\")]\nfn by_method(step: &Step, session: &mut Session) -> Result<(), ScheduleError> {{\n    match step {{\n{by_method}    }}\n}}\n"
    )
}

impl Builder<'_> {
    fn params_text(&self) -> String {
        let param = |it: &&DeclaredField<'_>| {
            format!(
                "{}: {}",
                it.ident,
                Form::of(it).param.expect("what says all by being given is an option")
            )
        };
        self.params().iter().map(param).collect::<Vec<_>>().join(", ")
    }

    fn arguments(&self) -> String {
        self.params().iter().map(|it| it.ident).collect::<Vec<_>>().join(", ")
    }

    /// What the parameters are, a line each.
    fn list(&self, indent: &str) -> String {
        let line = |it: &&DeclaredField<'_>| format!("{indent}/// - `{}`: {}\n", it.ident, it.about);
        self.params().iter().map(line).collect()
    }

    fn constructor_text(&self) -> String {
        let value = |field: &DeclaredField<'_>| {
            let is_given = self.params().iter().any(|it| it.ident == field.ident);
            let value = match field.default_function() {
                _ if is_given => Form::of(field).kept(field),
                Some(function) => format!("super::{}::{function}()", self.word),
                None => default(field.kind).to_owned(),
            };
            // As one would write it.
            let value = if value == field.ident { String::new() } else { format!(": {value}") };
            format!("            {}{value},\n", field.ident)
        };
        let values: String = self.declared.fields.iter().map(value).collect();
        let name = self.declared.type_name;
        let (result, made, errors) = if self.is_fallible() {
            let errors = "    ///\n    /// # Errors\n    /// A name that is given twice.\n";
            (format!("Result<{name}, ScheduleError>"), format!("Ok({name} {{\n{values}        }})"), errors)
        } else {
            (name.to_owned(), format!("{name} {{\n{values}        }}"), "")
        };
        format!(
            "    /// {}\n    ///\n{}{errors}    pub fn {}({}) -> {result} {{\n        {made}\n    }}\n",
            self.about,
            self.list("    "),
            self.constructor(),
            self.params_text(),
        )
    }

    fn method_text(&self) -> String {
        let name = self.declared.type_name;
        let call = format!("$crate::primitive::{name}::{}({})", self.constructor(), self.arguments());
        let step =
            if self.is_fallible() { format!("{call}.map(Into::into)") } else { format!("Ok({call}.into())") };
        let options: Vec<_> = self.options().iter().map(|it| format!("`with_{}`", it.ident)).collect();
        let options = match options.as_slice() {
            [] => String::new(),
            all => format!(
                "        ///\n        /// For {} make the step by `{name}::{}` and apply it.\n",
                all.join(", "),
                self.constructor()
            ),
        };
        format!(
            "        /// {}\n        ///\n{}{options}        ///\n        /// # Errors\n        /// What \
             `schedule::primitive::{name}` says that it refuses; the program stays as it is.\n        pub fn {}(&mut self, {}) -> \
             Result<&mut Self, $error> {{\n            self.add({:?}, {step})\n        }}\n\n",
            self.about,
            self.list("        "),
            self.method(),
            self.params_text(),
            self.word,
        )
    }

    /// The arm of a `match` over steps for those that this builder makes.
    fn arm(&self) -> String {
        let guard = match self.group_word() {
            Some(_) => format!(" if it.{}.is_some_field()", self.own()[0]),
            None => String::new(),
        };
        format!("        Step::{}(it){guard} => ", self.declared.type_name)
    }

    /// The arguments of the constructor for the step `it`.
    fn given(&self) -> String {
        let given = |it: &&DeclaredField<'_>| Form::of(it).given_of(it);
        self.params().iter().map(given).collect::<Vec<_>>().join(", ")
    }

    fn built_text(&self) -> String {
        let question = |is_fallible| if is_fallible { "?" } else { "" };
        let setter = |field: &&DeclaredField<'_>| {
            let form = Form::of(field);
            let given = if form.param.is_some() { form.given_of(field) } else { String::new() };
            let (ident, question) = (field.ident, question(form.is_fallible));
            format!(
                "            if it.{ident}.is_some_field() {{ made = made.with_{ident}({given}){question}; }}\n"
            )
        };
        let options = self.options();
        let setters: String =
            options.iter().filter(|it| !self.own().contains(&it.ident)).map(setter).collect();
        let mutable = if setters.is_empty() { "" } else { "mut " };
        format!(
            "{}{{\n            let plain = primitive::{}::{}({}){};\n            let {mutable}made = plain.clone();\n{setters}            \
             Ok((made.clone().into(), plain == made))\n        }}\n",
            self.arm(),
            self.declared.type_name,
            self.constructor(),
            self.given(),
            question(self.is_fallible()),
        )
    }

    fn by_method_text(&self) -> String {
        format!("{}session.{}({}).map(drop),\n", self.arm(), self.method(), self.given())
    }
}

/// The setter of a field that a step may leave out.
fn setter(field: &DeclaredField<'_>) -> String {
    let form = Form::of(field);
    let param = form.param.as_ref().map(|it| format!(", {}: {it}", field.ident)).unwrap_or_default();
    let (attribute, result, made) = if form.is_fallible {
        let errors = "    ///\n    /// # Errors\n    /// A name that is given twice.\n";
        (errors, "Result<Self, ScheduleError>", "Ok(self)")
    } else {
        ("    #[must_use]\n", "Self", "self")
    };
    format!(
        "\n    /// {}\n{attribute}    pub fn with_{}(mut self{param}) -> {result} {{\n        self.{} = {};\n        {made}\n    }}\n",
        field.about,
        field.ident,
        field.ident,
        form.kept(field),
    )
}

/// How a field is given and kept. `@` stands for the parameter, or for what the field holds.
struct Form {
    /// The type of the parameter; none where giving the field says all.
    param: Option<String>,
    /// From the parameter to what the field holds.
    value: &'static str,
    is_fallible: bool,
    /// From what the field of another step holds to what is given for it: for the tests.
    given: &'static str,
}

impl Form {
    fn of(field: &DeclaredField<'_>) -> Form {
        let form = |param: &str, value| Form {
            param: Some(param.to_owned()),
            value,
            is_fallible: false,
            given: "@.clone()",
        };
        match inner(field.kind) {
            "Name" => form("impl Into<ir::Name>", "@.into()"),
            "String" => form("impl Into<String>", "@.into()"),
            "Number" => form("impl Into<$crate::Number>", "@.into()"),
            "i64" => Form { given: "@", ..form("i64", "@") },
            "Vec<usize>" => form("impl IntoIterator<Item = usize>", "@.into_iter().collect()"),
            "Vec<Name>" => form(
                "impl IntoIterator<Item = impl Into<ir::Name>>",
                "@.into_iter().map(Into::into).collect()",
            ),
            "Vec<Number>" => form(
                "impl IntoIterator<Item = impl Into<$crate::Number>>",
                "@.into_iter().map(Into::into).collect()",
            ),
            "bool" => Form { param: None, value: "true", is_fallible: false, given: "" },
            kind => {
                let path = match kind.strip_prefix("IndexMap<") {
                    Some(args) => {
                        let args = args.replace("Name", "ir::Name").replace("Number", "$crate::Number");
                        format!("indexmap::IndexMap<{args}")
                    }
                    None => format!("$crate::primitive::{kind}"),
                };
                let given = if kind.contains("Option<") { "factors(&@)" } else { "@.clone()" };
                let param = Some(format!("impl $crate::primitive::IntoField<{path}>"));
                Form { param, value: "@.into_field()?", is_fallible: true, given }
            }
        }
    }

    /// What the field holds, from the parameter of its name.
    fn kept(&self, field: &DeclaredField<'_>) -> String {
        let value = self.value.replace('@', field.ident);
        if inner(field.kind) == field.kind { value } else { format!("Some({value})") }
    }

    /// What is given for the field, from that of the step `it`.
    fn given_of(&self, field: &DeclaredField<'_>) -> String {
        let held = if inner(field.kind) == field.kind {
            format!("it.{}", field.ident)
        } else {
            format!("it.{}.as_ref().unwrap()", field.ident)
        };
        self.given.replace('@', &held)
    }
}

/// What a field of that type is in a step that does not say it.
fn default(kind: &str) -> &'static str {
    match kind {
        "bool" => "false",
        it if it.starts_with("Vec<") => "vec![]",
        it if it.starts_with("Option<") => "None",
        it => panic!("a step may leave out a field of the type `{it}`, and nothing says what it is then"),
    }
}

/// What is in an option, or the type itself.
fn inner(kind: &str) -> &str {
    kind.strip_prefix("Option<").and_then(|it| it.strip_suffix('>')).unwrap_or(kind)
}
