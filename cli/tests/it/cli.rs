//! What the tool prints, as the user sees it.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use crate::common::{run, tilewright};

const SCRIPT: &str = r#"schedule(
    about: "Rows by the threads of the GPU.",
    workload: "matmul", target: "cuda",
    params: {"m": 64, "n": 48, "k": 40, "dtype": "f32"},
    knobs: {"tx": [16, 32]},
    steps: [
        split(loop: "i", into: {"by": None, "ty": 8}),
        split(loop: "j", into: {"bx": None, "tx": "tx"}),
        reorder(order: ["by", "bx", "ty", "tx", "k"]),
        bind(loop: "by", axis: "blockIdx.y"),
        bind(loop: "bx", axis: "blockIdx.x"),
        bind(loop: "ty", axis: "threadIdx.y"),
        bind(loop: "tx", axis: "threadIdx.x"),
    ],
)
"#;

/// A folder with that script as `a.ron`, and with changed copies of it.
fn folder(copies: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ron"), SCRIPT).unwrap();
    for (name, from, to) in copies {
        assert!(SCRIPT.contains(from));
        fs::write(folder.path().join(name), SCRIPT.replacen(from, to, 1)).unwrap();
    }
    folder
}

#[test]
fn check_emits_and_an_architecture_that_is_not_is_no_compiler_error() {
    let folder = folder(&[]);
    let script = r#"schedule(workload: "matmul", params: {"m": 512, "n": 512, "k": 16},
    steps: [cache_write(block: "C", scope: "local")])"#;
    fs::write(folder.path().join("stack.ron"), script).unwrap();
    let printed = tilewright(folder.path(), &["check", "stack.ron"]);
    assert!(printed.contains("error[TW2101]") && printed.ends_with("exit code 1"), "{printed}");
    let printed = tilewright(folder.path(), &["show", "a.ron", "--emit", "ptx", "--arch", "sm_80a"]);
    assert!(printed.contains("error[TW3006]: there is no sm_80a"), "{printed}");
}

#[test]
fn tensors_that_no_memory_holds_are_refused() {
    let folder = folder(&[]);
    let script = r#"schedule(workload: "elementwise", params: {"n": "n"}, steps: [])"#;
    fs::write(folder.path().join("long.ron"), script).unwrap();
    let printed = tilewright(folder.path(), &["run", "long.ron", "--dim", "n=500000000000"]);
    assert!(printed.contains("error[TW3103]: elementwise: inputs and outputs take "), "{printed}");
    assert!(printed.ends_with("exit code 1"), "{printed}");
}

