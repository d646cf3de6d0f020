//! Remotes, judged by the real `git` where it has a say. https, ssh and Gitea are in the journeys of `tests/`.

mod address;
mod copies;
mod failures;
mod login;
