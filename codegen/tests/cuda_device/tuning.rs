//! What a tuner asks of a GPU: deadlines, hangs, the clock, the vendor's choices, programs that come and go.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    panic,
    process::{self, Command, Stdio},
    time::Instant,
};

use ir::DType;
use tilewright_codegen::device::{
    BufferId, CudaMachine, DeviceError, Gemm, Machine, Program, ProgramId, nvrtc,
};

use super::{
    PRODUCTS, SOURCE, arch, check_gemm, decode, download_f32, launch, machine, square, upload, upload_f32,
};

/// Saxpy over so many elements, loaded, with its two buffers.
fn saxpy(machine: &mut CudaMachine, count: usize) -> (ProgramId, [BufferId; 2]) {
    let compiled = nvrtc::compile(SOURCE, "source.cu", &arch(machine), &[]).expect("the source is right");
    let blocks = u32::try_from(count.div_ceil(256)).expect("a small number");
    let length = i64::try_from(count).expect("a small number");
    let launches = vec![launch("saxpy", blocks, 256, &[0, 1], &[length])];
    let program = Program { binary: compiled.cubin, launches, buffers: vec![count * 4; 2], zeroed: vec![] };
    let loaded = machine.load(&program).expect("the program is right");
    let buffers = [0.5, 1.0].map(|it| upload_f32(machine, &vec![it; count]));
    (loaded, buffers)
}

fn median(mut it: Vec<f64>) -> f64 {
    it.sort_by(f64::total_cmp);
    it[it.len() / 2]
}

#[test]
fn a_deadline_changes_no_time() {
    let Some(mut machine) = machine("a_deadline_changes_no_time") else { return };
    for (count, calls) in [(1 << 24, 1), (1 << 24, 20), (256, 2000)] {
        let (program, buffers) = saxpy(&mut machine, count);
        machine.run(program, &buffers, calls).unwrap();
        let mut times = [vec![], vec![]];
        for _ in 0..15 {
            for (limit, times) in [None, Some(5.0)].into_iter().zip(&mut times) {
                machine.set_deadline(limit);
                times.push(machine.run(program, &buffers, calls).unwrap() / f64::from(calls) * 1e6);
            }
        }
        let [free, limited] = times.map(median);
        say!("saxpy of {count}, {calls} calls: {free:.2} us without a deadline, {limited:.2} us with");
        assert!((0.7..1.4).contains(&(limited / free)), "{free} {limited}");
        machine.set_deadline(None);
        machine.unload(program);
        for it in buffers {
            machine.free(it);
        }
    }
}

#[test]
fn a_hang_ends_at_the_deadline_and_nothing_waits_after_it() {
    let test = "a_hang_ends_at_the_deadline_and_nothing_waits_after_it";
    if machine(test).is_none() {
        return;
    }
    for calls in ["1", "5000"] {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tuning::the_process_that_hangs", "--nocapture", "--test-threads=1"])
            .env("TILEWRIGHT_TEST_HANG", calls)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // The child waits for its end after this line: ending by itself, it would wait for the kernel.
        let mut told = vec![];
        let ended = lines.inspect(|it| told.push(it.clone())).any(|it| it.contains("all is refused"));
        child.kill().unwrap();
        child.wait().unwrap();
        say!("{calls} calls that hang: {told:#?}");
        assert!(ended, "the child failed");
    }
    // The device is free again.
    let mut machine = machine(test).unwrap();
    let (program, buffers) = saxpy(&mut machine, 1000);
    machine.set_deadline(Some(5.0));
    machine.run(program, &buffers, 1).unwrap();
    assert_eq!(download_f32(&mut machine, buffers[1], 1), [2.0]);
}

