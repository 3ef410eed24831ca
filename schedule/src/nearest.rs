//! "Did you mean": the known word that is closest to a mistyped one.

/// The known word that differs from `word` in the fewest letters, if it differs in few enough to be meant.
///
/// Inserting, dropping or changing a letter and swapping two neighbours count one each; up to a third of the
/// letters may differ, and never all of them. Of equally close words the first wins.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let limit = (letters / 3).max(1).min(letters.saturating_sub(1));
    let lower = word.to_lowercase();
    let close = known.into_iter().map(|it| (distance(&lower, &it.to_lowercase()), it));
    close.filter(|(cost, _)| *cost <= limit).min_by_key(|(cost, _)| *cost).map(|(_, it)| it)
}

/// "did you mean" the nearest known word, or what there is where none is near.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let quoted: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
    (!quoted.is_empty()).then(|| format!("there is {}", quoted.join(", ")))
}

/// The edit distance with swaps (optimal string alignment), over three rows of the table.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            row[j + 1] = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn close_words_are_found_and_distant_ones_are_not() {
        let known = ["split", "reorder", "bind", "A_shared"];
        let ask = |word| nearest(word, known);
        assert_eq!(ask("splt"), Some("split"));
        assert_eq!(ask("pslit"), Some("split"));
        assert_eq!(ask("a_shared"), Some("A_shared"));
        assert_eq!(ask("fuse"), None);
        assert_eq!(ask(""), None);
        assert_eq!(nearest("k", ["i", "K"]), Some("K"));
        assert_eq!(nearest("k", ["i", "ki"]), None);
    }
}
