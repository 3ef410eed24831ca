//! `tilewright show`: the forms that a program has, and the page that has all of them.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::common::{run, tilewright};
use codegen::device::{disasm, nvrtc};
use tempfile::TempDir;

const SCRIPT: &str = r#"schedule(
    about: "A tile through shared memory & registers.",
    workload: "matmul", target: "cuda:sm_80",
    params: {"m": 64, "n": 64, "k": 64, "dtype": "f32"},
    steps: [
        split(loop: "i", into: {"by": None, "ty": 16}),
        split(loop: "j", into: {"bx": None, "tx": 16}),
        split(loop: "k", into: {"ko": None, "ki": 16}),
        reorder(order: ["by", "bx", "ty", "tx", "ko", "ki"]),
        bind(loop: "by", axis: "blockIdx.y"),
        bind(loop: "bx", axis: "blockIdx.x"),
        bind(loop: "ty", axis: "threadIdx.y"),
        bind(loop: "tx", axis: "threadIdx.x"),
        cache_read(block: "C", buffer: "A", scope: "shared"),
        compute_at(block: "A_shared", loop: "ko"),
        split(loop: "A_shared_0", into: {"A_shared_o": None, "A_shared_ty": 16}),
        bind(loop: "A_shared_ty", axis: "threadIdx.y"),
        bind(loop: "A_shared_1", axis: "threadIdx.x"),
        decompose_reduction(block: "C", loop: "ko"),
        software_pipeline_stage(loop: "ko", stages: {"A_shared": 0, "C": 1}),
        software_pipeline_order(loop: "ko", order: ["A_shared", "C"]),
    ],
)
"#;

/// A folder with that script, one whose last steps are refused, one for the cpu, and programs in the text form.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.ron", SCRIPT);
    write("wrong.ron", &SCRIPT.replace("{\"A_shared\": 0, \"C\": 1}", "{\"A_shared\": 1, \"C\": 0}"));
    write(
        "cpu.ron",
        "schedule(workload: \"elementwise\", target: \"cpu\", steps: [split(loop: \"i\", into: {\"o\": None, \"v\": 8}), \
         parallel(loop: \"o\")])",
    );
    write(
        "mine.tw",
        "func mine(n)\n  in A: f32[n]\n  out B: f32[n]\n\n  for i in 0..n\n    block B(v: n = i)\n      B[v] = A[v] + A[v]\n",
    );
    write(
        "kernel.tw",
        "// one\n\nmodule m\n  in A: f32[8]\n  out B: f32[8]\n\n  kernel k(A, mut B)\n    for i in 0..8\n      B[i] = A[i]\n",
    );
    folder
}

