//! Logs that are cut, flipped, shared and full: what was acknowledged is read again.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod others;
pub(crate) mod sample;

use std::{
    fs,
    io::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use tilewright_tuner::log::{
    self, Durability, Entry, Happening, LogError, LogLine, Reason, Writer, read, scan,
};

const NOW: &str = "2026-11-22T08:00:00Z";
const RUN: &str = "20261121T191300Z-00000001";

/// Writes a whole run into a folder; the path of its segment.
fn write(folder: &Path, run: &str) -> PathBuf {
    let mut writer = Writer::create(folder, &sample::head(run)).unwrap();
    for entry in sample::body(run) {
        writer.append(&entry).unwrap();
    }
    writer.path().to_owned()
}

/// The lines of a log as text, damage as its message.
fn lines(log: &Path) -> Vec<String> {
    let mut out = vec![];
    scan(log, &mut |line| {
        out.push(match line {
            LogLine::Record { raw, .. } => String::from_utf8(raw.bytes().to_vec()).unwrap(),
            LogLine::Damage(it) => format!("line {}: {}", it.line, it.reason),
            LogLine::Torn(it) => format!("torn: {}", it.bytes),
        });
        ControlFlow::Continue(())
    })
    .unwrap();
    out
}

fn is_record(line: &str) -> bool {
    line.starts_with("{\"k\":\"")
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b.twlog");
    write(&deep, RUN);
    let log = read(&deep).unwrap();
    assert!(log.damage.is_empty() && log.torn.is_empty());
    let run = &log.runs[RUN];
    assert_eq!(run.head().unwrap(), &sample::head(RUN));
    assert_eq!(run.trials.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let trials = sample::body(RUN).into_iter().filter_map(|it| match it {
        Entry::Trial(it) => Some((it.n, it)),
        _ => None,
    });
    assert_eq!(run.trials, trials.collect());
    assert_eq!((run.finals.len(), run.events.len()), (1, 2));
}

#[test]
fn a_last_line_cut_anywhere_costs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let segment = write(folder.path(), RUN);
    let bytes = fs::read(&segment).unwrap();
    let start = bytes[..bytes.len() - 1].iter().rposition(|it| *it == b'\n').unwrap() + 1;
    let whole = lines(&segment);
    for end in start..bytes.len() {
        fs::write(&segment, &bytes[..end]).unwrap();
        let rest = (end - start) as u64;
        let only_newline = end == bytes.len() - 1;
        let mut expected = whole[..whole.len() - 1].to_vec();
        match (rest, only_newline) {
            (0, _) => {}
            (_, true) => expected.push(whole[whole.len() - 1].clone()),
            (rest, false) => expected.push(format!("torn: {rest}")),
        }
        assert_eq!(lines(&segment), expected, "cut at {end}");

        let (mut writer, recovered) = Writer::reopen(&segment, NOW).unwrap();
        assert_eq!(recovered.completed, only_newline);
        assert_eq!(recovered.cut, if only_newline { 0 } else { rest });
        writer.append(&sample::body(RUN)[8]).unwrap();
        drop(writer);
        let log = read(&segment).unwrap();
        assert!(log.torn.is_empty() && log.damage.is_empty(), "cut at {end}");
        let events: Vec<_> = log.runs[RUN].events.iter().map(|it| it.what).collect();
        let told = recovered.cut > 0;
        assert_eq!(events.contains(&Happening::TailTruncated), told, "cut at {end}");
        assert_eq!(events.last(), Some(&Happening::Finished));
    }
}

#[test]
fn a_flipped_bit_costs_one_record_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let segment = write(folder.path(), RUN);
    let bytes = fs::read(&segment).unwrap();
    let whole = lines(&segment);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let newlines: Vec<usize> = (0..bytes.len()).filter(|it| bytes[*it] == b'\n').collect();
    let random: Vec<_> = (0..500).map(|_| rng.random_range(0..bytes.len())).collect();
    for (n, at) in random.iter().chain(&newlines).copied().enumerate() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << rng.random_range(0..8);
        fs::write(&segment, &flipped).unwrap();
        let hit = newlines.iter().filter(|it| **it < at).count();
        let found = lines(&segment);
        let records: Vec<_> = found.iter().filter(|it| is_record(it)).collect();
        // A newline belongs to no record.
        let lost = (bytes[at] != b'\n').then_some(hit);
        let kept: Vec<_> = (0..whole.len()).filter(|it| Some(*it) != lost).map(|it| &whole[it]).collect();
        assert_eq!(records, kept, "flip {n} at {at}");
        let complaints: Vec<_> = found.iter().filter(|it| !is_record(it)).collect();
        let at_end = at == bytes.len() - 1;
        let place = format!("line {}: ", hit + 1);
        assert!(
            complaints[0].starts_with(if at_end { "torn: 1" } else { &place }),
            "flip {n} at {at}: {complaints:?}"
        );

        let log = read(&segment).unwrap();
        assert_eq!(log.damage.len() + log.torn.len(), complaints.len());
        let trials = kept.iter().filter(|it| it.starts_with("{\"k\":\"trial\"")).count();
        assert_eq!(log.runs[RUN].trials.len(), trials);
        assert_eq!(log.runs[RUN].head().is_err(), lost == Some(0));
    }
}

