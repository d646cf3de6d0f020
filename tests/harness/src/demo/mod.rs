//! `cargo demo`: a fleet to push to, with nothing but Rust and git.
//!
//! Enters: a folder, or none. Leaves: a repository to push to, a hub and simulated clusters in this process, and
//! lines that say what became of each push; with `--once`, one push made and followed room by room. Reading
//! order: `arguments` → `folder` → `repository` → `world` (everything that runs) → `follow` or `once`.
//!
//! Deliberately not here: anything that decides. Hub and agents are the real ones, only the clusters are
//! simulated ([`crate::fleet`]).

mod arguments;
mod folder;
mod follow;
mod git;
mod once;
mod places;
mod repository;
mod rooms;
mod text;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio_util::sync::CancellationToken;

use self::arguments::Arguments;
use self::folder::Folder;
use self::rooms::Rooms;
use self::world::World;

/// Wrong usage, as sysexits has it.
const USAGE: u8 = 64;

/// How long blocking work may take to end after the rest has.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// Runs the demo, or `flotilla` where the process goes by that name.
pub fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    if Path::new(&name).file_name().is_some_and(|name| name == "flotilla") {
        return reconciler::cli::main();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help is an answer; everything else is wrong usage.
            let code = if error.use_stderr() { USAGE } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    match start(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let folder = match Folder::open(arguments.folder.as_deref()) {
        Ok(folder) => folder,
        Err(refusal) => {
            eprintln!("error: {refusal}\nhint: {}", refusal.hint());
            return Ok(ExitCode::from(USAGE));
        }
    };
    let rooms = Rooms::start(&folder.log())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run(&arguments, &folder, &rooms));
    runtime.shutdown_timeout(STOP_TIMEOUT);
    if ended.is_err() {
        // What went wrong may stand in the log.
        folder.keep();
    }
    eprint!("{}", text::farewell(&folder));
    ended
}

async fn run(arguments: &Arguments, folder: &Folder, rooms: &Rooms) -> anyhow::Result<ExitCode> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let shutdown = CancellationToken::new();
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let mut told = std::pin::pin!(told);
    let world = tokio::select! {
        biased;
        () = &mut told => return Ok(ExitCode::FAILURE),
        world = Box::pin(World::start(arguments, folder, &shutdown)) => world?,
    };
    let mut world = world;
    let ended = tokio::select! {
        biased;
        () = &mut told => Ok(ExitCode::from(if arguments.once { 1 } else { 0 })),
        failed = world.hub.ended() => Err(match failed {
            Some(error) => anyhow::Error::new(error).context("the hub ended"),
            None => anyhow::anyhow!("the hub broke; its log says more"),
        }),
        ended = show(arguments, folder, rooms, &world.view) => ended,
    };
    shutdown.cancel();
    world.stop().await;
    ended
}

async fn show(arguments: &Arguments, folder: &Folder, rooms: &Rooms, view: &world::View) -> anyhow::Result<ExitCode> {
    once::first(view, rooms).await?;
    if arguments.once {
        return once::run(folder, rooms, view).await;
    }
    repository::fetch(folder).await?;
    print!("{}", text::welcome(folder, view));
    follow::run(folder, rooms, view).await
}
