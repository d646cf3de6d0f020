//! Helm releases: what the HelmCharts of units ask for, kept by the `helm` program beside the pass.
//!
//! In: the HelmCharts of a delivery ([`wanted`]). Out: releases as Helm knows them, and how each fares
//! ([`Told`]). Reading order: [`session`] (which releases there are to be) → [`task`] (one for each) → [`live`]
//! (what is there, read from labels) → [`decide`] (what is done next, pure) → [`run`] (one run of helm: folder,
//! [`access`], [`chart`], [`program`]) → [`manifest`] and [`objects`] (health, and drift: [`difference`] of one object,
//! kept in its [`manner`]). What watches see of them goes through the session to the task ([`touched`], [`follow`]).
//!
//! Beside it, [`preview()`] renders a chart for the hub, to know beforehand what it brings; what runs is what Helm
//! installs.

mod access;
mod adoption;
mod chart;
mod decide;
mod definitions;
mod difference;
mod follow;
mod live;
mod manifest;
mod manner;
mod news;
mod objects;
#[cfg(feature = "hub")]
mod preview;
mod program;
mod run;
mod session;
mod task;
mod touched;
mod undo;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use render::ObjectKey;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, info_span};

use self::chart::Kept;
use self::follow::Follows;
use self::objects::KnownKinds;
use self::run::Means;
use self::task::{Memory, Shared, Task};
use self::touched::Touches;
use crate::limits::RELEASE_NEWS_MAX;
use crate::wire::Corrections;

#[cfg(any(feature = "hub", feature = "agent"))]
pub(super) use self::live::LABEL_OWNER;
pub(super) use self::news::{News, Order, Told};
#[cfg(feature = "hub")]
pub(crate) use self::preview::{NoHelm, preview};
pub(super) use self::session::{Chart, names};

/// How releases are made.
#[derive(Clone, Debug)]
pub struct HelmOptions {
    /// The program; default `helm`, as the search path finds it.
    pub program: PathBuf,
    /// Where archives of charts are kept for times without network, and where runs have their files. Without
    /// one, nothing is kept, and runs use the system's folder for such files.
    pub folder: Option<PathBuf>,
}

impl Default for HelmOptions {
    fn default() -> Self {
        Self {
            program: PathBuf::from("helm"),
            folder: None,
        }
    }
}

/// The releases of a session; their tasks end with it.
pub(super) struct Releases {
    shared: Arc<Shared>,
    running: BTreeMap<ObjectKey, Running>,
    told: BTreeMap<ObjectKey, Told>,
    follows: Follows,
    sender: mpsc::Sender<(ObjectKey, News)>,
    receiver: mpsc::Receiver<(ObjectKey, News)>,
}

struct Running {
    orders: watch::Sender<Order>,
    touches: Touches,
    task: AbortOnDropHandle<()>,
}

impl Releases {
    /// None yet.
    pub(super) fn new(client: Client, options: &HelmOptions, resync: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(RELEASE_NEWS_MAX);
        let runs = options.folder.as_ref().map(|folder| folder.join("runs"));
        if let Some(runs) = &runs {
            run::clean(runs);
        }
        let means = Means {
            program: options.program.clone(),
            folder: runs,
            kept: Kept::new(options.folder.as_ref().map(|folder| folder.join("charts"))),
            client,
        };
        Self {
            shared: Arc::new(Shared {
                means,
                kinds: KnownKinds::default(),
                resync,
            }),
            running: BTreeMap::new(),
            told: BTreeMap::new(),
            follows: Follows::default(),
            sender,
            receiver,
        }
    }

    /// How a release fares, once its task said so.
    pub(super) fn told(&self, chart: &ObjectKey) -> Option<&Told> {
        self.told.get(chart)
    }

    /// What a task says next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<(ObjectKey, News)> {
        self.receiver.recv().await
    }

    /// Takes in what a task says, and all else that tasks said already.
    fn take(&mut self, first: (ObjectKey, News)) -> Taken {
        let mut taken = Taken::default();
        let mut next = Some(first);
        while let Some((chart, news)) = next {
            match news {
                News::Told(told) => {
                    taken.any_gone |= told.gone;
                    self.told.insert(chart, *told);
                }
                News::Follow(objects) => {
                    self.follows.put(&chart, objects);
                    taken.followed.insert(chart);
                }
                News::Corrected(corrections) => taken.corrections = taken.corrections.and(corrections),
            }
            next = self.receiver.try_recv().ok();
        }
        taken
    }

    /// Works on exactly these, and lets those that are held go on as they were told.
    fn keep(&mut self, orders: BTreeMap<ObjectKey, Order>, held: &BTreeSet<ObjectKey>) {
        let is_meant = |chart: &ObjectKey| orders.contains_key(chart) || held.contains(chart);
        self.running
            .retain(|chart, running| is_meant(chart) && !running.task.is_finished());
        self.told.retain(|chart, _| is_meant(chart));
        let running = &self.running;
        self.follows.retain(|chart| running.contains_key(chart));
        for (chart, order) in orders {
            let Some(running) = self.running.get(&chart) else {
                self.start(chart, order);
                continue;
            };
            running.orders.send_if_modified(|before| {
                let changed = !before.is_same(&order);
                *before = order;
                changed
            });
        }
    }

    fn start(&mut self, chart: ObjectKey, order: Order) {
        let (orders, receiver) = watch::channel(order);
        let span = info_span!("release", object = %chart);
        let touches = Touches::default();
        let task = Task {
            chart: chart.clone(),
            shared: self.shared.clone(),
            orders: receiver,
            listener: touches.listen(),
            touches: touches.clone(),
            news: self.sender.clone(),
            memory: Memory::default(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.work().instrument(span)));
        let running = Running { orders, touches, task };
        self.running.insert(chart, running);
    }
}

/// What was taken in of what tasks said.
#[derive(Default)]
struct Taken {
    /// Whether a release is gone.
    any_gone: bool,
    /// Releases that say anew which objects they have.
    followed: BTreeSet<ObjectKey>,
    /// What was put right.
    corrections: Corrections,
}
