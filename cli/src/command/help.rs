//! What `--help` says beyond the options: the subcommands in the order in which they are needed, and examples of each.

use std::fmt::Write;

use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::term::wrap::lines_in;

/// The subcommands by what they are for, in the order in which a newcomer needs them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Learn", &["tutorial", "learn", "explain"]),
    ("Work on a schedule", &["auto", "check", "fmt", "show", "studio", "run", "compare", "export", "import"]),
    ("Tune it", &["tune", "resume", "top", "replay", "report", "log"]),
    ("The machine and the shell", &["doctor", "calibrate", "lsp", "completions", "man", "schema"]),
];

/// Command lines that work, by subcommand, each with what it does.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "tutorial",
        &[
            ("tutorial list", "every ladder that ships"),
            ("tutorial matmul-cpu --until 3 --size 256", "climb three rungs, at another size"),
            ("tutorial matmul-cpu --step pack --code", "one rung, with the C that it changes"),
            ("tutorial matmul-cuda-f32 --target vgpu", "look for races, without a GPU"),
        ],
    ),
    (
        "export",
        &[
            ("export mine.ron --out bundle", "source, binary, launchers and a manifest"),
            ("export mine.twlog:37 --out bundle", "of a trial"),
            ("export mine.ron --out bundle --verify", "and build and run it"),
        ],
    ),
    (
        "import",
        &[
            ("import module.py", "print a program of TVM's in the text form"),
            ("import module.py --func main --out main.tw", "one of several functions, into a file"),
            (
                "import database_tuning_record.json --program main.tw --out best.ron",
                "the fastest record, as a script",
            ),
        ],
    ),
    (
        "learn",
        &[
            ("learn init", "write the exercises into ./tilewright-exercises"),
            ("learn", "watch the current one, and check it when it changes"),
            ("learn hint", "the idea, then the primitive, then nearly the line"),
            ("learn check --all", "is everything solved?"),
        ],
    ),
    (
        "explain",
        &[
            ("explain", "list the primitives, the procedures and the intrinsics"),
            ("explain compute_at", "what a primitive does, and when it is legal"),
            ("explain TW1017", "what an error means, and what to do"),
        ],
    ),
    (
        "auto",
        &[
            ("auto matmul --param m=1500 --param n=1500 --param k=1500", "print a script, with reasons"),
            ("auto softmax --target cpu --out first.ron", "write it into a file"),
            ("auto matmul --target cuda:sm_90a --param dtype=bf16 --explain", "only why"),
        ],
    ),
    (
        "check",
        &[
            ("check mine.ron", "is every step legal?"),
            ("check mine.ron --watch", "and again whenever it is saved"),
            ("check mine.ron --target cuda:sm_90a", "for another target"),
            ("check mine.ron --param bk=16 --json", "with a knob decided, as JSON"),
        ],
    ),
    (
        "fmt",
        &[
            ("fmt mine.ron", "lay it out"),
            ("fmt --check", "would anything below this folder change?"),
            ("fmt -", "standard input to standard output, for editors"),
        ],
    ),
    (
        "export",
        &[
            ("export mine.ron --out bundle --verify", "a folder that builds and runs by itself"),
            ("export mine.ron --out bundle --target cuda:sm_90a", "with machine code for a GPU"),
            ("export mine.twlog --out bundle", "the best trial of a log"),
        ],
    ),
    (
        "show",
        &[
            ("show mine.ron", "the program after all steps"),
            ("show mine.ron --emit diff", "what each step changes"),
            ("show mine.ron --emit cuda --arch sm_90a", "the source for a GPU"),
            ("show mine.ron --html page.html", "every step, with its code, as a page"),
        ],
    ),
    (
        "studio",
        &[
            ("studio mine.ron", "a page that follows every save, until Ctrl-C"),
            ("studio mine.ron --open", "and open it in the browser"),
            ("studio mine.ron --param m=64 --port 0", "at another size, at any free port"),
        ],
    ),
    (
        "run",
        &[
            ("run mine.ron", "build, verify, measure"),
            ("run mine.ron --param m=512", "at another size"),
            ("run mine.ron --target vgpu", "look for races, without a GPU"),
            ("run mine.ron --log runs.jsonl", "keep a record"),
        ],
    ),
    (
        "tune",
        &[
            ("tune mine.ron", "200 candidates, into mine.twlog"),
            ("tune mine.ron --trials 1000 --strategy evolution", "learn from results"),
            ("tune mine.ron --time 10m --per-step", "and say what each step is worth"),
        ],
    ),
    (
        "resume",
        &[
            ("resume mine.twlog", "go on where the run stopped"),
            ("resume mine.twlog --trials 2000", "and try more than was asked for"),
        ],
    ),
    (
        "compare",
        &[
            ("compare before.ron after.ron", "which is faster, and how sure that is"),
            ("compare mine.twlog mine.ron --fail-on slower=2%", "with the best trial, for a test"),
        ],
    ),
    ("top", &[("top mine.twlog", "the ten fastest"), ("top mine.twlog other.twlog -k 3", "of several logs")]),
    (
        "replay",
        &[
            ("replay mine.twlog", "are the sources still the same?"),
            ("replay mine.twlog --verify --top 5", "run the fastest again"),
            ("replay mine.twlog --measure --trial 37", "time one against the library"),
        ],
    ),
    (
        "report",
        &[
            ("report mine.twlog", "write mine.twlog/report.html"),
            ("report runs.jsonl", "write runs.svg, of what --log recorded"),
            ("report mine.twlog --out page.html", "somewhere else"),
        ],
    ),
    (
        "log",
        &[
            ("log verify mine.twlog", "is the log whole?"),
            ("log cat mine.twlog --kind trial", "print its records"),
            ("log export mine.twlog --to csv --out t.csv", "for other tools"),
            ("log merge all.twlog a.twlog b.twlog", "put logs together"),
        ],
    ),
    ("doctor", &[("doctor", "what this machine has"), ("doctor --json", "for a program")]),
    (
        "calibrate",
        &[
            ("calibrate", "latencies and rates of this GPU, beside the table"),
            ("calibrate --only wgmma,box_", "some of them"),
            ("calibrate --check matmul-hopper --size 4096", "are kernels as fast as expected?"),
        ],
    ),
    ("lsp", &[("lsp", "what an editor starts"), ("lsp --stdio", "the same, as some say it")]),
    (
        "completions",
        &[("completions bash", "print the script for bash"), ("completions zsh", "that for zsh")],
    ),
    (
        "schema",
        &[("schema", "what there is a schema of"), ("schema check", "that of what `check --json` prints")],
    ),
    (
        "man",
        &[("man", "print the page of tilewright"), ("man share/man/man1", "write a page for each command")],
    ),
];

