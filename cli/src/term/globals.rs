//! The options that every subcommand takes, and what they decide: form, colour, and verbosity.

use std::{
    env,
    ffi::{OsStr, OsString},
};

use clap::{Args, ColorChoice, ValueEnum};

/// Options of every subcommand.
#[derive(Clone, PartialEq, Eq, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print data as JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colour; where this is auto, `NO_COLOR` and `FORCE_COLOR` decide
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// No progress and no notes; errors are told all the same
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say more on standard error: compilers, libraries, folders, and how long each part took
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

impl Default for Globals {
    fn default() -> Globals {
        Globals { json: false, color: ColorChoice::Auto, quiet: false, verbose: false }
    }
}

impl Globals {
    /// Whether to write in colour to a stream that is a terminal or not.
    pub(crate) fn colour(&self, is_terminal: bool) -> bool {
        colour(self.color, is_terminal)
    }
}

/// `--color` decides, else the environment, else whether somebody looks.
fn colour(choice: ColorChoice, is_terminal: bool) -> bool {
    match settled(choice, |name| env::var_os(name)) {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => is_terminal,
    }
}

/// A choice, with what the environment says where it says auto: `NO_COLOR`, then `FORCE_COLOR` and `CLICOLOR_FORCE`,
/// each if it is not empty, then a terminal that knows no colour.
fn settled(choice: ColorChoice, variable: impl Fn(&str) -> Option<OsString>) -> ColorChoice {
    let is_set = |name| variable(name).is_some_and(|it| !it.is_empty());
    let is_forced = |name| variable(name).is_some_and(|it| !it.is_empty() && it != "0");
    match choice {
        ColorChoice::Always | ColorChoice::Never => choice,
        ColorChoice::Auto if is_set("NO_COLOR") => ColorChoice::Never,
        ColorChoice::Auto if is_forced("FORCE_COLOR") || is_forced("CLICOLOR_FORCE") => ColorChoice::Always,
        ColorChoice::Auto if variable("TERM").is_some_and(|it| it == "dumb") => ColorChoice::Never,
        ColorChoice::Auto => ColorChoice::Auto,
    }
}

/// The options that decide how an error in the arguments is shown, read before all arguments are parsed: whether it is wanted as
/// JSON, and in which colour.
pub(crate) struct EarlyArguments {
    pub(crate) json: bool,
    pub(crate) color: ColorChoice,
}

impl EarlyArguments {
    /// Scans the arguments of the process.
    pub(crate) fn of(arguments: impl IntoIterator<Item = OsString>) -> EarlyArguments {
        let mut early = EarlyArguments { json: false, color: ColorChoice::Auto };
        let mut rest = arguments.into_iter().take_while(|it| it != "--");
        while let Some(word) = rest.next() {
            if word == "--json" {
                early.json = true;
            } else if word == "--color" {
                early.set_color(rest.next().as_deref());
            } else if let Some(choice) = word.to_str().and_then(|it| it.strip_prefix("--color=")) {
                early.set_color(Some(OsStr::new(choice)));
            }
        }
        early.color = settled(early.color, |name| env::var_os(name));
        early
    }

    /// Ignores an unknown choice: it is refused when the arguments are parsed.
    fn set_color(&mut self, choice: Option<&OsStr>) {
        let choice = choice.and_then(OsStr::to_str).and_then(|it| ColorChoice::from_str(it, false).ok());
        self.color = choice.unwrap_or(self.color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(choice: ColorChoice, variables: &[(&str, &str)]) -> ColorChoice {
        settled(choice, |name| variables.iter().find(|it| it.0 == name).map(|it| OsString::from(it.1)))
    }

    #[test]
    fn the_option_is_before_the_environment() {
        use ColorChoice::{Always, Auto, Never};
        assert_eq!(with(Auto, &[]), Auto);
        assert_eq!(with(Auto, &[("NO_COLOR", "1")]), Never);
        assert_eq!(with(Auto, &[("NO_COLOR", "")]), Auto);
        assert_eq!(with(Auto, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")]), Never);
        assert_eq!(with(Auto, &[("FORCE_COLOR", "1"), ("TERM", "dumb")]), Always);
        assert_eq!(with(Auto, &[("CLICOLOR_FORCE", "1")]), Always);
        assert_eq!(with(Auto, &[("CLICOLOR_FORCE", "0")]), Auto);
        assert_eq!(with(Auto, &[("TERM", "dumb")]), Never);
        assert_eq!(with(Always, &[("NO_COLOR", "1")]), Always);
        assert_eq!(with(Never, &[("FORCE_COLOR", "1")]), Never);
    }

    #[test]
    fn early_arguments_are_read_before_the_others() {
        let of = |it: &[&str]| {
            let early = EarlyArguments::of(it.iter().map(OsString::from));
            (early.json, early.color)
        };
        assert_eq!(of(&["check", "--json", "--color", "never"]), (true, ColorChoice::Never));
        assert_eq!(of(&["--color=always", "--", "--json"]), (false, ColorChoice::Always));
    }
}
