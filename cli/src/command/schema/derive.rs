//! JSON Schemas from the types of reports.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{
    Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Map, Value, json};

use super::documents::{Document, documents};

/// Every document by its name.
pub(super) fn all() -> Map<String, Value> {
    let mut homes = Homes::default();
    documents().iter().map(|it| (it.name.to_owned(), homes.document(it))).collect()
}

/// Where definitions stand that several documents need.
#[derive(Default)]
struct Homes(BTreeMap<String, (&'static str, Value)>);

impl Homes {
    fn document(&mut self, of: &Document) -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(AsPrinted);
        let mut generator = SchemaGenerator::new(settings);
        let mut lines: Vec<Value> = of.types.iter().map(|it| it(&mut generator).to_value()).collect();
        let mut definitions = generator.take_definitions(true);
        if of.is_command() {
            lines.push(json!({"$ref": "error.json"}));
        }
        let mut document = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": format!("{}.json", of.name),
            "title": of.title,
            "description": of.about,
        });
        // What is no command's has one sort of line.
        let choice = if let ([_], false) = (lines.as_slice(), of.is_command()) { "allOf" } else { "anyOf" };
        document[choice] = lines.into();
        let elsewhere = self.elsewhere(&definitions);
        definitions.retain(|name, _| !elsewhere.contains(name));
        for (name, it) in &definitions {
            self.0.entry(name.clone()).or_insert_with(|| (of.name, it.clone()));
        }
        if !definitions.is_empty() {
            document["$defs"] = definitions.into();
        }
        self.refer(&mut document, &elsewhere);
        document
    }

    /// Which of these definitions stand in an earlier document: each the same there, and so is all that it refers to.
    fn elsewhere(&self, definitions: &Map<String, Value>) -> BTreeSet<String> {
        let is_known = |(name, it): &(&String, &Value)| self.0.get(*name).is_some_and(|home| home.1 == **it);
        let mut found: BTreeSet<String> =
            definitions.iter().filter(is_known).map(|it| it.0.clone()).collect();
        loop {
            let leads_back = |name: &&String| !references(&definitions[*name]).is_subset(&found);
            let Some(name) = found.iter().find(leads_back).cloned() else { return found };
            found.remove(&name);
        }
    }

    /// Leads references to definitions that stand in other documents there.
    fn refer(&self, schema: &mut Value, elsewhere: &BTreeSet<String>) {
        match schema {
            Value::Object(all) => {
                if let Some(Value::String(target)) = all.get_mut("$ref")
                    && let Some(name) = target.strip_prefix("#/$defs/")
                    && elsewhere.contains(name)
                {
                    *target = format!("{}.json{target}", self.0[name].0);
                }
                all.values_mut().for_each(|it| self.refer(it, elsewhere));
            }
            Value::Array(all) => all.iter_mut().for_each(|it| self.refer(it, elsewhere)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The definitions of its own document that a schema refers to.
fn references(schema: &Value) -> BTreeSet<String> {
    match schema {
        Value::Object(all) => {
            let own = all.get("$ref").and_then(|it| it.as_str()?.strip_prefix("#/$defs/"));
            own.map(str::to_owned).into_iter().chain(all.values().flat_map(references)).collect()
        }
        Value::Array(all) => all.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeSet::new(),
    }
}

/// What types do not say of how they are printed: an object has no other fields than those of its type, what may be left out is
/// never null, and a description is prose and no Rust.
#[derive(Clone, Debug)]
struct AsPrinted;

impl Transform for AsPrinted {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        // The widths of integers and what is read where something is missing are of no use to a reader of what is printed.
        schema.remove("format");
        schema.remove("default");
        if let Some(Value::String(it)) = schema.get_mut("description") {
            *it = prose(it);
        }
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_required =
            |name: &String| required.as_array().is_some_and(|it| it.iter().any(|it| it == name));
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (_, it) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
                never_null(it);
            }
            schema.ensure_object().entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }
}

/// Takes null out of the types of a schema.
fn never_null(schema: &mut Value) {
    let is_null = |it: &Value| *it == "null" || it["type"] == "null";
    for word in ["type", "anyOf"] {
        if let Some(Value::Array(all)) = schema.get_mut(word) {
            all.retain(|it| !is_null(it));
            if let [one] = all.as_slice() {
                let one = one.clone();
                match (word, one, schema.as_object_mut()) {
                    ("anyOf", Value::Object(one), Some(schema)) => {
                        schema.remove(word);
                        schema.extend(one);
                    }
                    (_, one, Some(schema)) => drop(schema.insert(word.to_owned(), one)),
                    (_, _, None) => {}
                }
            }
        }
    }
}

/// A comment of Rust as prose: on one line a paragraph, with links as the words that they are on.
fn prose(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|it| it.replace('\n', " "));
    let mut text = paragraphs.collect::<Vec<_>>().join("\n\n").replace("[`", "`");
    while let Some(at) = text.find("`]") {
        let rest = &text[at + 2..];
        let target = rest.starts_with('(').then(|| rest.find(')')).flatten().map_or(0, |it| it + 1);
        text.replace_range(at + 1..at + 2 + target, "");
    }
    text
}
