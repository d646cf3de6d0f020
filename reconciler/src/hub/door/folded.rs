//! Which of the door's audit lines are alike: watches, and requests of nobody.

use super::audit::Line;
use crate::audit::Alike;
use crate::hub::doorstep::network;

impl Alike for Line {
    type Kind = [String; 7];

    fn kind(&self) -> Option<Self::Kind> {
        let text = str::to_owned;
        if self.user.is_empty() {
            // As for failed logins, one customer's addresses are one place.
            let from = self.from.parse();
            let place = from.map_or_else(|_| self.from.clone(), |from| network(from).to_string());
            return Some([
                place,
                self.code.to_string(),
                text(""),
                text(""),
                text(""),
                text(""),
                text(""),
            ]);
        }
        let is_watch = self.verb == "watch" && (200..300).contains(&self.code);
        is_watch.then(|| {
            [
                self.user.clone(),
                self.cluster.clone(),
                self.resource.clone(),
                self.namespace.clone(),
                self.name.clone(),
                text(self.stage),
                text(self.verb),
            ]
        })
    }

    fn stand_for(&mut self, earlier: &Self) {
        self.more += earlier.more + 1;
        self.bytes_up += earlier.bytes_up;
        self.bytes_down += earlier.bytes_down;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::audit::Folded;
    use crate::limits::AUDIT_ALIKE_REST;

    fn watch(user: &str, namespace: &str) -> Line {
        Line {
            user: user.to_owned(),
            resource: "secrets".to_owned(),
            namespace: namespace.to_owned(),
            verb: "watch",
            code: 200,
            bytes_down: 10,
            ..Line::default()
        }
    }

    #[test]
    fn watches_that_are_alike_are_one_line_a_minute_that_counts_them() {
        let (mut folded, now) = (Folded::default(), Instant::now());
        assert_eq!(folded.fold(watch("ada", "a"), now), Some(watch("ada", "a")));
        for _ in 0..3 {
            assert_eq!(folded.fold(watch("ada", "a"), now), None);
        }
        for other in [watch("ada", "prod"), watch("ada", ""), watch("bob", "a")] {
            assert_eq!(folded.fold(other.clone(), now), Some(other), "it is another one");
        }
        let read = Line {
            verb: "get",
            ..watch("ada", "a")
        };
        assert_eq!(folded.fold(read.clone(), now), Some(read.clone()));
        assert_eq!(folded.fold(read.clone(), now), Some(read), "each read is a line");
        assert_eq!(folded.due(now), []);
        let later = now + AUDIT_ALIKE_REST;
        let due = folded.due(later);
        let told: Vec<_> = due
            .iter()
            .map(|line| (line.user.as_str(), line.more, line.bytes_down))
            .collect();
        assert_eq!(told, [("ada", 2, 30)], "without a fourth one");
        assert_eq!(folded.fold(watch("ada", "a"), later), None, "a minute from then on");
        assert_eq!(folded.rest().len(), 1);
        assert!(folded.rest().is_empty());
    }

    #[test]
    fn nobody_fills_the_log_with_paths() {
        let (mut folded, now) = (Folded::default(), Instant::now());
        let nobody = |number: usize| Line {
            from: format!("2001:db8::{number}"),
            resource: format!("/{number}"),
            code: 401,
            ..Line::default()
        };
        let written = (0..1_000).filter_map(|number| folded.fold(nobody(number), now)).count();
        assert_eq!(written, 1);
        assert_eq!(folded.due(now + AUDIT_ALIKE_REST)[0].more, 998);
    }
}