#[test]
fn eight_writers_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for n in 0..8_u32 {
            let folder = folder.path();
            scope.spawn(move || {
                let run = log::run_name(NOW, n);
                let writer = Writer::create(folder, &sample::head(&run)).unwrap();
                let mut writer = writer.durability(Durability::Batch);
                for n in 0..1000 {
                    writer.append(&Entry::Trial(sample::trial(&run, n, 10.0))).unwrap();
                }
                writer.sync().unwrap();
            });
        }
    });
    let log = read(folder.path()).unwrap();
    assert!(log.damage.is_empty() && log.torn.is_empty());
    assert_eq!(log.runs.len(), 8);
    for run in log.runs.values() {
        assert_eq!(run.trials.keys().copied().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn a_segment_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path(), &sample::head(RUN)).unwrap();
    let segment = writer.path().to_owned();
    assert!(matches!(Writer::create(folder.path(), &sample::head(RUN)), Err(LogError::Exists(_))));
    assert!(matches!(Writer::reopen(&segment, NOW), Err(LogError::Locked(_))));
    drop(writer);
    assert!(Writer::reopen(&segment, NOW).is_ok());
    assert!(matches!(Writer::create(folder.path(), &sample::head("../x")), Err(LogError::Name(_))));
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &sample::head(RUN)).unwrap();
    let mut trial = sample::trial(RUN, 0, 10.0);
    trial.result.as_mut().unwrap().gflops = f64::NAN;
    assert!(matches!(writer.append(&Entry::Trial(trial)), Err(LogError::Entry(_))));
    assert!(matches!(writer.append(&Entry::Unknown), Err(LogError::Entry(_))));
    writer.append(&Entry::Trial(sample::trial(RUN, 0, 10.0))).unwrap();
    assert_eq!(lines(writer.path()).len(), 2);
}

#[test]
fn newer_and_foreign_logs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut newer = sample::head("newer");
    newer.v = 2;
    let segment = Writer::create(folder.path(), &newer).unwrap().path().to_owned();
    write(folder.path(), RUN);
    let log = read(folder.path()).unwrap();
    assert_eq!(log.damage[0].reason, Reason::Newer(2));
    assert_eq!(log.runs.keys().collect::<Vec<_>>(), [RUN]);
    let err = Writer::reopen(&segment, NOW).unwrap_err();
    assert_eq!(err.to_string().split_once(" has ").unwrap().1, "format version 2; this build reads up to 1");
    // A version that no longer ends its lines with this checksum.
    fs::write(&segment, "{\"k\":\"run\",\"v\":9,\"checksum\":1}\n").unwrap();
    assert_eq!(read(&segment).unwrap().damage[0].reason, Reason::Newer(9));

    let foreign = [
        "{\"device_name\": \"H100\", \"cache\": {}}\n",
        "{\"v\":1,\"tool\":\"0.1.0\"}\n{\"v\":1,\"tool\":\"0.1.0\"}\n",
        "schedule(workload: \"matmul\", steps: [])",
        "\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0\0\0",
        "a,b\n1,2\n",
    ];
    for text in foreign {
        fs::write(&segment, text).unwrap();
        assert!(matches!(read(&segment), Err(LogError::Foreign(_))), "{text}");
        assert!(matches!(Writer::reopen(&segment, NOW), Err(LogError::NoHead(_))), "{text}");
    }
    // Runs that were killed before they began.
    for text in ["", "{", "{\"k\":\"ru", "{\"k\":\"run\",\"v\":1,\"run\"", "\0\0\0\0\0\0\0\0\0\0\0\0"] {
        fs::write(&segment, text).unwrap();
        let log = read(&segment).unwrap();
        assert_eq!((log.runs.len(), log.damage.len(), log.torn.len()), (0, 0, text.len().min(1)), "{text}");
    }
}

