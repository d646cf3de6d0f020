//! The tables' form, which a person writes and reads.
//!
//! ```text
//! ## what is wrong
//! file PATH          followed by lines `| text`: writes a file of the clone (␉ is a tab, ␍ a carriage return)
//! edit PATH          followed by lines `- old` and `+ new`: replaces a text that is there once
//! sh LINE            anything else, by a shell in the clone
//! taken              somebody listens on $PORT already
//! web                what answers on $PORT is a web server that has nothing
//! hub                a hub of the clone's remote listens on $PORT, and its API answers on $PORT2
//! until WORDS        the command does not end by itself: it is ended once a line has these words
//! quiet              what goes to stdout is no part of the table
//! $ flotilla plan    what is typed, in the clone
//! exit 2             and what comes of it: the exit code, stderr behind `> `, stdout behind `1 `
//! > error: …
//! ```

/// One file.
pub(super) struct Table {
    /// What stands before the first case.
    head: Vec<String>,
    pub(super) cases: Vec<Case>,
}

/// One mistake.
pub(super) struct Case {
    pub(super) name: String,
    /// Its lines up to the command, for writing them back.
    lines: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) command: String,
    pub(super) beside: Beside,
    pub(super) until: Option<String>,
    pub(super) is_quiet: bool,
    pub(super) expected: Vec<String>,
}

/// What runs beside the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    Taken,
    Web,
    Hub,
}

/// What is done before the command.
pub(super) enum Step {
    File { path: String, text: String },
    Edit { path: String, old: String, new: String },
    Shell(String),
}

impl Table {
    pub(super) fn read(text: &str) -> Self {
        let mut parts = text.split("\n## ");
        let head = parts.next().unwrap().lines().map(str::to_owned).collect();
        Self {
            head,
            cases: parts.map(Case::read).collect(),
        }
    }

    /// The table with other outcomes.
    pub(super) fn written<'a>(&'a self, outcome: impl Fn(&'a Case) -> &'a Vec<String>) -> String {
        let mut lines = self.head.clone();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        for case in &self.cases {
            lines.extend([String::new(), format!("## {}", case.name)]);
            lines.extend(case.lines.iter().cloned());
            lines.extend(outcome(case).iter().cloned());
        }
        lines.join("\n") + "\n"
    }
}

impl Case {
    fn read(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let mut case = Self {
            name: lines.next().unwrap().to_owned(),
            lines: Vec::new(),
            steps: Vec::new(),
            command: String::new(),
            beside: Beside::Nothing,
            until: None,
            is_quiet: false,
            expected: Vec::new(),
        };
        for line in lines {
            if case.command.is_empty() {
                case.lines.push(line.to_owned());
                case.line(line);
            } else {
                case.expected.push(line.to_owned());
            }
        }
        assert!(!case.command.is_empty(), "{} has no command", case.name);
        case
    }

    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let path = rest.to_owned();
        match (word, self.steps.last_mut()) {
            ("$", _) => self.command = path,
            ("taken", _) => self.beside = Beside::Taken,
            ("web", _) => self.beside = Beside::Web,
            ("hub", _) => self.beside = Beside::Hub,
            ("until", _) => self.until = Some(path),
            ("quiet", _) => self.is_quiet = true,
            ("sh", _) => self.steps.push(Step::Shell(path)),
            ("file", _) => self.steps.push(Step::File {
                path,
                text: String::new(),
            }),
            ("edit", _) => self.steps.push(Step::Edit {
                path,
                old: String::new(),
                new: String::new(),
            }),
            ("|", Some(Step::File { text, .. })) => add(text, rest),
            ("-", Some(Step::Edit { old, .. })) => add(old, rest),
            ("+", Some(Step::Edit { new, .. })) => add(new, rest),
            _ => panic!("{}: {line:?} says nothing", self.name),
        }
    }
}

fn add(text: &mut String, line: &str) {
    text.push_str(&line.replace('␉', "\t").replace('␍', "\r"));
    text.push('\n');
}
