//! CEL over one object: whether it is as an expression says.
//!
//! An expression knows the variable `object` alone. It is checked when it is read, and so bounded that whoever writes
//! one can slow nobody down: its length, its nesting, and the steps that it may take over an object of that size.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::parser::PrattParser;
use cel::{Context, ExecutionError};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::limits::{
    EXPRESSION_CHARS_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_LOOPS_MAX, EXPRESSION_NESTING_MAX, EXPRESSION_STEPS_MAX,
};

/// The functions that an expression may call; operators and macros have names of their own.
const FUNCTIONS: [&str; 12] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "endsWith",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

/// The names of types, which `type(…)` is compared with.
const TYPES: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];

/// A text that is no expression, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidExpression(String);

/// An expression that says nothing of an object, and why. Without the object's own values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unevaluated(String);

/// An expression that was read.
#[derive(Debug)]
pub struct Expression {
    parsed: IdedExpr,
    cost: Cost,
}

/// What bounds the steps of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Parts of the expression.
    nodes: u64,
    /// Loops within loops; one that builds a list counts twice, since each of its steps may copy it.
    loops: u32,
    /// Elements of its longest list.
    longest: u64,
    /// Times that something is added to something, which may make a list longer.
    additions: u64,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// Why it is none, in words for whoever wrote it.
    pub fn parse(text: &str) -> Result<Self, InvalidExpression> {
        if text.chars().count() > EXPRESSION_CHARS_MAX {
            return Err(InvalidExpression(format!(
                "an expression has at most {EXPRESSION_CHARS_MAX} characters"
            )));
        }
        let parser = PrattParser::default().max_recursion_depth(EXPRESSION_NESTING_MAX);
        let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse(text)));
        let Ok(parsed) = parsed else {
            return Err(InvalidExpression("it cannot be read".to_owned()));
        };
        let parsed = parsed.map_err(|errors| {
            let first = errors.errors.first();
            InvalidExpression(first.map_or_else(
                || "it cannot be read".to_owned(),
                |error| {
                    let words = error.msg.lines().next().unwrap_or_default().trim().to_owned();
                    match error.pos {
                        (_, column) if column > 0 => format!("{words} (column {column})"),
                        _ => words,
                    }
                },
            ))
        })?;
        let mut walk = Walk::default();
        walk.visit(&parsed, 0)?;
        if walk.cost.loops > 2 * EXPRESSION_LOOPS_MAX {
            return Err(InvalidExpression(format!(
                "at most {EXPRESSION_LOOPS_MAX} loops stand within each other"
            )));
        }
        Ok(Self {
            parsed,
            cost: walk.cost,
        })
    }

    /// Whether an object is as it says. What asks for a field that is not there is not so: `has(object.status.phase)`
    /// asks whether it is.
    ///
    /// # Errors
    ///
    /// It gives no boolean, or takes too long for this object, or does not fit it otherwise.
    pub fn holds(&self, object: &Value) -> Result<bool, Unevaluated> {
        if self.cost.steps(object) > EXPRESSION_STEPS_MAX {
            return Err(Unevaluated("the object is too large for this expression".to_owned()));
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| self.outcome(object)));
        outcome.unwrap_or_else(|_| Err(Unevaluated("the expression cannot be evaluated".to_owned())))
    }

    fn outcome(&self, object: &Value) -> Result<bool, Unevaluated> {
        let unfit = |what: &str| Unevaluated(format!("the expression cannot be evaluated: {what}"));
        let mut context = Context::default();
        let value = cel::to_value(Numbers(object)).map_err(|_| unfit("the object cannot be read"))?;
        context.add_variable_from_value("object", value);
        match context.resolve(&self.parsed) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => {
                let kind = other.type_of();
                Err(Unevaluated(format!("the expression gives a {kind} and no boolean")))
            }
            // What is not there is not as it should be.
            Err(ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_)) => Ok(false),
            Err(ExecutionError::NoSuchOverload(error)) => Err(unfit(&error.to_string())),
            Err(ExecutionError::UndeclaredReference(name)) => Err(unfit(&format!("{name} is not known"))),
            // The others quote values of the object, which may be secret.
            Err(_) => Err(unfit("it does not fit this object")),
        }
    }
}