/// Is run by the test above in a process of its own, for what hangs ends with its process only.
#[test]
fn the_process_that_hangs() {
    let Some(calls) = env::var_os("TILEWRIGHT_TEST_HANG") else { return };
    // A failure here must not end in waiting for the kernel either.
    panic::set_hook(Box::new(|it| {
        println!("{it}");
        process::abort();
    }));
    let calls = calls.to_str().unwrap().parse().unwrap();
    let mut machine = machine("the_process_that_hangs").expect("the parent has a GPU");
    let source = "extern \"C\" __global__ void forever(volatile int *x) { while (x[0] == 0) {} }";
    let compiled = nvrtc::compile(source, "forever.cu", &arch(&machine), &[]).unwrap();
    let launches = vec![launch("forever", 1, 32, &[0], &[])];
    let program = Program { binary: compiled.cubin, launches, buffers: vec![4], zeroed: vec![] };
    let loaded = machine.load(&program).unwrap();
    let x = upload(&mut machine, &[0; 4]);
    machine.set_deadline(Some(0.5));

    let begin = Instant::now();
    let err = machine.run(loaded, &[x], calls).unwrap_err();
    let seconds = begin.elapsed().as_secs_f64();
    println!("after {seconds:.3} s: {err}");
    assert!(matches!(&err, DeviceError::Hang { what, .. } if what == "`forever`"), "{err:?}");
    assert!((0.5..1.0).contains(&seconds), "{seconds}");

    let begin = Instant::now();
    assert_eq!(machine.run(loaded, &[x], 1), Err(err.clone()));
    assert_eq!(machine.upload(x, &[1; 4]), Err(err.clone()));
    assert_eq!(machine.download(x, &mut [0; 4]), Err(err.clone()));
    assert_eq!(machine.alloc(4), Err(err.clone()));
    assert_eq!(machine.load(&program), Err(err.clone()));
    assert_eq!(machine.flush_cache(), Err(err));
    assert_eq!(machine.clock_mhz(), None);
    machine.unload(loaded);
    machine.free(x);
    drop(machine);
    println!("{:.6} s: all is refused and dropped", begin.elapsed().as_secs_f64());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn the_clock_is_read() {
    let Some(mut machine) = machine("the_clock_is_read") else { return };
    let idle = machine.clock_mhz().expect("a clock");
    let (program, buffers) = saxpy(&mut machine, 1 << 24);
    let mut seen = vec![];
    for _ in 0..20 {
        machine.run(program, &buffers, 20).unwrap();
        let begin = Instant::now();
        let mhz = machine.clock_mhz().expect("a clock");
        seen.push((mhz, begin.elapsed().as_secs_f64() * 1e6));
    }
    say!("MHz at first: {idle:.1}; in work, with the microseconds that each question took: {seen:.1?}");
    let info = machine.info();
    // Two operations a lane and cycle on 128 lanes.
    let highest = info.peak_f32_gflops.unwrap() * 1e3 / (f64::from(info.units) * 256.0);
    let clocks: Vec<_> = seen.iter().map(|it| it.0).collect();
    let (typical, wall) = (median(clocks), median(seen.iter().map(|it| it.1).collect()));
    say!("median {typical:.1} MHz of at most {highest:.0}; {wall:.0} us");
    assert!((200.0..3500.0).contains(&idle) && (200.0..3500.0).contains(&typical));
    assert!(typical < 2.05 * highest && wall < 5000.0);
    machine.set_deadline(Some(1.0));
    assert!(machine.clock_mhz().is_some());
}

#[test]
fn every_choice_of_cublas_lt_is_right() {
    let Some(mut machine) = machine("every_choice_of_cublas_lt_is_right") else { return };
    for ([input, accumulator, output], tolerance) in PRODUCTS {
        for (batch, b_transposed) in [(1, false), (1, true), (3, false), (3, true)] {
            // The library wants rows of whole 16 bytes for some of its algorithms, and takes any for the others.
            for [m, n, k] in [[67, 45, 133], [128, 64, 96]] {
                let gemm =
                    Gemm { batch, m, n, k, input, accumulator, output, b_transposed, fast_sums: false };
                let limited = input == DType::I8 && (!b_transposed || n % 4 > 0);
                let choices = match machine.load_gemm_choices(&gemm, 8) {
                    Ok(it) => it,
                    Err(DeviceError::Unsupported(why)) if limited => {
                        say!("refused: {why}");
                        continue;
                    }
                    Err(err @ DeviceError::Missing { .. }) => return say!("skipped: cuBLASLt: {err}"),
                    Err(err) => panic!("{gemm:?}: {err}"),
                };
                assert!((1..=8).contains(&choices.len()));
                let off: Vec<_> = choices.iter().map(|it| check_gemm(&mut machine, *it, &gemm)).collect();
                let worst = off.iter().copied().fold(0.0, f64::max);
                say!(
                    "cuBLASLt {input} -> {output} by {accumulator}, {batch} of {m} {n} {k}, B transposed {b_transposed}: {} choices, \
                     off by {worst:.1e}",
                    choices.len()
                );
                assert!(worst <= tolerance, "{gemm:?}: {off:?}");
                for it in choices {
                    machine.unload(it);
                }
            }
        }
    }
    assert!(machine.load_gemm_choices(&square(64), 0).unwrap().is_empty());
    assert_eq!(machine.load_gemm_choices(&square(64), 1).unwrap().len(), 1);
    let versions = &machine.info().versions;
    say!("{versions:?}");
    assert_eq!(versions.iter().filter(|it| it.0 == "cuBLASLt").count(), 1);
    let refused = Gemm { input: DType::I32, output: DType::I32, ..square(64) };
    assert!(matches!(machine.load_gemm_choices(&refused, 8), Err(DeviceError::Unsupported(_))));
}

#[test]
fn cublas_lt_adds_up_eight_bit_floats_in_two_ways() {
    let Some(mut machine) = machine("cublas_lt_adds_up_eight_bit_floats_in_two_ways") else { return };
    let (input, output) = (DType::F8e4m3, DType::F32);
    let (m, n, k) = (80, 48, 96);
    let gemm = Gemm { m, n, k, input, output, b_transposed: true, ..square(0) };
    // Sums of whole numbers below 2^13, which either way has exactly.
    let number = |it: usize| (it * 7 % 9) as f64 - 4.0;
    let tensor = |salt: usize, len: usize| {
        let mut bytes = vec![];
        (0..len).for_each(|it| ir::number::encode(input, number(it + it / 11 + salt), &mut bytes));
        bytes
    };
    let (a, b) = (tensor(0, m * k), tensor(5, n * k));
    let of = |bytes: &[u8], at: usize| ir::number::decode(input, &bytes[at..=at]);
    for (words, gemm) in gemm.ways() {
        let choices = match machine.load_gemm_choices(&gemm, 8) {
            Ok(it) => it,
            Err(err) => return say!("skipped: cuBLASLt{words}: {err}"),
        };
        say!("cuBLASLt{words}: {} choices", choices.len());
        let (da, db) = (upload(&mut machine, &a), upload(&mut machine, &b));
        for program in choices {
            let mut raw = vec![0xff; m * n * 4];
            let dc = upload(&mut machine, &raw);
            machine.run(program, &[da, db, dc], 1).unwrap();
            machine.download(dc, &mut raw).unwrap();
            machine.free(dc);
            for (at, got) in decode(output, &raw).into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let exact: f64 = (0..k).map(|p| of(&a, i * k + p) * of(&b, j * k + p)).sum();
                assert!((got - exact).abs() < 1e-9, "{words}: {got} at {i}, {j} instead of {exact}");
            }
        }
        for it in [da, db] {
            machine.free(it);
        }
    }
    for refused in [Gemm { b_transposed: false, ..gemm }, Gemm { input: DType::F8e5m2, ..gemm }] {
        match machine.load_gemm_choices(&refused, 8) {
            Err(DeviceError::Unsupported(why)) => say!("refused: {why}"),
            other => panic!("{refused:?}: {other:?}"),
        }
    }
}

