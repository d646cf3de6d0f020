//! Source against repositories that the real `git` makes.

mod branch;
mod introduced;
mod previous;
mod rewrite;
mod tree;
mod watch;

use render::Revision;

use super::Source;
use crate::hub::repository::fixture::Fixture;

fn open(fixture: &Fixture) -> Source {
    Source::open(fixture.path(), "main").expect("the fixture is a repository")
}

fn revision(id: &str) -> Revision {
    Revision::parse(id).expect("git prints full ids")
}