/// JSON with every whole number of one type, so that `object.status.replicas == 1` compares like with like.
struct Numbers<'a>(&'a Value);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_i64() {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Numbers)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, Numbers(value)))),
            other => other.serialize(serializer),
        }
    }
}

impl Cost {
    fn steps(self, object: &Value) -> u64 {
        let longest = self
            .longest
            .max(longest(object))
            .max(1)
            .saturating_mul(1 + self.additions);
        self.nodes.saturating_mul(longest.saturating_pow(self.loops))
    }
}

/// Elements of the longest list or map in a value.
fn longest(value: &Value) -> u64 {
    let within = |own: usize, inner: Option<u64>| inner.unwrap_or(0).max(u64::try_from(own).unwrap_or(u64::MAX));
    match value {
        Value::Array(items) => within(items.len(), items.iter().map(longest).max()),
        Value::Object(fields) => within(fields.len(), fields.values().map(longest).max()),
        _ => 0,
    }
}

/// One walk through an expression: what it costs, and whether it knows every name.
struct Walk {
    cost: Cost,
    /// Names that loops made.
    names: Vec<String>,
    /// Parts around the one that is looked at.
    depth: usize,
}

impl Default for Walk {
    fn default() -> Self {
        let cost = Cost {
            nodes: 0,
            loops: 0,
            longest: 0,
            additions: 0,
        };
        Self {
            cost,
            names: Vec::new(),
            depth: 0,
        }
    }
}