/// The examples of a subcommand.
pub(super) fn examples(name: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|it| it.0 == name).map_or(&[], |it| it.1)
}

/// The command with a section of examples for each subcommand that has some.
pub(super) fn with_examples(mut command: Command, columns: usize) -> Command {
    for (name, lines) in EXAMPLES {
        if command.find_subcommand(name).is_some() {
            command = command.mut_subcommand(name, |it| it.after_help(section(lines, columns)));
        }
    }
    command
}

/// The lines, what each does beside it, or above it where that does not fit: a comment that goes on in the next line is
/// none for a shell.
fn section(lines: &[(&str, &str)], columns: usize) -> String {
    let (bold, plain) = ("\x1b[1m\x1b[4m", "\x1b[0m");
    let mut text = format!("{bold}Examples:{plain}");
    let width = lines.iter().map(|it| it.0.len()).max().unwrap_or(0);
    let fits = lines.iter().all(|it| "  tilewright   # ".len() + width + it.1.chars().count() <= columns);
    for (line, what) in lines {
        if fits {
            let _ = write!(text, "\n  tilewright {line:width$}  # {what}");
            continue;
        }
        for it in lines_in(columns, what, 4, 4) {
            text.extend(["\n  # ", &it]);
        }
        // A shell puts lines together again that end in a backslash.
        let line =
            lines_in(columns.saturating_sub(2), &format!("tilewright {line}"), 2, 6).join(" \\\n      ");
        let _ = write!(text, "\n  {line}");
    }
    text
}

/// The command with options that take what begins with `-` and a digit for a value: what is wrong with it is then said of
/// the value, and not that there is no such option.
pub(super) fn with_negative_numbers(command: Command) -> Command {
    let value = |it: &Arg| it.get_action().takes_values() && !it.is_positional();
    let command = command.mut_args(|it| if value(&it) { it.allow_negative_numbers(true) } else { it });
    command.mut_subcommands(with_negative_numbers)
}

/// What is wrong with the arguments, with a tip that leads on: not to write `-- -10m`, which only makes another argument
/// of it, and how a second parameter is given.
pub(super) fn in_other_words(mut err: clap::Error) -> clap::Error {
    let argument = match err.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(it)) => it.clone(),
        _ => String::new(),
    };
    let is_value = argument.starts_with('-') && argument[1..].starts_with(|it: char| it.is_ascii_digit());
    let tip = match argument.split_once('=') {
        _ if err.kind() != ErrorKind::UnknownArgument => return err,
        _ if is_value => "a value that begins with `-` is written behind `=`: `--option=-10m`".to_owned(),
        Some((name, _)) if !name.starts_with('-') => {
            format!("each parameter has an option of its own: `--param {argument}`")
        }
        _ => return err,
    };
    err.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    err
}

