//! A label selector in kubectl's form: `env=prod,region in (eu,us),!edge`.

use super::{LabelSelector, Operator, Requirement};

impl LabelSelector {
    /// Reads kubectl's form. Two spellings of one selector give equal selectors where only the order, blanks or `==`
    /// differ. Keys and values are as they are written, and may be no labels. The error says what is wrong, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err("a selector without text names nothing".to_owned());
        }
        loop {
            let (requirement, behind) = requirement(rest)?;
            selector.add(requirement);
            rest = behind.trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next.trim_start(),
                None if rest.is_empty() => break,
                None => return Err(format!("{rest:?} is not expected here")),
            }
        }
        selector
            .match_expressions
            .sort_by(|a, b| (&a.key, a.operator as u8, &a.values).cmp(&(&b.key, b.operator as u8, &b.values)));
        selector.match_expressions.dedup();
        Ok(selector)
    }

    /// A label with one value is kept among the labels, as most are; a second value for it can only be an expression.
    fn add(&mut self, requirement: Requirement) {
        if let (Operator::In, [value]) = (requirement.operator, requirement.values.as_slice())
            && self
                .match_labels
                .get(&requirement.key)
                .is_none_or(|known| known == value)
        {
            self.match_labels.insert(requirement.key, value.clone());
        } else {
            self.match_expressions.push(requirement);
        }
    }
}

/// The first requirement, and what stands behind it.
fn requirement(text: &str) -> Result<(Requirement, &str), String> {
    let (absent, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let (key, rest) = word(text);
    if key.is_empty() {
        return Err(format!("a label is expected where {text:?} begins"));
    }
    let rest = rest.trim_start();
    let made = |operator, values, rest| {
        let key = key.to_owned();
        Ok((Requirement { key, operator, values }, rest))
    };
    if absent {
        return made(Operator::DoesNotExist, Vec::new(), rest);
    }
    for (sign, operator) in [("==", Operator::In), ("!=", Operator::NotIn), ("=", Operator::In)] {
        if let Some(rest) = rest.strip_prefix(sign) {
            let (value, rest) = word(rest.trim_start());
            return made(operator, vec![value.to_owned()], rest);
        }
    }
    if rest.starts_with(['<', '>']) {
        return Err("labels of clusters are not compared as numbers".to_owned());
    }
    for (sign, operator) in [("notin", Operator::NotIn), ("in", Operator::In)] {
        let list = rest
            .strip_prefix(sign)
            .and_then(|rest| rest.trim_start().strip_prefix('('));
        if let Some(list) = list {
            let (values, rest) = list
                .split_once(')')
                .ok_or_else(|| format!("the values of {key} have no closing bracket"))?;
            return made(operator, listed(key, values)?, rest);
        }
    }
    made(Operator::Exists, Vec::new(), rest)
}

fn listed(key: &str, text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = text.split(',').map(|value| value.trim().to_owned()).collect();
    if let Some(wrong) = values.iter().find(|value| word(value).0 != *value) {
        return Err(format!("{wrong:?} is no value of {key}"));
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

/// What reaches to the next sign or blank.
fn word(text: &str) -> (&str, &str) {
    let is_sign = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '!' | '(' | ')' | '<' | '>');
    text.split_at(text.find(is_sign).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The selector as its own JSON form.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match LabelSelector::parse(text) {
            Ok(selector) => serde_json::to_string(&selector).unwrap(),
            Err(error) => error,
        };
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn kubectls_form_of_a_selector_is_read() {
        let both = r#"{"matchLabels":{"env":"prod"},"matchExpressions":[{"key":"edge","operator":"DoesNotExist"},{"key":"region","operator":"In","values":["eu","us"]}]}"#;
        check("env=prod,region in (us, eu),!edge", both);
        check(" ! edge , region in(eu,us),env == prod ", both);
        check(
            "a!=b,c notin (d,e)",
            r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]},{"key":"c","operator":"NotIn","values":["d","e"]}]}"#,
        );
        check("in", r#"{"matchExpressions":[{"key":"in","operator":"Exists"}]}"#);
        check("a=", r#"{"matchLabels":{"a":""}}"#);
        check(
            "x.io/a=b,x.io/a=c",
            r#"{"matchLabels":{"x.io/a":"b"},"matchExpressions":[{"key":"x.io/a","operator":"In","values":["c"]}]}"#,
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_selector_or_is_refused_and_one_selector_is_read_alike_in_any_order(
            text in "[ab=!,() ]{0,24}|in|notin|\\PC{0,24}",
            parts in proptest::collection::vec("a=b|a!=c|!d|e in \\(f,g\\)|h|a=c", 1..4),
        ) {
            let _ = LabelSelector::parse(&text);
            let mut turned = parts.clone();
            turned.sort_unstable();
            turned.dedup();
            // Which of two values for one label is kept among the labels is the first one's luck.
            if !(turned.contains(&"a=b".to_owned()) && turned.contains(&"a=c".to_owned())) {
                let (one, other) = (LabelSelector::parse(&parts.join(",")), LabelSelector::parse(&turned.join(" , ")));
                proptest::prop_assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn what_is_no_selector_says_why() {
        check(" ", "a selector without text names nothing");
        check("a=b,", "a label is expected where \"\" begins");
        check("a=b c=d", "\"c=d\" is not expected here");
        check("a in (b", "the values of a have no closing bracket");
        check("a in (b c)", "\"b c\" is no value of a");
        check("a > 3", "labels of clusters are not compared as numbers");
        check("!a=b", "\"=b\" is not expected here");
    }
}
