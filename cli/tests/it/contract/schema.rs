//! A validator of the part of JSON Schema that our schemas use. It refuses words that it does not know, so that no rule of a
//! schema goes unheeded. A crate for all of JSON Schema brings forty others.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

/// All schemas, by their files.
pub(crate) struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    pub(crate) fn load() -> Schemas {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        };
        Schemas(files.map(read).collect())
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
        let expect = |holds: bool| {
            if holds { Ok(()) } else { Err(format!("{at}: {value} is not of {word} {rule}")) }
        };
        match word {
            "$schema" | "$id" | "$defs" | "title" | "description" => Ok(()),
            "$ref" => {
                let (file, target) = self.resolve(file, rule.as_str().unwrap());
                self.valid(&file, target, value, at)
            }
            "type" => expect(match rule {
                Value::Array(all) => all.iter().any(|it| is_a(value, it.as_str().unwrap())),
                one => is_a(value, one.as_str().unwrap()),
            }),
            "const" => expect(value == rule),
            "enum" => expect(rule.as_array().unwrap().contains(value)),
            // The one pattern that there is.
            "pattern" => {
                assert_eq!(rule, "^TW[0-9]{4}$");
                expect(value.as_str().is_some_and(|it| ir::Code::parse(it).is_some()))
            }
            "anyOf" => {
                let tried = rule.as_array().unwrap().iter().map(|it| self.valid(file, it, value, at));
                let wrong: Vec<String> = tried.map_while(Result::err).collect();
                let fits = wrong.len() < rule.as_array().unwrap().len();
                if fits { Ok(()) } else { Err(format!("none of:\n  {}", wrong.join("\n  "))) }
            }
            "required" => {
                let missing =
                    rule.as_array().unwrap().iter().find(|it| value.get(it.as_str().unwrap()).is_none());
                missing.map_or(Ok(()), |it| Err(format!("{at}: {it} is missing")))
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
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(n, value)| self.valid(file, rule, value, &format!("{at}/{n}"))),
            _ => panic!("{file}: the validator of this test does not know `{word}`"),
        }
    }

    /// `#/$defs/place`, `error.json`, `log.json#/$defs/trial`, `#`.
    fn resolve(&self, here: &str, target: &str) -> (String, &Value) {
        let (file, pointer) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { here } else { file };
        let found = self.0[file].pointer(pointer);
        (file.to_owned(), found.unwrap_or_else(|| panic!("{here}: {target} leads nowhere")))
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
    for (name, value) in [("steps", "one".into()), ("ok", false.into()), ("new", 1.into())] {
        let mut bad: Value = good.clone();
        bad[name] = value;
        assert!(schemas.check("check.json", &bad).is_err(), "{bad}");
    }
    let error = serde_json::json!({"ok": false, "code": "TW10", "error": "x", "places": [], "help": null});
    assert!(schemas.check("check.json", &error).unwrap_err().contains("pattern"));
}
