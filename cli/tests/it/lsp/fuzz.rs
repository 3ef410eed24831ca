//! Random changes and questions: no text and no place makes the server break, and each question is answered soon.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::client::Client;

/// Numbers that follow from a seed alone (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let it = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap()
    }
}

/// What is put in place of parts of a text.
const PIECES: [&str; 24] = [
    "",
    "",
    "",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    ",",
    ":",
    "\n",
    " ",
    "//",
    "/*",
    "é😀",
    "split(",
    "steps: [",
    "use: [\"std/copy\"],",
    "choose(knob: \"k\", one_of: [[",
    "define: {\"a\": procedure(steps: [a()])}",
    "\\",
    "999999999999",
];

const METHODS: [&str; 7] =
    ["hover", "completion", "definition", "inlayHint", "documentSymbol", "codeAction", "formatting"];

/// A script that ships, at sizes so small that nothing takes long.
fn script(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads").join(name);
    fs::read_to_string(path).unwrap()
}

#[test]
fn random_changes_never_break_the_server() {
    let folder = super::folder();
    let mut client = Client::start(folder.path(), false);
    // Another seed, and more rounds, for whoever looks for more.
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let mut random = Random(number("TILEWRIGHT_FUZZ_SEED").unwrap_or(11));
    let rounds = number("TILEWRIGHT_FUZZ_ROUNDS").unwrap_or(240);
    let texts = [
        script("matmul/ladders/matmul-cpu/06_registers.ron"),
        script("std/copy.ron"),
        script("softmax/softmax.ron"),
        script("matmul/spaces/matmul-cuda-f32.ron"),
        "func f\n  in A: f32[8]\n  out B: f32[8]\n\n  for i in 0..8\n    block B(v: 8 = i)\n      B[v] = A[v]\n".to_owned(),
    ];
    let names = ["a.ron", "b.ron", "c.ron", "d.ron", "e.tw"];
    for (name, text) in names.iter().zip(&texts) {
        client.open(name, text);
    }
    for round in 0..rounds {
        let n = random.below(names.len());
        let name = names[n];
        if round % 16 == 15 {
            // From time to time all is well again.
            let end = client.texts[name].1.len();
            client.replace(name, 0, end, &texts[n]);
        }
        let text = &client.texts[name].1;
        let place = |random: &mut Random| text.floor_char_boundary(random.below(text.len() + 1));
        let from = place(&mut random);
        let to = text.floor_char_boundary((from + random.below(12)).min(text.len()));
        client.replace(name, from, to, PIECES[random.below(PIECES.len())]);
        ask(&mut client, name, &mut random);
    }
    for name in names {
        client.wrong(name);
    }
    assert_eq!(client.end(), Some(0));
}

/// Asks something at a random place.
fn ask(client: &mut Client, name: &str, random: &mut Random) {
    let method = METHODS[random.below(METHODS.len())];
    let text = &client.texts[name].1;
    let at = text.floor_char_boundary(random.below(text.len() + 1));
    let (position, all) = (client.position(name, at), client.range(name, 0, text.len()));
    let params = json!({
        "textDocument": {"uri": client.uri(name)},
        "position": position,
        "range": all,
        "context": {"diagnostics": [], "triggerKind": 1},
        "options": {"tabSize": 4, "insertSpaces": true},
    });
    let answer = client.ask(&format!("textDocument/{method}"), &params);
    assert_eq!(answer.get("error"), None, "{method} at {at} of\n{}", client.texts[name].1);
    assert_ne!(answer.get("result"), None::<&Value>);
}