/// What numbers are refused for, in words of users.
pub(super) fn plainly(text: &str) -> String {
    text.replace("invalid digit found in string", "a whole number is wanted, 0 or more")
}

/// The command with its subcommands in groups.
pub(super) fn with_groups(command: Command, columns: usize) -> Command {
    let known: Vec<&str> = GROUPS.iter().flat_map(|it| it.1).copied().collect();
    let more: Vec<&str> = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && !known.contains(&it.get_name()))
        .map(Command::get_name)
        .collect();
    let groups = GROUPS.iter().map(|it| (it.0, it.1.to_vec())).chain([("More", more)]);
    let (bold, plain) = ("\x1b[1m", "\x1b[0m");
    let mut list = String::new();
    for (title, names) in groups {
        let found: Vec<_> = names.iter().filter_map(|it| command.find_subcommand(it)).collect();
        if found.is_empty() {
            continue;
        }
        let _ = write!(list, "\n{bold}\x1b[4m{title}:{plain}\n");
        for it in found {
            let about = it.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                list,
                "  {bold}{:<12}{plain} {}",
                it.get_name(),
                lines_in(columns, &about, 15, 15).join(&format!("\n{:15}", ""))
            );
        }
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{list}\n{bold}\x1b[4mOptions:{plain}\n{{options}}\n\n{LAST}\n"
    ))
}

/// What stands below the options.
const LAST: &str = "`tilewright COMMAND --help` has the options of a command, and examples.\n\
                    New here? Begin with `tilewright tutorial`.";

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, GROUPS, in_other_words, plainly};
    use crate::command::{cli, cli_in};

    #[test]
    fn every_subcommand_has_a_group_and_examples() {
        for it in cli().get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            let name = it.get_name();
            assert_eq!(GROUPS.iter().filter(|it| it.1.contains(&name)).count(), 1, "{name} has no group");
            assert!(EXAMPLES.iter().any(|it| it.0 == name), "{name} has no examples");
        }
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (name, lines) in EXAMPLES {
            assert!((2..=4).contains(&lines.len()), "{name}");
            for (line, _) in *lines {
                assert!(line.split(' ').next() == Some(name), "{line}");
                let words = ["tilewright"].into_iter().chain(line.split(' '));
                let parsed = cli().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    /// All helps in so many columns.
    fn helps(columns: usize) -> Vec<String> {
        let mut all = cli_in(columns);
        all.build();
        let below =
            all.clone().get_subcommands_mut().map(|it| it.render_help().to_string()).collect::<Vec<_>>();
        below.into_iter().chain([all.render_help().to_string()]).collect()
    }

    #[test]
    fn lines_of_help_fit_a_window_of_80_columns() {
        for help in helps(80) {
            let long = help.lines().find(|it| it.chars().count() > 80);
            assert!(long.is_none(), "{}", long.unwrap_or_default());
        }
    }

    /// What is copied from an example is a command line and a comment, in the narrowest window.
    #[test]
    fn no_example_goes_on_in_the_next_line() {
        for help in [40, 60, 80, 120].into_iter().flat_map(helps) {
            let examples = help.lines().skip_while(|it| *it != "Examples:").skip(1);
            let mut goes_on = false;
            for line in examples.take_while(|it| !it.is_empty()) {
                let is_whole = line.starts_with("  tilewright ") || line.starts_with("  # ");
                assert!(is_whole || (goes_on && line.starts_with("      ")), "{help}");
                goes_on = line.ends_with('\\');
            }
        }
    }

    #[test]
    fn a_value_that_is_negative_is_told_of_as_a_value() {
        let refused = |words: &[&str]| {
            let err = cli().try_get_matches_from([&["tilewright"], words].concat()).unwrap_err();
            plainly(&in_other_words(err).render().to_string())
        };
        let negative = refused(&["show", "mine.ron", "--until", "-1"]);
        assert!(
            negative.contains("'-1' for '--until <N>': a whole number is wanted, 0 or more"),
            "{negative}"
        );
        let range = refused(&["compare", "a.ron", "b.ron", "--rounds", "-3"]);
        assert!(range.contains("-3 is not in 1..=10000"), "{range}");
        let time = refused(&["tune", "mine.ron", "--time", "-10m"]);
        assert!(time.contains("is written behind `=`") && !time.contains("-- -10m"), "{time}");
        let second = refused(&["tune", "mine.ron", "--param", "m=64", "n=128"]);
        assert!(second.contains("an option of its own: `--param n=128`"), "{second}");
        for told in [negative, range] {
            assert!(!told.contains("tip:"), "{told}");
        }
    }
}
