//! A validator of the part of JSON Schema that our schemas use, which `tilewright schema` prints. It refuses words that it does not know,
//! so that no rule of a schema goes unheeded. A crate for all of JSON Schema brings forty others.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// All schemas, by their files.
pub(crate) struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    pub(crate) fn load() -> Schemas {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        let out = command.args(["schema", "--json"]).output().unwrap();
        let mut all: BTreeMap<String, Value> = serde_json::from_slice(&out.stdout).unwrap();
        let schemas: BTreeMap<String, Value> =
            serde_json::from_value(all.remove("schemas").unwrap()).unwrap();
        Schemas(schemas.into_iter().map(|(name, it)| (format!("{name}.json"), it)).collect())
    }

    /// What is wrong with a value, the first thing.
    pub(crate) fn check(&self, file: &str, value: &Value) -> Result<(), String> {
        self.valid(file, &self.0[file], value, "")
    }

    fn valid(&self, file: &str, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Value::Object(rules) = schema else {
            return if schema == &Value::Bool(false) { Err(format!("{at}: is not allowed")) } else { Ok(()) };
        };
        rules.iter().try_for_each(|(word, rule)| self.rule(file, schema, (word, rule), value, at))
    }

    fn rule(
        &self,
        file: &str,
        schema: &Value,
        (word, rule): (&str, &Value),
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        match word {
            "$schema" | "$id" | "$defs" | "title" | "description" => Ok(()),
            "$ref" => {
                let (file, target) = self.resolve(file, rule.as_str().unwrap());
                self.valid(&file, target, value, at)
            }
            "allOf" | "anyOf" | "oneOf" => {
                let all = rule.as_array().unwrap();
                let wrong: Vec<String> =
                    all.iter().filter_map(|it| self.valid(file, it, value, at).err()).collect();
                let fits = all.len() - wrong.len();
                let is_fine = match word {
                    "allOf" => wrong.is_empty(),
                    "anyOf" => fits > 0,
                    _ => fits == 1,
                };
                let words = || format!("{fits} of {word}, and not:\n  {}", wrong.join("\n  "));
                if is_fine { Ok(()) } else { Err(words()) }
            }
            "properties" => rule.as_object().unwrap().iter().try_for_each(|(name, rule)| {
                let Some(value) = value.get(name) else { return Ok(()) };
                self.valid(file, rule, value, &format!("{at}/{name}"))
            }),
            "additionalProperties" => {
                let known = schema["properties"].as_object();
                let others = value.as_object().into_iter().flatten();
                let mut others = others.filter(|it| known.is_none_or(|known| !known.contains_key(it.0)));
                others.try_for_each(|(name, value)| self.valid(file, rule, value, &format!("{at}/{name}")))
            }
            "prefixItems" => {
                let pairs = value.as_array().into_iter().flatten().zip(rule.as_array().unwrap());
                let mut pairs = pairs.enumerate();
                pairs.try_for_each(|(n, (value, rule))| self.valid(file, rule, value, &format!("{at}/{n}")))
            }
            "items" => {
                let before = schema["prefixItems"].as_array().map_or(0, Vec::len);
                let mut items = value.as_array().into_iter().flatten().enumerate().skip(before);
                items.try_for_each(|(n, value)| self.valid(file, rule, value, &format!("{at}/{n}")))
            }
            _ if fits_alone(word, rule, value) => Ok(()),
            _ => Err(format!("{at}: {value} is not of {word} {rule}")),
        }
    }

    /// `#/$defs/Place`, `error.json`, `log.json#/$defs/Trial`.
    fn resolve(&self, here: &str, target: &str) -> (String, &Value) {
        let (file, pointer) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { here } else { file };
        let found = self.0[file].pointer(pointer);
        (file.to_owned(), found.unwrap_or_else(|| panic!("{here}: {target} leads nowhere")))
    }
}