#[test]
fn wrong_files_names_and_texts() {
    let folder = folder(&[
        ("typo.ron", "\"matmul\"", "\"matmull\""),
        ("unknown.ron", "\"matmul\"", "\"fft\""),
        ("missing.ron", "\"matmul\"", "\"./mine.ron\""),
        ("param.ron", "\"dtype\": \"f32\"", "\"dtyp\": \"f32\""),
        ("value.ron", "\"dtype\": \"f32\"", "\"dtype\": \"f33\""),
        ("broken.ron", "into: {\"by\"", "into {\"by\""),
        ("broken_workload.ron", "\"matmul\"", "\"./broken_workload_file.ron\""),
        ("program.ron", "\"matmul\"", "\"./program.tw\""),
        ("large.ron", "\"m\": 64, \"n\": 48", "\"m\": 1048576, \"n\": 1048576"),
    ]);
    let shifted = r#"workload(name: "shifted", about: "x", params: {"n": size()}, axes: {"i": "n"},
    tensors: {"A": input(dtype: "f32", shape: ["n"]), "B": output(dtype: "f32", shape: ["n"])},
    stages: ["B[i] = A[i + 1]"])"#;
    fs::write(folder.path().join("shifted_workload.ron"), shifted).unwrap();
    let script = r#"schedule(workload: "shifted_workload.ron", params: {"n": "n"}, steps: [])"#;
    fs::write(folder.path().join("shifted.ron"), script).unwrap();
    let meant = "func meant\n  in A: f32[4]\n  out B: f32[4]\n\n  for i in 0..4\n    block B(vi: 4 = ii)\n      B[vi] = a[vj]\n";
    fs::write(folder.path().join("meant.tw"), meant).unwrap();
    fs::write(folder.path().join("meant.ron"), "schedule(workload: \"meant.tw\", steps: [])").unwrap();
    let workload = "workload(name: \"mine\", about: \"x\", axes: {}, tensors: {}, stages: [\"C[i] =\"])";
    fs::write(folder.path().join("broken_workload_file.ron"), workload).unwrap();
    fs::write(folder.path().join("program.tw"), "func mine\n  in A: f31[4]\n").unwrap();
    fs::write(folder.path().join("text.ron"), "schedule(workload: \"program.tw\", steps: [])").unwrap();
    let scripts = [
        "nothing.ron",
        ".",
        "typo.ron",
        "unknown.ron",
        "missing.ron",
        "param.ron",
        "value.ron",
        "broken.ron",
        "broken_workload.ron",
        "program.ron",
        "text.ron",
        "large.ron",
        "shifted.ron",
        "meant.ron",
    ];
    let told =
        scripts.map(|it| format!("$ tilewright check {it}\n{}\n", tilewright(folder.path(), &["check", it])));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn wrong_requests() {
    let folder = folder(&[]);
    let requests: &[&[&str]] = &[
        &["explain", "splt"],
        &["explain", "ldmatrix_x3"],
        &["tutorial", "matmul-cp"],
        &["tutorial", "nothing-like-it"],
        &["tutorial", "."],
        &["check", "a.ron", "--param", "tx=wide"],
        &["check", "a.ron", "--param", "m=0"],
        &["check", "a.ron", "--param", "size=9"],
        &["check", "a.ron", "--target", "cpu"],
        &["show", "a.ron", "--emit", "c"],
        &["--json", "check", "a.ron", "--target", "cpu"],
    ];
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

#[test]
fn missing_compilers_are_told() {
    let folder = folder(&[("cpu.ron", SCRIPT, "schedule(workload: \"matmul\", target: \"cpu\", steps: [])")]);
    let ptx = tilewright(folder.path(), &["show", "a.ron", "--emit", "ptx"]);
    let resources = tilewright(folder.path(), &["show", "a.ron", "--emit", "resources"]);
    let run_cpu = run(folder.path(), &["run", "cpu.ron"], &[("CC", "no-such-compiler")]);
    insta::assert_snapshot!([ptx, resources, run_cpu].join("\n\n"));
}

#[test]
fn a_missing_gpu_is_told() {
    let folder = folder(&[]);
    let told = run(folder.path(), &["run", "a.ron"], &[]);
    if told.ends_with("exit code 0") {
        eprintln!("skipped: there is a GPU");
        return;
    }
    assert!(
        told.contains("error[TW3001]: ") && told.contains("help: ") && told.ends_with("exit code 2"),
        "{told}"
    );
}

#[test]
fn intrinsics_are_drawn() {
    let folder = folder(&[]);
    let names = ["mma_m16n8k16_f16_f16", "ldmatrix_x2", "ldmatrix_x2_trans", "lanes_k16n8"];
    insta::assert_snapshot!(names.map(|it| tilewright(folder.path(), &["explain", it])).join("\n"));
}

#[test]
fn a_program_is_shown_in_every_form() {
    let folder = folder(&[]);
    let forms: &[&[&str]] = &[
        &["check", "a.ron"],
        &["show", "a.ron", "--until", "3"],
        &["show", "a.ron", "--emit", "diff", "--until", "2"],
        &["show", "a.ron", "--emit", "kernel", "--param", "tx=32"],
        &["--json", "check", "a.ron"],
        &["--json", "explain", "reorder"],
    ];
    let told =
        forms.iter().map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
    for form in ["cuda", "kernel", "ir"] {
        let told = tilewright(folder.path(), &["show", "a.ron", "--emit", form]);
        assert!(told.contains("blockIdx") && told.ends_with("exit code 0"), "{told}");
    }
}

/// A pipeline of two slots; `@` stands where its barrier should be.
const KERNEL: &str = "module m
  in A: f32[384]
  out B: f32[320]

  kernel k<<<threadIdx.x: 64>>>(A, mut B)
    alloc S: f32[128] @shared
    S[threadIdx_x] <- A[threadIdx_x]
    commit
    for i in 0..5
      wait 0
      @
      S[(i + 1) mod 2*64 + threadIdx_x] <- A[i*64 + threadIdx_x + 64]
      commit
      B[i*64 + threadIdx_x] = S[i mod 2*64 + 63 - threadIdx_x]
    wait 0
";

#[test]
fn the_virtual_gpu_tells_what_is_wrong() {
    let folder = folder(&[]);
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("right.tw", KERNEL.replace("      @\n", "      barrier\n"));
    write("race.tw", KERNEL.replace("      @\n", ""));
    write("bad.tw", KERNEL.replace("      @\n", "      barier\n"));
    write("name.tw", KERNEL.replace("      @\n", "").replace("S[i mod 2", "T[i mod 2"));
    let requests: &[&[&str]] = &[
        &["run", "a.ron", "--target", "vgpu"],
        &["run", "a.ron", "--target", "vgpu:sm_90a", "--param", "tx=32"],
        &["run", "right.tw", "--target", "vgpu"],
        &["run", "race.tw", "--target", "vgpu"],
        &["--json", "run", "race.tw", "--target", "vgpu"],
        &["run", "bad.tw", "--target", "vgpu"],
        &["run", "name.tw", "--target", "vgpu"],
        &["run", "right.tw"],
        &["run", "right.tw", "--target", "gpu"],
        &["run", "a.ron", "--target", "vgpu", "--log", "x.jsonl"],
    ];
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// A tile goes through shared memory and comes back reversed.
const REVERSED: &str = "module m(n)
  in A: f32[n*32]
  out B: f32[n*32]

  kernel k<<<blockIdx.x: n, threadIdx.x: 32>>>(A, mut B)
    alloc S: f32[32] @shared
    S[threadIdx_x] = A[blockIdx_x*32 + threadIdx_x]
    barrier
    B[blockIdx_x*32 + threadIdx_x] = S[31 - threadIdx_x] * 2.0f32
";

/// The program that it came from.
const REFERENCE: &str = "func m(n)
  in A: f32[n, 32]
  out B: f32[n, 32]

  for i in 0..n
    for j in 0..32
      block B(vi: n = i, vj: 32 = j)
        B[vi, vj] = A[vi, 31 - vj] * 2.0f32
";

/// No finding tells a wrong number: only the reference does. What does not fit it is told before anything runs.
#[test]
fn a_kernel_is_verified_against_its_reference() {
    let folder = folder(&[]);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("reference.tw", REFERENCE);
    write("k.tw", REVERSED);
    write("value.tw", &REVERSED.replace("31 - threadIdx_x", "30 - threadIdx_x floordiv 2*2"));
    write("name.tw", &REVERSED.replace(" A", " X").replace("(A", "(X"));
    write("dtype.tw", &REVERSED.replace("f32[", "f16[").replace("2.0f32", "2.0f16"));
    write("size.tw", &REVERSED.replace("n*32]", "n*64]"));
    write("more.tw", &REVERSED.replace("  out", "  out C: f32[n]\n  out"));
    write(
        "less.tw",
        &REVERSED
            .replace("  out B: f32[n*32]\n", "")
            .replace("mut B", "")
            .replace("(A, )", "(A)")
            .replace("    B[blockIdx_x*32 + threadIdx_x] =", "    S[threadIdx_x] ="),
    );
    let told = ["k", "value", "name", "dtype", "size", "more", "less"].map(|it| {
        let file = format!("{it}.tw");
        let request = ["run", &file, "--target", "vgpu", "--dim", "n=3", "--reference", "reference.tw"];
        format!("$ tilewright {}\n{}\n", request.join(" "), tilewright(folder.path(), &request))
    });
    let others: [&[&str]; 3] = [
        &["run", "k.tw", "--target", "vgpu", "--dim", "n=3", "--reference", "a.ron"],
        &["run", "a.ron", "--target", "vgpu", "--reference", "reference.tw"],
        &["run", "k.tw", "--target", "vgpu", "--dim", "n=3", "--param", "m=5"],
    ];
    let others =
        others.map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.into_iter().chain(others).collect::<Vec<_>>().join("\n"));
}

/// A ladder whose last rung changes nothing that reaches the source.
fn ladder(folder: &Path) {
    let script = |steps: &str| {
        format!(
            "schedule(about: \"Why.\", workload: \"matmul\", target: \"cpu\", \
             params: {{\"m\": 32, \"n\": 32, \"k\": 32}}, steps: [{steps}])"
        )
    };
    let order = "reorder(order: [\"i\", \"k\", \"j\"])";
    let note = "annotate(loop: \"i\", key: \"note\", value: \"x\")";
    fs::write(folder.join("01_naive.ron"), script("")).unwrap();
    fs::write(folder.join("02_loop_order.ron"), script(order)).unwrap();
    fs::write(folder.join("03_a_note.ron"), script(&format!("{order}, {note}"))).unwrap();
}

#[test]
fn a_ladder_is_climbed() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let told = tilewright(folder.path(), &["tutorial", ".", "--size", "24,17x33x9", "--log", "log.jsonl"]);
    for words in [
        "2. loop order",
        "3. a note  (no effect)",
        "+ reorder",
        "✓ verified",
        "one thread against one thread",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert!(told.ends_with("exit code 0") && !told.contains('✗'), "{told}");
    let log = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let records = log.lines().map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
    let records: Vec<_> = records.collect();
    assert_eq!(records.len(), 6);
    for record in &records {
        assert!(record["gflops"].as_f64().unwrap() > 0.0 && record["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!(record["verified_after"]["outputs"][0]["wrong"], 0);
        assert_eq!(record["source_sha256"].as_str().unwrap().len(), 64);
    }
    assert_eq!(records[1]["source_sha256"], records[2]["source_sha256"]);
    assert_ne!(records[0]["ir_sha256"], records[1]["ir_sha256"]);
}

#[test]
fn the_tutorial_keeps_records_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let climb =
        |state: &str| run(folder.path(), &["tutorial", ".", "--until", "1"], &[("XDG_STATE_HOME", state)]);
    let told = climb("state");
    assert!(told.contains("1 record was added to state/tilewright/tutorial.jsonl"), "{told}");
    let log = fs::read_to_string(folder.path().join("state/tilewright/tutorial.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 1);

    // A place that cannot be written is told, and stops nothing.
    let told = climb("01_naive.ron");
    assert!(told.contains("no records were kept: 01_naive.ron/tilewright/tutorial.jsonl"), "{told}");
    assert!(told.ends_with("exit code 0"), "{told}");
}

#[test]
fn a_run_is_printed_as_json() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let told =
        tilewright(folder.path(), &["--json", "run", "02_loop_order.ron", "--threads", "1", "--seed", "7"]);
    let line = told.lines().nth(1).unwrap();
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (value["ok"].as_bool(), value["record"]["environment"]["seed"].as_u64()),
        (Some(true), Some(7))
    );
    assert_eq!(value["record"]["environment"]["regime"], "cool");
}
