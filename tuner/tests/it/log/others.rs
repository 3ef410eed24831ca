//! What others put into the folder of a log, and what they do to one that is written.

use std::{fs, io::Write, path::Path, process::Command};

use super::{
    NOW, RUN,
    log::{self, Entry, LogError, Reason, Writer, read},
    sample, write,
};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A file that says it has so many bytes, behind a few real ones.
fn sparse(path: &Path, start: &[u8], length: u64) {
    let mut file = fs::File::create(path).unwrap();
    file.write_all(start).unwrap();
    file.set_len(length).unwrap();
}

#[test]
fn a_segment_that_is_not_read_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(write(folder.path(), RUN)).unwrap();
    let head = whole.split_inclusive(|it| *it == b'\n').next().unwrap();
    let at = |name: &str| folder.path().join(format!("run-{name}.jsonl"));
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("garbage"), "a,b\n1,2\n").unwrap();
    fs::write(at("newer"), "{\"k\":\"run\",\"v\":9}\n").unwrap();
    std::os::unix::fs::symlink("nothing", at("nowhere")).unwrap();
    pipe(&at("pipe"));
    sparse(&at("sparse"), head, 1 << 40);
    sparse(&at("zeros"), b"", 1 << 40);
    let log = read(folder.path()).unwrap();
    assert_eq!(log.runs.keys().collect::<Vec<_>>(), [RUN]);
    assert_eq!(log.runs[RUN].trials.len(), 6);
    let name = |it: &log::Damage| it.segment.file_name().unwrap().to_str().unwrap().to_owned();
    let told = log.damage.iter().map(|it| format!("{}:{} {}", name(it), it.line, it.reason));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
    // Alone each is refused, to whoever reads and to whoever wants to go on with it; and to whoever looks for its run.
    for it in &log.damage {
        let alone = read(&it.segment);
        assert!(alone.is_err() || it.reason == Reason::Newer(9), "{it}");
        assert!(Writer::reopen(&it.segment, NOW).is_err(), "{it}");
        let run = name(it).replace("run-", "").replace(".jsonl", "");
        assert!(log.unread(Some(&run)).unwrap().to_string().contains(&name(it)), "{it}");
    }
    assert!(log.unread(Some(RUN)).is_none() && log.unread(None).is_none());
    let sum = log::verify(folder.path(), &mut |_| {}).unwrap();
    assert_eq!((sum.damaged, sum.unread, sum.trials), (0, 7, 6));
    // Copies and compressed copies are made of the others.
    let (mut merged, mut packed) = (0, 0);
    log::merge(&folder.path().join("all"), folder.path(), &mut |_, it| merged += usize::from(it.is_ok()))
        .unwrap();
    log::pack(folder.path(), &mut |_, it| packed += usize::from(it.is_ok())).unwrap();
    assert_eq!((merged, packed), (2, 1), "the newer one is copied as it is");
}

#[test]
fn a_log_that_somebody_else_changes_is_lost_at_once() {
    let entry = || Entry::Trial(sample::trial(RUN, 0, 10.0));
    let lost = |change: &dyn Fn(&Path, &Path)| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut writer = Writer::create(&log, &sample::head(RUN)).unwrap();
        writer.append(&entry()).unwrap();
        change(&log, writer.path());
        let before = fs::read(writer.path()).ok();
        assert!(writer.expect_whole().is_err());
        let err = writer.append(&entry()).unwrap_err();
        assert!(matches!(err, LogError::Lost { .. }), "{err}");
        assert_eq!(fs::read(writer.path()).ok(), before, "what is left is left alone");
        err.to_string().split_once(": ").unwrap().1.to_owned()
    };
    let cut =
        |path: &Path, length| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
    let told = [
        lost(&|log, _| fs::remove_dir_all(log).unwrap()),
        lost(&|_, segment| fs::remove_file(segment).unwrap()),
        lost(&|log, _| fs::rename(log, log.with_file_name("old")).unwrap()),
        lost(&|log, _| {
            fs::remove_dir_all(log).unwrap();
            fs::write(log, "a file").unwrap();
        }),
        lost(&|_, segment| {
            fs::copy(segment, segment.with_extension("copy")).unwrap();
            fs::rename(segment.with_extension("copy"), segment).unwrap();
        }),
        lost(&|_, segment| cut(segment, 0)),
        lost(&|_, segment| cut(segment, 100)),
        lost(&|_, segment| cut(segment, 100_000)),
    ];
    let told = told.map(|it| {
        // How long the lines are is of no interest here.
        it.split(' ')
            .map(|it| if it.len() == 4 && it.parse::<u32>().is_ok() { "N" } else { it })
            .collect::<Vec<_>>()
            .join(" ")
    });
    insta::assert_snapshot!(told.join("\n"));
}