impl Walk {
    fn visit(&mut self, at: &IdedExpr, loops: u32) -> Result<(), InvalidExpression> {
        self.cost.nodes += 1;
        self.cost.loops = self.cost.loops.max(loops);
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return Err(InvalidExpression("it is nested too deep".to_owned()));
        }
        self.visit_parts(at, loops)?;
        self.depth -= 1;
        Ok(())
    }

    fn visit_parts(&mut self, at: &IdedExpr, loops: u32) -> Result<(), InvalidExpression> {
        match &at.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.visit(&select.operand, loops),
            Expr::Call(call) => {
                self.function(&call.func_name)?;
                let parts = call.target.as_deref().into_iter().chain(&call.args);
                parts.into_iter().try_for_each(|part| self.visit(part, loops))
            }
            Expr::List(list) => {
                self.size(list.elements.len());
                list.elements.iter().try_for_each(|element| self.visit(element, loops))
            }
            Expr::Map(map) => {
                self.size(map.entries.len());
                map.entries.iter().try_for_each(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        self.visit(&entry.key, loops)?;
                        self.visit(&entry.value, loops)
                    }
                    EntryExpr::StructField(field) => self.visit(&field.value, loops),
                })
            }
            Expr::Struct(_) => Err(InvalidExpression(
                "it makes a message, and there are none here".to_owned(),
            )),
            Expr::Comprehension(each) => {
                self.visit(&each.iter_range, loops)?;
                self.visit(&each.accu_init, loops)?;
                let before = self.names.len();
                self.names.push(each.iter_var.clone());
                self.names.extend(each.iter_var2.clone());
                self.names.push(each.accu_var.clone());
                let builds = matches!(each.accu_init.expr, Expr::List(_) | Expr::Map(_));
                let inner = loops + if builds { 2 } else { 1 };
                for part in [&each.loop_cond, &each.loop_step] {
                    self.visit(part, inner)?;
                }
                self.visit(&each.result, loops)?;
                self.names.truncate(before);
                Ok(())
            }
        }
    }

    fn size(&mut self, elements: usize) {
        self.cost.longest = self.cost.longest.max(u64::try_from(elements).unwrap_or(u64::MAX));
    }

    fn name(&self, name: &str) -> Result<(), InvalidExpression> {
        let is_known = name == "object" || TYPES.contains(&name) || self.names.iter().any(|known| known == name);
        if is_known {
            return Ok(());
        }
        Err(InvalidExpression(format!(
            "{name} is not known: an expression is about object"
        )))
    }

    fn function(&mut self, name: &str) -> Result<(), InvalidExpression> {
        if name == "_+_" {
            self.cost.additions += 1;
        }
        let is_operator = !name.starts_with(|first: char| first.is_ascii_alphabetic());
        if is_operator || FUNCTIONS.contains(&name) {
            return Ok(());
        }
        Err(InvalidExpression(format!("there is no function {name}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({"metadata": {"name": "db", "generation": 2}, "spec": {"size": 3},
            "status": {"phase": "Running", "replicas": 3, "ratio": 0.5, "note": null, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}})
    }

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expression.holds(&object()), Ok(expected), "{text}");
    }

    #[test]
    fn an_expression_says_how_an_object_is() {
        check("object.status.phase == 'Running'", true);
        check(
            "object.status.replicas == object.spec.size && object.status.replicas >= 3",
            true,
        );
        check("object.status.ratio < 1.0", true);
        check(
            "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            true,
        );
        check("object.status.conditions.all(c, c.status == 'True')", false);
        check(
            "object.status.conditions.filter(c, c.status == 'True').size() == 1",
            true,
        );
        check("object.status.conditions.map(c, c.type).exists(t, t == 'Synced')", true);
        check("object.status.phase in ['Running', 'Done']", true);
        check(
            "object.status.phase.startsWith('Run') && object.status.phase.matches('^R.*g$')",
            true,
        );
        check("has(object.status.note) && object.status.note == null", true);
        check("int(string(object.spec.size)) == 3 ? true : false", true);
        check("type(object.spec.size) == int", true);
    }

    #[test]
    fn what_is_not_there_is_not_so() {
        check("object.status.gone == 'x'", false);
        check("object.status.conditions[7].status == 'True'", false);
        check("has(object.status.gone)", false);
        check("has(object.status.gone) && object.status.gone.deep == 1", false);
        check("!has(object.status.gone)", true);
    }

    #[test]
    fn what_is_no_expression_is_said_when_it_is_read() {
        let wrong = |text: &str| Expression::parse(text).expect_err(text).to_string();
        assert_eq!(
            wrong("objct.status.phase == 'x'"),
            "objct is not known: an expression is about object"
        );
        assert_eq!(
            wrong("object.status.phase.lower() == 'x'"),
            "there is no function lower"
        );
        assert_eq!(
            wrong("object.status.conditions.all(c, d.status == 'x')"),
            "d is not known: an expression is about object"
        );
        assert!(
            wrong("object.status.phase == ").contains("column"),
            "{}",
            wrong("object.status.phase == ")
        );
        assert!(!wrong("").is_empty());
    }

    #[test]
    fn what_gives_no_boolean_says_nothing() {
        let outcome = |text: &str| {
            Expression::parse(text)
                .expect(text)
                .holds(&object())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            outcome("object.status.phase"),
            Err("the expression gives a string and no boolean".to_owned())
        );
        assert!(outcome("object.status.phase + 1 == 2").is_err());
    }

    #[test]
    fn an_expression_takes_a_bounded_time() {
        let long = "object.x == 1 || ".repeat(100) + "true";
        assert!(Expression::parse(&long).is_err(), "it is too long");
        for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("{1:", "}")] {
            let deep = format!("{}1{}", open.repeat(300), close.repeat(300));
            // Whatever is not refused ends.
            if let Ok(deep) = Expression::parse(&deep) {
                let _ = deep.holds(&object());
            }
        }
        assert!(
            Expression::parse(&format!("{}1{}", "[".repeat(100), "]".repeat(100))).is_err(),
            "a hundred lists in lists"
        );
        let chain = format!("object{} == 1", ".a".repeat(400));
        assert!(Expression::parse(&chain).is_err(), "four hundred fields in fields");
        let sum = format!("{}1 == 1", "1 + ".repeat(200));
        assert!(Expression::parse(&sum).is_err(), "two hundred additions");
        let loops = |depth: usize| {
            let open: String = (0..depth)
                .map(|index| format!("object.list.exists(v{index}, "))
                .collect();
            format!("{open}true{}", ")".repeat(depth))
        };
        assert!(Expression::parse(&loops(2)).is_ok());
        assert!(Expression::parse(&loops(9)).is_err(), "nine loops within each other");
        let list: Vec<_> = (0..100_000).collect();
        let large = json!({"list": list});
        let two = Expression::parse(&loops(2)).expect("two loops");
        assert!(two.holds(&large).is_err(), "ten thousand million steps");
        let one = Expression::parse("object.list.exists(v, v == 99999)").expect("one loop");
        assert_eq!(one.holds(&large), Ok(true));
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[ -~]{0,60}") {
            if let Ok(expression) = Expression::parse(&text) {
                let _ = expression.holds(&object());
            }
        }
    }
}
