//! What the signs of a drawing mean, as far as they are used.

use codegen::timeline::{Sync, Timeline};

use super::{
    COLOURS,
    pen::{AMBER, CHAR, Face, LINE, MARGIN, Pen, RED, pill_width},
};
use crate::{
    timeline::grid::{has, held_in_slots, words},
    timeline::moments,
};

/// A sign.
enum Sign {
    Cell(&'static str, bool),
    Barrier(&'static str),
    Pill(&'static str),
    Pair,
}

/// Draws the signs side by side, in as many lines as they need.
pub(super) fn draw(pen: &mut Pen, it: &Timeline) {
    let mut all = vec![(Sign::Cell("3", true), "iteration 3".to_owned())];
    let mut add = |is_used: bool, sign: Sign, words: &str| {
        all.extend(is_used.then(|| (sign, words.to_owned())));
    };
    let is_pair = held_in_slots(it).any(|it| it.len() > 1);
    add(is_pair, Sign::Pair, "two in a slot: the right one takes the place of the left");
    let is_flying = held_in_slots(it).flatten().any(|it| !it.landed);
    add(is_flying, Sign::Cell("3", false), "its copy may still be in flight at the end of the step");
    for (word, meaning) in words(it) {
        add(true, Sign::Pill(word), &meaning);
    }
    let is_barrier = has(it, &|it| matches!(it, Sync::Barrier { .. }));
    add(is_barrier, Sign::Barrier("bN"), "barrier N of the list below");
    let is_inside = has(it, &|it| matches!(it, Sync::Barrier { inside: true, .. }));
    add(is_inside, Sign::Barrier("(bN)"), "it stands inside the statement");
    let mut x = MARGIN;
    for (sign, words) in all {
        let width = sign.width() + words.chars().count() * CHAR;
        if x > MARGIN && x + width > pen.width - MARGIN {
            pen.y += LINE + 4;
            x = MARGIN;
        }
        sign.draw(pen, x);
        pen.text(x + sign.width(), pen.y + LINE - 5, &words, Face::Grey);
        x += width + 3 * CHAR;
    }
    pen.y += LINE + 4;
    for line in moments(it) {
        pen.sentence(&line, Face::Grey);
    }
    pen.y += 4;
}

impl Sign {
    /// With the space after it.
    fn width(&self) -> usize {
        match self {
            Sign::Cell(..) => 36 + CHAR,
            Sign::Barrier(word) => pill_width(word) + 24 + CHAR,
            Sign::Pill(word) => pill_width(word) + CHAR,
            Sign::Pair => 56 + CHAR,
        }
    }

    fn draw(&self, pen: &mut Pen, x: usize) {
        let y = pen.y + LINE / 2;
        let width = self.width() - CHAR.min(self.width());
        match self {
            Sign::Cell(word, landed) => {
                pen.cell((x, y - 9), (width, 18), COLOURS[3], *landed);
                pen.text(x + width / 2, y + 5, word, Face::Middle);
            }
            Sign::Barrier(word) => {
                pen.rule(x, x + width, y, RED, 2);
                pen.pill(x + width / 2, y, word, RED);
            }
            Sign::Pill(word) => pen.pill(x + width / 2, y, word, AMBER),
            Sign::Pair => {
                for (at, word) in ["3", "5"].into_iter().enumerate() {
                    let x = x + at * width / 2;
                    pen.cell((x, y - 9), (width / 2, 18), COLOURS[3 + 2 * at], true);
                    pen.text(x + width / 4, y + 5, word, Face::Middle);
                }
            }
        }
    }
}
