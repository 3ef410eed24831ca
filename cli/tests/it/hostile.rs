//! Scripts that want to do harm: each is refused with a code, soon, in little memory, and without passing on what would
//! steer a terminal. The table is the documentation.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long a refusal may take. On an idle machine it is a hundredth of that.
const LIMIT: Duration = Duration::from_secs(10);
/// The address space of a process in KiB: what a Rust program with its threads reserves, and some hundred MiB.
const MEMORY_KIB: u64 = 2 << 20;

fn script(workload: &str, params: &str, more: &str, steps: &str) -> String {
    format!(
        "schedule(workload: \"{workload}\", target: \"cuda:sm_80\", params: {{{params}}}, {more}steps: [{steps}])"
    )
}

fn steps(text: &str) -> String {
    script("matmul", SIZES, "", text)
}

const SIZES: &str = "\"m\": 64, \"n\": 64, \"k\": 64";

/// Texts of scripts, each with what it tries.
fn texts() -> Vec<(&'static str, Vec<u8>)> {
    [depth_and_length(), numbers(), names(), characters(), structure(), spaces()].concat()
}

fn texts_of(all: Vec<(&'static str, String)>) -> Vec<(&'static str, Vec<u8>)> {
    all.into_iter().map(|(title, text)| (title, text.into_bytes())).collect()
}

fn depth_and_length() -> Vec<(&'static str, Vec<u8>)> {
    let value = |expr: &str| {
        script("matmul", SIZES, "", &format!("split(loop: \"i\", into: {{\"a\": None, \"b\": \"{expr}\"}})"))
    };
    texts_of(vec![
        ("brackets, 100,000 deep", steps(&"[".repeat(100_000))),
        ("parentheses that never close", "(".repeat(500_000)),
        ("options in options", steps(&format!("{}8{}", "Some(".repeat(50_000), ")".repeat(50_000)))),
        ("comments in comments", format!("{}{}", "/*".repeat(50_000), "*/".repeat(50_000))),
        (
            "chooses in chooses",
            steps(&format!("{}{}", "choose(knob: \"a\", one_of: [[".repeat(5000), "]])".repeat(5000))),
        ),
        ("an expression, 100,000 deep", value(&"(".repeat(100_000))),
        ("an expression with 100,000 signs", value(&format!("{}8", "-".repeat(100_000)))),
        ("an expression with 100,000 nots", value(&format!("{}8", "!".repeat(100_000)))),
        ("a text of 4 MiB", steps(&" ".repeat(4 << 20))),
        (
            "a step, 20,000 times",
            steps(&"reorder(order: [\"j\", \"i\"]), split(loop: \"nothing\", into: {}),".repeat(9000)),
        ),
        ("a name of 500,000 letters", steps(&format!("unroll(loop: \"{}\")", "a".repeat(500_000)))),
        ("an order of 50,000 loops", steps(&format!("reorder(order: [{}])", "\"i\",".repeat(50_000)))),
    ])
}

fn numbers() -> Vec<(&'static str, Vec<u8>)> {
    let sized = |m: &str| {
        script("matmul", &format!("\"m\": {m}, \"n\": 64, \"k\": 64"), "", "unroll(loop: \"nothing\")")
    };
    let factor = |it: &str| steps(&format!("split(loop: \"i\", into: {{\"a\": None, \"b\": {it}}})"));
    texts_of(vec![
        ("a size of 0", sized("0")),
        ("a negative size", sized("-9223372036854775808")),
        ("the largest size", sized("9223372036854775807")),
        ("a size beyond 64 bits", sized("99999999999999999999999999")),
        (
            "sizes whose product overflows",
            script(
                "matmul",
                "\"m\": 4611686018427387904, \"n\": 4611686018427387904, \"k\": 4611686018427387904",
                "",
                "unroll(loop: \"nothing\")",
            ),
        ),
        ("a size that is no number", sized("NaN")),
        ("a factor of 0", factor("0")),
        ("a negative factor", factor("-1")),
        ("the least factor", factor("-9223372036854775808")),
        ("a factor beyond 64 bits", factor("18446744073709551616")),
        ("a division by zero", factor("\"8 / (4 - 4)\"")),
        ("a remainder that overflows", factor("\"(0 - 9223372036854775807 - 1) % (0 - 1)\"")),
        ("a product that overflows", factor("\"9223372036854775807 * 9223372036854775807\"")),
        (
            "two factors that overflow",
            steps(
                "split(loop: \"i\", into: {\"a\": None, \"b\": 4611686018427387904, \"c\": 4611686018427387904})",
            ),
        ),
        ("a padding beyond memory", steps("pad_einsum(block: \"C\", padding: {\"i\": 9223372036854775807})")),
        (
            "a stage of a pipeline",
            steps("software_pipeline_stage(loop: \"k\", stages: {\"C\": 9223372036854775807})"),
        ),
    ])
}

fn names() -> Vec<(&'static str, Vec<u8>)> {
    let split = |name: &str| steps(&format!("split(loop: \"i\", into: {{\"{name}\": None, \"b\": 8}})"));
    texts_of(vec![
        ("a name that is CUDA code", split("i; __global__ void f() {} int x")),
        ("a name that ends a comment", split("*/ #include </etc/passwd> /*")),
        ("a name with a line end", split("i\\n#include </etc/passwd>")),
        ("a name with a quote", split("i\\\"; system(\\\"true\\\"); \\\"")),
        ("a name that is a path", split("../../../etc/passwd")),
        ("a name that is a keyword", split("__launch_bounds__(1)")),
        ("a name of nothing", split("")),
        ("a name of blanks", split("   ")),
        ("a name with an escape sequence", split("\\u{1b}[2J\\u{1b}]0;owned\\u{7}")),
        ("a name in another alphabet", split("іо")),
        ("a name that turns the text around", split("i\\u{202e}o")),
        ("a name with a zero", split("i\\u{0}o")),
        ("a workload that is a command", script("matmul; rm -rf /", "", "", "")),
        (
            "a target that is a flag",
            "schedule(workload: \"matmul\", target: \"cuda:sm_80 -I/etc\", steps: [])".to_owned(),
        ),
        (
            "a data type that is code",
            script("matmul", "\"m\": 8, \"n\": 8, \"k\": 8, \"dtype\": \"float x; int\"", "", ""),
        ),
        (
            "pipelines by a name that is code",
            steps("annotate(loop: \"i\", key: \"pragma unroll\\n#error\", value: \"x\")"),
        ),
    ])
}

fn characters() -> Vec<(&'static str, Vec<u8>)> {
    let whole = steps("unroll(loop: \"nothing\")");
    let changed = |from: &str, to: &[u8]| {
        let at = whole.find(from).unwrap();
        [&whole.as_bytes()[..at], to, &whole.as_bytes()[at + from.len()..]].concat()
    };
    vec![
        ("nothing at all", vec![]),
        ("zeros", vec![0; 4096]),
        ("bytes that are no UTF-8", changed("matmul", b"mat\xff\xfemul")),
        ("a byte order mark", [b"\xef\xbb\xbf".as_slice(), whole.as_bytes()].concat()),
        ("UTF-16", whole.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("line ends of another system, and an error behind them", whole.replace(' ', "\r\n").into_bytes()),
        ("an escape sequence in the text", changed("matmul", b"mat\x1b[2Jmul")),
        ("an escape sequence in a comment", changed("steps", b"/* \x1b]0;owned\x07 */ stepz")),
        ("look-alikes of letters", changed("matmul", "mаtmul".as_bytes())),
        ("a text that turns itself around", changed("matmul", "mat\u{202e}lum".as_bytes())),
        ("a half of a string", whole.as_bytes()[..whole.find("mul").unwrap()].to_vec()),
    ]
}

fn structure() -> Vec<(&'static str, Vec<u8>)> {
    texts_of(vec![
        ("a key that stands twice", script("matmul", "\"m\": 64, \"m\": 128, \"n\": 64, \"k\": 64", "", "")),
        ("a field that stands twice", steps("unroll(loop: \"i\", loop: \"j\")")),
        (
            "a field of another program",
            "schedule(workload: \"matmul\", exec: \"true\", steps: [])".to_owned(),
        ),
        ("another form", "run(command: \"true\")".to_owned()),
        ("JSON", "{\"workload\": \"matmul\", \"steps\": []}".to_owned()),
        ("an include", "#include \"/etc/passwd\"".to_owned()),
        (
            "an extension of RON",
            "#![enable(everything)] schedule(workload: \"matmul\", steps: [])".to_owned(),
        ),
        ("a loop that is made of itself", steps("fuse(loops: [\"i\", \"i\"], into: \"i\")")),
        ("a primitive that there is not", steps("exec(\"true\")")),
        (
            "a hundred unrolled factors",
            steps(&"split(loop: \"i\", into: {\"i\": None, \"x\": 2}),".repeat(100)),
        ),
    ])
}

fn spaces() -> Vec<(&'static str, Vec<u8>)> {
    let spaced =
        |more: &str| script("matmul", SIZES, more, "split(loop: \"i\", into: {\"a\": None, \"b\": \"x\"})");
    // Each value is twice the one before.
    let doubled: Vec<String> = (1..64).map(|n| format!("\"v{n}\": \"v{} + v{}\"", n - 1, n - 1)).collect();
    let laughs = format!(
        "knobs: {{\"x\": [8]}}, values: {{\"v0\": \"x\", {}}}, constraints: [\"v63 > 0\"], ",
        doubled.join(", ")
    );
    texts_of(vec![
        ("values that are made of values, a billion times", spaced(&laughs)),
        ("a value that is made of itself", spaced("knobs: {\"x\": [8]}, values: {\"v\": \"v + 1\"}, ")),
        (
            "two values that are made of each other",
            spaced("knobs: {\"x\": [8]}, values: {\"v\": \"w\", \"w\": \"v\"}, "),
        ),
        (
            "powers of two for ever",
            spaced(
                "knobs: {\"x\": powers_of_two(from: 1, to: 9223372036854775807)}, constraints: [\"y > 0\"], ",
            ),
        ),
        ("powers from nothing", spaced("knobs: {\"x\": powers_of_two(from: 0, to: 8)}, ")),
        (
            "a tile of many parts",
            spaced("knobs: {\"x\": perfect_tile(of: \"m\", parts: 1000000, innermost: 64)}, "),
        ),
        (
            "a tile of which nothing fits",
            spaced("knobs: {\"x\": perfect_tile(of: 2147483648, parts: 16, innermost: 0)}, "),
        ),
        ("a knob without choices", spaced("knobs: {\"x\": []}, ")),
        (
            "a thousand knobs",
            spaced(&format!(
                "knobs: {{{}}}, ",
                (0..1000).map(|n| format!("\"k{n}\": [1, 2]")).collect::<Vec<_>>().join(", ")
            )),
        ),
    ])
}

/// Puts a file of another sort at a path.
type MakeFile = fn(&Path);

/// Paths that are no scripts.
fn paths() -> Vec<(&'static str, MakeFile)> {
    vec![
        ("a folder", |it| fs::create_dir(it).unwrap()),
        ("a pipe that nobody writes to", fifo),
        ("a device that never ends", |it| symlink("/dev/zero", it).unwrap()),
        ("a device that waits", |it| symlink("/dev/tty", it).unwrap()),
        ("a link to itself", |it| symlink(it, it).unwrap()),
        ("a link to nothing", |it| symlink("nothing", it).unwrap()),
        ("a file of a terabyte", |it| fs::File::create(it).unwrap().set_len(1 << 40).unwrap()),
    ]
}

fn fifo(at: &Path) {
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

/// Workloads that are no files of workloads.
const WORKLOADS: [(&str, &str); 8] = [
    ("a file of the system", "../../../../../../../../etc/passwd"),
    ("a file of the system by its whole path", "/etc/passwd"),
    ("a device", "/dev/zero"),
    ("what the process has in its environment", "/proc/self/environ"),
    ("a link to a device with the right name", "./zero.ron"),
    ("a pipe with the right name", "./pipe.ron"),
    ("a folder with the right name", "./folder.ron"),
    ("the script itself", "./script.ron"),
];

/// What `check` says in a folder, with bounded memory and time.
fn check(folder: &Path, file: &str) -> Output {
    let line = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" check \"$1\"");
    let mut child = Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_tilewright"), file])
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + LIMIT;
    // What it says is bounded, too: more than a pipe holds would stop it, and that shows as time.
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// What is wrong with a refusal, if something is.
fn complaint(title: &str, out: &Output) -> Option<String> {
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let head: String = stderr.chars().take(300).collect();
    let steers = |it: char| it.is_control() && it != '\n' || ('\u{202a}'..='\u{202e}').contains(&it);
    let complain = |what: &str| Some(format!("{title}: {what}: {:?}: {head}", out.status));
    match out.status.code() {
        Some(1 | 2) if !stderr.contains("error[TW") => complain("no code"),
        Some(1 | 2) if stderr.contains(steers) || stdout.contains(steers) => {
            complain("it steers the terminal")
        }
        Some(1 | 2) if stderr.contains("root:") || stderr.contains("panicked") => {
            complain("it tells too much")
        }
        Some(1 | 2) => None,
        Some(_) | None => complain("not refused, or too late"),
    }
}

#[test]
fn hostile_scripts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut complaints = vec![];
    let all = texts();
    for (title, text) in &all {
        fs::write(folder.path().join("script.ron"), text).unwrap();
        complaints.extend(complaint(title, &check(folder.path(), "script.ron")));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(all.len() + WORKLOADS.len() + paths().len() >= 80);
}

#[test]
fn hostile_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut complaints = vec![];
    for (n, (title, make)) in paths().into_iter().enumerate() {
        let name = format!("path{n}.ron");
        make(&folder.path().join(&name));
        complaints.extend(complaint(title, &check(folder.path(), &name)));
    }
    symlink("/dev/zero", folder.path().join("zero.ron")).unwrap();
    fifo(&folder.path().join("pipe.ron"));
    fs::create_dir(folder.path().join("folder.ron")).unwrap();
    for (title, workload) in WORKLOADS {
        fs::write(folder.path().join("script.ron"), script(workload, "", "", "")).unwrap();
        complaints.extend(complaint(title, &check(folder.path(), "script.ron")));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_file_of_ones_own_is_a_workload() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("scripts");
    fs::create_dir(&inner).unwrap();
    let workload = workloads::find("matmul").unwrap();
    fs::write(folder.path().join("real.ron"), workload).unwrap();
    // A link to a regular file is a regular file.
    symlink("real.ron", folder.path().join("mine.ron")).unwrap();
    fs::write(inner.join("script.ron"), script("../mine.ron", SIZES, "", "").replace("cuda:sm_80", "cpu"))
        .unwrap();
    let out = check(folder.path(), "scripts/script.ron");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
