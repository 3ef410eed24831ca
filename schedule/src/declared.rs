//! What the source of a primitive declares: its struct and its fields. [`crate::fields`] tells editors of it, and the build script,
//! which includes this file, makes the typed builders of it; so it needs nothing but texts.

/// The struct of a primitive.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    /// Its name: `CacheRead`.
    pub(crate) type_name: &'a str,
    /// Its fields in order.
    pub(crate) fields: Vec<DeclaredField<'a>>,
    /// Groups of fields, by their names in Rust, of which a step has one and no other: the comment `// One of: a | b, c` before the
    /// struct. None where all that a step needs is a field of its own.
    pub(crate) groups: Vec<Vec<&'a str>>,
    /// Whether several of these groups may come together: `// Any of: a | b`.
    pub(crate) may_join: bool,
}

/// A field of it.
#[derive(Debug)]
pub(crate) struct DeclaredField<'a> {
    /// Its name in Rust.
    pub(crate) ident: &'a str,
    /// Its type.
    pub(crate) kind: &'a str,
    /// Its comment on one line.
    pub(crate) about: String,
    /// What serde is told of it.
    attributes: String,
}

impl DeclaredField<'_> {
    /// Its name in scripts.
    pub(crate) fn name(&self) -> &str {
        self.attribute("rename").unwrap_or(self.ident)
    }

    /// Whether a step needs it.
    pub(crate) fn is_needed(&self) -> bool {
        !self.attributes.contains("default") && !self.kind.starts_with("Option<")
    }

    /// The function that says what it is where a step does not, if that is not the default of its type.
    pub(crate) fn default_function(&self) -> Option<&str> {
        self.attribute("default")
    }

    /// The text that serde is told for a key.
    fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.split(&format!("{key} = \"")).nth(1)?.split('"').next()
    }
}

/// The first struct in the source of a primitive.
pub(crate) fn declared(source: &str) -> Option<Declared<'_>> {
    let mut lines = source.lines().skip_while(|it| !it.starts_with("pub struct "));
    let type_name = lines.next()?.strip_prefix("pub struct ")?.split([' ', '{', ';']).next()?;
    let (mut fields, mut about, mut attributes) = (vec![], String::new(), String::new());
    for line in lines.take_while(|it| *it != "}").map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            about.push_str(words);
        } else if line.starts_with('#') {
            attributes.push_str(line);
        } else if let Some((ident, kind)) = line.strip_prefix("pub ").and_then(|it| it.split_once(": ")) {
            let (about, attributes) = (std::mem::take(&mut about), std::mem::take(&mut attributes));
            let (kind, about) = (kind.trim_end_matches(','), about.trim().to_owned());
            fields.push(DeclaredField { ident, kind, about, attributes });
        }
    }
    let line = |mark| source.lines().find_map(|it: &str| it.strip_prefix(mark));
    let (one, any) = (line("// One of: "), line("// Any of: "));
    let groups = one.or(any).into_iter().flat_map(|it| it.split(" | "));
    let groups = groups.map(|it| it.split(", ").collect()).collect();
    Some(Declared { type_name, fields, groups, may_join: any.is_some() })
}
