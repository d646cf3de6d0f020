//! A hub whose repository is elsewhere: behind https, behind ssh, and at Gitea.

mod gitea;
mod https;
mod killed;
mod ssh;
mod support;
