//! The kinds that are served, with their names and columns. One list of like things.

/// Our group.
pub(in crate::hub) const GROUP: &str = "fleet.flotilla.dev";

/// Its version.
pub(super) const VERSION: &str = "v1alpha1";

/// A kind that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    /// One object: the fleet as a whole.
    Fleets,
    /// Registered clusters.
    ManagedClusters,
    /// Units.
    Subscriptions,
    /// One unit on one cluster.
    Placements,
    /// One variant of a unit.
    Descriptions,
    /// What is wrong in the repository.
    Findings,
    /// What is held at an older revision.
    Suspensions,
}

/// How a kind is called.
pub(super) struct Names {
    pub(super) plural: &'static str,
    pub(super) singular: &'static str,
    pub(super) kind: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) namespaced: bool,
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) type_name: &'static str,
    /// 0: always shown; 1: with `-o wide`.
    pub(super) priority: i32,
    pub(super) description: &'static str,
}

const fn text(name: &'static str, description: &'static str) -> Column {
    Column {
        name,
        type_name: "string",
        priority: 0,
        description,
    }
}

const fn number(name: &'static str, description: &'static str) -> Column {
    Column {
        name,
        type_name: "integer",
        priority: 0,
        description,
    }
}

const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

/// Since when an object is so.
pub(super) const AGE: Column = text(
    "Age",
    "Time since the source commit that made it so: of a Subscription, the first of those that placed it; of the Fleet, its first release.",
);

const READY: Column = text(
    "Ready",
    "Whether all of it is as it should be; Unknown while something is under way.",
);
const MESSAGE: Column = wide(text("Message", "Why it is ready or not."));

impl Resource {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::Fleets,
        Self::ManagedClusters,
        Self::Subscriptions,
        Self::Placements,
        Self::Descriptions,
        Self::Findings,
        Self::Suspensions,
    ];

    /// The resource that a path names.
    pub(super) fn from_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.names().plural == plural)
    }

    /// How it is called.
    pub(super) fn names(self) -> Names {
        let names = |plural, singular, kind, short, namespaced| Names {
            plural,
            singular,
            kind,
            short,
            namespaced,
        };
        match self {
            Self::Fleets => names("fleets", "fleet", "Fleet", &[], false),
            Self::ManagedClusters => names(
                "managedclusters",
                "managedcluster",
                "ManagedCluster",
                &["mcls", "cluster", "clusters"],
                true,
            ),
            Self::Subscriptions => names("subscriptions", "subscription", "Subscription", &["sub", "subs"], true),
            Self::Placements => names("placements", "placement", "Placement", &["place"], true),
            Self::Descriptions => names("descriptions", "description", "Description", &["desc"], true),
            Self::Findings => names("findings", "finding", "Finding", &[], false),
            Self::Suspensions => names("suspensions", "suspension", "Suspension", &[], false),
        }
    }

    /// Where its age stands among the cells, name included: before what is wide. `None`: Git does not know it.
    pub(super) fn age_index(self) -> Option<usize> {
        let narrow = || self.columns().iter().take_while(|column| column.priority == 0).count() + 1;
        match self {
            Self::Fleets | Self::Subscriptions | Self::Placements | Self::Descriptions => Some(narrow()),
            Self::ManagedClusters | Self::Findings | Self::Suspensions => None,
        }
    }

    /// Its columns after the name; its age is put between them.
    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Self::Fleets => FLEET,
            Self::ManagedClusters => MANAGED_CLUSTER,
            Self::Subscriptions => SUBSCRIPTION,
            Self::Placements => PLACEMENT,
            Self::Descriptions => DESCRIPTION,
            Self::Findings => FINDING,
            Self::Suspensions => SUSPENSION,
        }
    }
}

const FLEET: &[Column] = &[
    READY,
    text("Revision", "The newest source revision that was planned."),
    number("Sequence", "How often something was released."),
    text("Clusters", "Clusters that are connected, of all."),
    text("Units", "Units that are ready, of all."),
    number("Errors", "Findings that hold something back."),
    wide(text("Rendered", "The commit of the rendered ref.")),
    wide(text("Released", "The commit of the released ref.")),
    MESSAGE,
];

const MANAGED_CLUSTER: &[Column] = &[
    READY,
    text(
        "Session",
        "Connected, Disconnected, or NeverSeen since this hub runs; Renamed for a name whose key is another one's now.",
    ),
    text(
        "Away",
        "Since when it is away; - while it is connected, and where it was not seen to go.",
    ),
    text("Version", "The version of its API server."),
    number(
        "Sequence",
        "The sequence it took last; an unchanged list is not sent again.",
    ),
    text("Units", "Units that are ready there, of all."),
    text(
        "RTT",
        "Of the last ping through its tunnel, where that ends at this hub.",
    ),
    text(
        "Agent",
        "The version of its agent; with a star where the hub has another one.",
    ),
    text(
        "Key-Age",
        "Since when the key in use is in the cluster's file, as Git says.",
    ),
    wide(text("Sync", "Who applies: Dual and Pull the agent, Push the hub.")),
    wide(text("Cluster-ID", "The id in its file.")),
    MESSAGE,
];

const SUBSCRIPTION: &[Column] = &[
    READY,
    text("Revision", "The source revision it was made from."),
    text("Clusters", "Clusters where it is ready, of all."),
    wide(number("Pending", "Clusters where it is under way.")),
    wide(number("Failed", "Clusters where something is wrong.")),
    wide(number("Offline", "Clusters that are away.")),
    wide(number("Objects", "Objects that its feeds select.")),
    MESSAGE,
];

const PLACEMENT: &[Column] = &[
    READY,
    text("Cluster", "Where it is placed."),
    text("Variant", "Which variant it gets."),
    text("Revision", "The source revision since which the variant is as it is."),
    text("Waits-For", "The lowest rung of the ladder that is not reached."),
    wide(text("Objects", "Objects that are as they should be, of all.")),
    wide(text(
        "Drift",
        "What is done there about what others change: Correct, Report or Freeze.",
    )),
    MESSAGE,
];

const DESCRIPTION: &[Column] = &[
    text("Digest", "Names its content."),
    text("Revision", "The source revision since which it is as it is."),
    number("Clusters", "Clusters that get it."),
    wide(text("Overrides", "What made it differ from the Base.")),
];

const FINDING: &[Column] = &[
    text("Severity", "Error holds something back; Warning and Info do not."),
    text("Reason", "A word for tools."),
    text("Place", "File and line."),
    text("Message", "What is wrong."),
    wide(text("Field", "The field in the file.")),
    wide(text("Unit", "The unit that is held.")),
    wide(text("Cluster", "The cluster it is about.")),
    wide(text("Hint", "What to do about it.")),
];

const SUSPENSION: &[Column] = &[
    text("In-Force", "Whether it holds now: False once its time is over."),
    text("Unit", "The unit that it holds; * is every one."),
    text("Clusters", "Where it holds; * is every cluster."),
    text("Until", "From when on it holds nothing."),
    number(
        "Holds",
        "Units on clusters that it keeps as they are, each counted once per cluster.",
    ),
    wide(text("Place", "File and line.")),
    wide(text("Reason", "Why, in a person's words.")),
];