/// Whether a value keeps a rule that leads to no other schema.
fn fits_alone(word: &str, rule: &Value, value: &Value) -> bool {
    let count = |len: Option<usize>, holds: &dyn Fn(u64, u64) -> bool| {
        len.is_none_or(|len| holds(len as u64, rule.as_u64().unwrap()))
    };
    let (items, chars) = (value.as_array().map(Vec::len), value.as_str().map(|it| it.chars().count()));
    match word {
        "type" => match rule {
            Value::Array(all) => all.iter().any(|it| is_a(value, it.as_str().unwrap())),
            one => is_a(value, one.as_str().unwrap()),
        },
        "const" => value == rule,
        "enum" => rule.as_array().unwrap().contains(value),
        // The one pattern that there is.
        "pattern" => {
            assert_eq!(rule, "^TW[0-9]{4}$");
            value.as_str().is_some_and(|it| ir::Code::parse(it).is_some())
        }
        "required" => {
            let mut names = rule.as_array().unwrap().iter();
            !value.is_object() || names.all(|it| value.get(it.as_str().unwrap()).is_some())
        }
        "minimum" => value.as_f64().is_none_or(|it| it >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|it| it <= rule.as_f64().unwrap()),
        "minItems" => count(items, &|len, least| len >= least),
        "maxItems" => count(items, &|len, most| len <= most),
        "minLength" => count(chars, &|len, least| len >= least),
        "maxLength" => count(chars, &|len, most| len <= most),
        "uniqueItems" => {
            let mut all = value.as_array().into_iter().flatten().enumerate();
            all.all(|(n, it)| !value.as_array().unwrap()[..n].contains(it))
        }
        _ => panic!("the validator of this test does not know `{word}`"),
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("there is no type {other}"),
    }
}

#[test]
fn the_validator_refuses() {
    let schemas = Schemas::load();
    let good = serde_json::json!({"ok": true, "target": "cpu", "steps": 1, "kernels": ["k"], "notes": []});
    assert_eq!(schemas.check("check.json", &good), Ok(()));
    for (name, value) in
        [("steps", "one".into()), ("steps", (-1).into()), ("ok", false.into()), ("new", 1.into())]
    {
        let mut bad: Value = good.clone();
        bad[name] = value;
        assert!(schemas.check("check.json", &bad).is_err(), "{bad}");
    }
    let error = serde_json::json!({"ok": false, "code": "TW10", "error": "x", "places": [], "help": null});
    assert!(schemas.check("check.json", &error).unwrap_err().contains("pattern"));
}

/// What programs may rely on, in short: a line for each definition, `?` behind what may be left out. A difference here is a
/// change of a promise.
#[test]
fn the_shapes_of_lines() {
    let mut lines = vec![];
    for (file, schema) in &Schemas::load().0 {
        lines.push(format!("{file}: {}", shape(schema)));
        let definitions = schema["$defs"].as_object().into_iter().flatten();
        lines.extend(definitions.map(|(name, schema)| format!("  {name}: {}", shape(schema))));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

fn shape(schema: &Value) -> String {
    let list = |word: &str, between: &str| {
        let all = schema[word].as_array()?;
        Some(all.iter().map(shape).collect::<Vec<_>>().join(between))
    };
    let values =
        || Some(schema["enum"].as_array()?.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "));
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(it) = schema.get("const") {
        return it.to_string();
    }
    let choice = list("anyOf", " | ").or_else(|| list("oneOf", " | ")).or_else(|| list("allOf", " & "));
    if let Some(it) = choice.or_else(values).or_else(|| list("prefixItems", ", ")) {
        return it;
    }
    let kind = match &schema["type"] {
        Value::Array(all) => all.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(" | "),
        one => one.as_str().unwrap_or("any").to_owned(),
    };
    let items = schema.get("items").map(|it| format!(" of ({})", shape(it))).unwrap_or_default();
    let map = Some(&schema["additionalProperties"]).filter(|it| it.is_object() || it.as_bool() == Some(true));
    let map = map.map(|it| format!(" of any name: {}", shape(it))).unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let field = |(name, it): (&String, &Value)| {
        let mark = if required.iter().any(|it| it == name) { "" } else { "?" };
        format!("{name}{mark}: {}", shape(it))
    };
    let fields: Vec<String> = schema["properties"].as_object().into_iter().flatten().map(field).collect();
    if fields.is_empty() { format!("{kind}{items}{map}") } else { format!("{{ {} }}", fields.join(", ")) }
}