#[test]
fn unknown_fields_are_kept_and_unknown_kinds_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut head = sample::head(RUN);
    head.other.insert("colour".to_owned(), "red".into());
    let mut writer = Writer::create(folder.path(), &head).unwrap();
    let mut trial = sample::trial(RUN, 0, 10.0);
    trial.other.insert("mood".to_owned(), serde_json::json!({"k": "x", "crc": "00000000"}));
    writer.append(&Entry::Trial(trial.clone())).unwrap();
    let segment = writer.path().to_owned();
    drop(writer);
    let body = "{\"k\":\"weather\",\"rain\":true";
    let line = format!("{body},\"crc\":\"{:08x}\"}}\n", crc32c::crc32c(body.as_bytes()));
    fs::OpenOptions::new().append(true).open(&segment).unwrap().write_all(line.as_bytes()).unwrap();
    let log = read(&segment).unwrap();
    assert_eq!(log.unknown, 1);
    assert_eq!(log.runs[RUN].head().unwrap(), &head);
    assert_eq!(log.runs[RUN].trials[&0], trial);
    assert_eq!(lines(&segment)[2], line.trim_end());
}

#[test]
fn a_long_line_is_not_kept_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let segment = write(folder.path(), RUN);
    let whole = lines(&segment);
    let mut file = fs::OpenOptions::new().append(true).open(&segment).unwrap();
    for _ in 0..65 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(format!("\n{}\n", whole[1]).as_bytes()).unwrap();
    let found = lines(&segment);
    assert_eq!(
        found[whole.len()],
        format!("line {}: the line has {} bytes", whole.len() + 1, (65 << 20) + 1)
    );
    assert_eq!(found.last(), Some(&whole[1]));
}

#[test]
fn a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be: root, too, cannot write there.
    fs::write(folder.path().join("file"), "").unwrap();
    let err = Writer::create(&folder.path().join("file/log"), &sample::head(RUN)).unwrap_err();
    assert!(matches!(err, LogError::Io { .. }), "{err}");
    let err = Writer::create(Path::new("/proc/tilewright"), &sample::head(RUN)).unwrap_err();
    assert!(matches!(err, LogError::Io { .. }), "{err}");
}

/// Fills a log until a limit on the size of files, as on a full disk. Run by the test below in a process of its own.
#[test]
fn full_disk_child() {
    let Some(folder) = std::env::var_os("TILEWRIGHT_TEST_FULL").map(PathBuf::from) else { return };
    let mut writer = Writer::create(&folder, &sample::head(RUN)).unwrap();
    let mut n = 0;
    let err = loop {
        match writer.append(&Entry::Trial(sample::trial(RUN, n, 10.0))) {
            Ok(()) => n += 1,
            Err(err) => break err,
        }
    };
    assert!(err.help().unwrap().starts_with("make room"), "{err}");
    let length = fs::metadata(writer.path()).unwrap().len();
    // It goes on failing and the log stays as it is; what is small enough still fits.
    assert!(writer.append(&Entry::Trial(sample::trial(RUN, n, 10.0))).is_err());
    assert_eq!(fs::metadata(writer.path()).unwrap().len(), length);
    fs::write(folder.join("count"), n.to_string()).unwrap();
    // Not even the head fits into what is left: no segment stays behind.
    let mut long = sample::head("long");
    long.script.text = "x".repeat(1 << 17);
    assert!(matches!(Writer::create(&folder, &long), Err(LogError::Write { .. })));
    assert!(!folder.join("run-long.jsonl").exists());
}

#[test]
fn a_full_disk_leaves_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    // In blocks of 512 bytes; without the trap the signal would kill the process.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact log::full_disk_child";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(&test)
        .env("TILEWRIGHT_TEST_FULL", folder.path())
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    let count: usize = fs::read_to_string(folder.path().join("count")).unwrap().parse().unwrap();
    let log = read(folder.path()).unwrap();
    assert!(log.damage.is_empty() && log.torn.is_empty());
    assert_eq!(log.runs[RUN].trials.len(), count);
    assert!(count > 10);
    assert!(log.runs[RUN].head().is_ok());
}