fn told(folder: &TempDir, requests: &[&[&str]]) -> String {
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn dependences_and_steps() {
    insta::assert_snapshot!(told(
        &folder(),
        &[
            &["show", "a.ron", "--emit", "deps"],
            &["show", "a.ron", "--emit", "deps", "--until", "9", "--json"],
            &["show", "a.ron", "--emit", "diff", "--step", "10", "--context", "1"],
            &["show", "a.ron", "--emit", "diff", "--step", "3", "--json"],
            &["show", "a.ron", "--step", "2"],
            &["show", "mine.tw"],
            &["show", "mine.tw", "--emit", "deps"],
            &["show", "kernel.tw", "--emit", "kernel"],
        ]
    ));
}

#[test]
fn colour_is_for_people() {
    let folder = folder();
    let shown = |arguments: &[&str]| tilewright(folder.path(), arguments).replace('\u{1b}', "␛");
    let diff = ["show", "a.ron", "--emit", "diff", "--step", "5", "--context", "1"];
    let always = [&diff[..], &["--color", "always"]].concat();
    insta::assert_snapshot!([shown(&always), shown(&["show", "mine.tw", "--color", "always"])].join("\n"));
    // Neither where nobody looks nor as data; and what is coloured is the same text.
    assert!(!shown(&diff).contains('␛'));
    assert!(!shown(&[&always[..], &["--json"]].concat()).contains("␛["));
    let bare = |text: &str| {
        let mut parts = text.split("␛[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, it| out + it.split_once('m').unwrap().1)
    };
    assert_eq!(bare(&shown(&always)), shown(&diff));
}

/// The names in quotes, and which lines have an arrow: a reader of Graphviz's language in small.
#[test]
fn the_graph_is_what_graphviz_reads() {
    let text = tilewright(folder().path(), &["show", "a.ron", "--emit", "deps"]);
    let text = text.strip_prefix("--- stdout\n").unwrap().strip_suffix("\n--- exit code 0").unwrap();
    assert!(text.starts_with("digraph \"matmul\" {\n") && text.ends_with('}'));
    let first = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    let lines: Vec<_> = text.lines().filter(|it| it.starts_with("  \"")).collect();
    let nodes: BTreeSet<_> = lines.iter().filter(|it| !it.contains("->")).map(|it| first(it)).collect();
    assert_eq!(nodes.iter().map(String::as_str).collect::<Vec<_>>(), ["A_shared", "C", "C_init"]);
    for line in lines.iter().filter(|it| it.contains("->")) {
        let (from, to) = line.split_once(" -> ").unwrap();
        assert!(nodes.contains(&first(from)) && nodes.contains(&first(to)), "{line}");
        assert!(line.ends_with("];") && line.matches('"').count() % 2 == 0, "{line}");
    }
}

#[test]
fn refusals() {
    let folder = folder();
    fs::write(folder.path().join("mine.html"), "<p>mine").unwrap();
    let out = told(
        &folder,
        &[
            &["show", "a.ron", "--step", "17"],
            &["show", "a.ron", "--step", "0", "--emit", "diff"],
            &["show", "a.ron", "--html", "mine.html"],
            &["show", "a.ron", "--emit", "sass"],
            &["show", "cpu.ron", "--emit", "pipeline", "--svg", "x.svg"],
            &["show", "mine.tw", "--param", "n=4"],
            &["show", "mine.tw", "--emit", "resources"],
            &["show", "mine.tw", "--emit", "ir", "--dim", "m=4"],
            &["show", "kernel.tw", "--emit", "cuda"],
            &["show", "kernel.tw", "--html", "kernel.html"],
            &["show", "kernel.tw", "--until", "1"],
            &["show", "kernel.tw", "--param", "n=4"],
            &["show", "a.ron", "--until", "99"],
            &["show", "a.ron", "--until", "-1"],
            &["show", "nothing.tw"],
            &["show", "wrong.ron", "--html", "wrong.html", "--json"],
        ],
    );
    if nvrtc::find().is_ok() {
        let environment = [("TILEWRIGHT_NVDISASM", "no-such-folder/nvdisasm")];
        let missing = run(folder.path(), &["show", "a.ron", "--emit", "sass"], &environment);
        assert!(missing.contains("error[TW3001]") && missing.contains("TILEWRIGHT_NVDISASM"), "{missing}");
    }
    insta::assert_snapshot!(out);
    assert_eq!(fs::read_to_string(folder.path().join("mine.html")).unwrap(), "<p>mine");
    assert!(!folder.path().join("kernel.html").exists());
}

/// What is between some marks of a page, as it stands there.
fn between<'a>(page: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    page.split(start).skip(1).map(|it| it.split(end).next().unwrap()).collect()
}

/// What a page has in its body, without drawings, a line for each tag that begins a block.
fn body(page: &str) -> String {
    let mut rest = &page[page.find("<body>").unwrap()..];
    let mut out = String::new();
    while let Some(start) = rest.find("<svg") {
        out += &rest[..start];
        out += "[drawing]";
        rest = &rest[rest.find("</svg>").unwrap() + "</svg>".len()..];
    }
    (out + rest)
        .replace("<span class=\"same\"", "\n<span class=\"same\"")
        .replace("<span class=\"add\"", "\n<span class=\"add\"")
}

/// Without compilers, so that a page is the same on every machine.
const NO_COMPILERS: &[(&str, &str)] =
    &[("TILEWRIGHT_NVRTC_DIR", "no-such-folder"), ("CC", "no-such-compiler")];

/// The pages stay in the target folder after the tests, to be looked at.
fn page(name: &str, arguments: &[&str], environment: &[(&str, &str)], expected: &str) -> String {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("show");
    fs::create_dir_all(&kept).unwrap();
    let file = kept.join(name);
    let _ = fs::remove_file(&file);
    let folder = folder();
    let write = |out: &str| {
        let all = [&["show"], arguments, &["--html", out]].concat();
        let printed = run(folder.path(), &all, environment);
        assert!(printed.contains(expected), "{printed}");
        fs::read_to_string(folder.path().join(out)).unwrap()
    };
    let text = write("page.html");
    // The same again, over the first, which is ours: not a byte is another.
    assert_eq!(write("page.html"), text);
    fs::write(file, &text).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    let own = concat!("<script>\n", include_str!("../../src/command/show/html/links.js"), "</script>\n");
    let others = text.replace("http://www.w3.org/2000/svg", "").replacen(own, "", 1);
    for hole in ["<script", "http:", "https:", "javascript", "url(", "@import", "fetch(", "onclick"] {
        assert!(!others.contains(hole), "{hole}");
    }
    assert!(text.contains(own) && text.contains("default-src 'none'"));
    let hash = text.split("script-src 'sha256-").nth(1).unwrap();
    assert_eq!(hash.find("=' ").or(hash.find("='")).unwrap(), 43);
    others
}

#[test]
fn a_schedule_as_a_page() {
    let text = page("gpu.html", &["a.ron"], NO_COMPILERS, "wrote page.html: 16 steps");
    assert!(text.contains("A tile through shared memory &amp; registers."));
    assert_eq!(text.matches("<section class=\"step\"").count(), 16);
    // Nothing is drawn twice: the timeline comes with the last step and again with its costs, and the graph once.
    assert_eq!(text.matches("<svg").count(), 3);
    // Each step says which lines are its own, and leads to lines that are there.
    let own = between(&text, "<p class=\"own\">", "</p>");
    assert_eq!((own.len(), text.matches("<button").count()), (16, 32));
    for target in own.iter().flat_map(|it| between(it, "<a href=\"#", "\"")) {
        assert!(text.contains(&format!("id=\"{target}\"")), "{target}");
    }
    // What a step that binds a loop marks: the loop, how the kernel is launched, and the line that reads the axis.
    assert!(
        own[4].contains(">1 line of the program</a>, <a href=\"#k6\">1 line of the kernels</a>"),
        "{}",
        own[4]
    );
    insta::assert_snapshot!(
        "page_for_a_cpu",
        body(&page("cpu.html", &["cpu.ron"], NO_COMPILERS, "wrote page.html: 2 steps"))
    );
}

#[test]
fn a_refused_step_ends_the_page() {
    let text = page("wrong.html", &["wrong.ron"], NO_COMPILERS, "--- exit code 1");
    assert_eq!(text.matches("<section class=\"step\"").count(), 15);
    insta::assert_snapshot!(body(&text[..text.len()]).split("id=\"refusal\"").nth(1).unwrap());
}

/// Words of a script are no markup, wherever they stand.
#[test]
fn a_hostile_script_makes_a_harmless_page() {
    let folder = folder();
    let hostile = SCRIPT
        .replace("A tile through", "</p></script><script>alert(1)</script><img src=x onerror=alert(1)>");
    fs::write(folder.path().join("<b>\".ron"), hostile).unwrap();
    let printed = tilewright(folder.path(), &["show", "<b>\".ron", "--html", "page.html"]);
    assert!(printed.contains("wrote page.html"), "{printed}");
    let text = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!((text.matches("<script").count(), text.matches("</script").count()), (1, 1));
    assert!(!text.contains("<img") && !text.contains("<b>&quot;"));
}

/// The C compiler is one that Rust links with, so that it is there.
#[test]
fn machine_code_of_a_cpu_has_its_source_lines() {
    let page = page("assembly.html", &["cpu.ron"], &[], "wrote page.html: 2 steps");
    assert!(page.contains("<td>control</td>") && page.contains("<td>floating point</td>"), "{page}");
    let own = between(&page, "<p class=\"own\">", "</p>");
    assert!(own.iter().all(|it| it.contains(" instruction")), "{own:?}");
}

#[test]
fn machine_code_has_its_source_lines() {
    if nvrtc::find().is_err() || disasm::find().is_err() {
        eprintln!("skipped: there is no NVRTC or no disassembler");
        return;
    }
    let folder = folder();
    let text = run(folder.path(), &["show", "a.ron", "--emit", "sass"], &[]);
    assert!(text.contains("\nmatmul:\n") && text.contains(" EXIT;") && text.contains("FFMA"), "{text}");
    assert!(text.ends_with("--- exit code 0"), "{text}");
    if disasm::find().unwrap().tool == disasm::Tool::Nvdisasm {
        assert!(text.contains("__syncthreads();\n") && text.contains("A_shared["), "{text}");
        let page = page("sass.html", &["a.ron"], &[], "wrote page.html: 16 steps");
        let groups = page.matches("<details class=\"m\"").count();
        assert!(groups > 5 && groups >= page.matches("<a class=\"ct\"").count(), "{groups}");
        assert!(page.contains("<td>floating point</td>"), "{page}");
    }
}
