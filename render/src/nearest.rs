//! What somebody may have meant: the nearest of the names that there are.

/// The candidate that is fewest letters away; `None` where all are far.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters: "wbe" is "web", and "db" is nothing like it.
    let far = word.chars().count() / 3 + 1;
    let (distance, found) = candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min()?;
    (distance <= far).then_some(found)
}

/// What may have been meant, as the end of an error's words; empty where all are far.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(word, candidates);
    near.map_or_else(String::new, |near| format!("; hint: did you mean {near}?"))
}

/// Letters to insert, remove, replace or swap with their neighbour to make one word of the other.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(row[j] + 1).min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["web", "shop-api", "greeting"]), expected, "{word}");
    }

    #[test]
    fn a_slip_is_told_from_another_word() {
        check("wbe", Some("web"));
        check("webs", Some("web"));
        check("shopapi", Some("shop-api"));
        check("greetings", Some("greeting"));
        check("database", None);
        check("", None);
    }
}