#[test]
fn the_choices_of_cublas_lt_are_fast_and_without_tf32() {
    let Some(mut machine) = machine("the_choices_of_cublas_lt_are_fast_and_without_tf32") else { return };
    for (m, n, k) in [(2048, 2048, 2048), (16384, 64, 1024)] {
        let gemm = Gemm { m, n, k, ..square(0) };
        let (plain, choices) = match (machine.load_gemm(&gemm), machine.load_gemm_choices(&gemm, 8)) {
            (Ok(plain), Ok(choices)) => (plain, choices),
            (Err(err), _) | (_, Err(err)) => return say!("skipped: cuBLASLt: {err}"),
        };
        // 1 + 2^-14 is 1 in TF32, so that a product with TF32 gives exactly k.
        let one = 1.0 + 2f32.powi(-14);
        let (a, b) =
            (upload_f32(&mut machine, &vec![one; m * k]), upload_f32(&mut machine, &vec![one; k * n]));
        let c = upload_f32(&mut machine, &vec![f32::NAN; m * n]);
        let exact = k as f32 * (1.0 + 2f32.powi(-13));
        machine.set_deadline(Some(10.0));
        let mut rates = vec![];
        for program in std::iter::once(plain).chain(choices) {
            machine.run(program, &[a, b, c], 3).unwrap();
            let got = download_f32(&mut machine, c, m * n)[n + 1];
            assert!((got - exact).abs() < 0.1 * k as f32 * 2f32.powi(-13), "{got} instead of {exact}");
            let seconds = machine.run(program, &[a, b, c], 10).unwrap() / 10.0;
            rates.push(2.0 * (m * n * k) as f64 / seconds / 1e9);
        }
        say!("GFLOPS of {m} {n} {k}: cuBLAS {:.0}, choices of cuBLASLt {:.0?}", rates[0], &rates[1..]);
        let peak = machine.info().peak_f32_gflops.unwrap();
        assert!(rates.iter().all(|it| *it < 1.05 * peak), "faster than the machine without tensor cores");
        for it in [a, b, c] {
            machine.free(it);
        }
    }
}

#[test]
fn unloaded_programs_are_gone_and_the_others_stay() {
    let Some(mut machine) = machine("unloaded_programs_are_gone_and_the_others_stay") else { return };
    let (first, buffers) = saxpy(&mut machine, 1000);
    let (second, others) = saxpy(&mut machine, 1000);
    machine.unload(first);
    machine.unload(first);
    let err = machine.run(first, &buffers, 1).unwrap_err();
    assert_eq!(err, DeviceError::Unsupported(format!("there is no program {}", first.0)));
    machine.run(second, &others, 1).unwrap();
    assert_eq!(download_f32(&mut machine, others[1], 1), [2.0]);
    let (third, _) = saxpy(&mut machine, 1000);
    assert_eq!(third.0, second.0 + 1);
}
