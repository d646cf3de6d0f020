//! Random faults between pushes, and what is there when they are over.
//!
//! A seed makes a run; a failing one names it, and `FLOTILLA_SEED` repeats it.

use std::collections::BTreeMap;
use std::time::Duration;

use flotilla_tests::eventually;
use harness::{Backup, Fault, Requests};

use super::support::*;

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        // Xorshift: any seed but zero runs through all numbers.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// What goes on: the fleet, what its units should say, and backups of clusters.
struct Soak {
    fleet: Fleet,
    dice: Dice,
    names: Vec<String>,
    units: BTreeMap<usize, String>,
    removed: Vec<usize>,
    backups: BTreeMap<String, Backup>,
}

impl Soak {
    /// One thing goes wrong, somewhere.
    fn disturb(&mut self) {
        let name = self.names[self.dice.below(self.names.len())].clone();
        let server = self.fleet.clusters[&name].server().clone();
        let some = |share: f64| Requests {
            share: Some(share),
            ..Requests::default()
        };
        match self.dice.below(10) {
            0 => {
                let retry_after = Duration::from_secs(1);
                server.faults().set(Fault::TooManyRequests { retry_after }, some(0.3));
            }
            1 => {
                server.faults().set(Fault::ServerError { code: 503 }, some(0.3));
            }
            2 => {
                let latency = Duration::from_millis(20 + self.dice.below(200) as u64);
                server.faults().set(Fault::Latency(latency), some(0.5));
            }
            3 => server.faults().drop_watches(),
            4 => server.faults().take_away_group("apps"),
            5 => server.faults().clear_all(),
            6 => {
                self.backups.insert(name, server.backup());
            }
            7 => {
                if let Some(backup) = self.backups.get(&name) {
                    server.restore(backup);
                }
            }
            // A tunnel is cut in good order, and by a hub that goes away.
            8 => self.fleet.start_agent(&name),
            _ => {
                self.fleet.stop_hub();
                self.fleet.start_hub();
            }
        }
    }

    fn write(&self, unit: usize, text: &str) {
        let (name, replicas) = (format!("unit-{unit}"), text.len() % 4);
        let files = format!(
            "{}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{namespace: default, name: {name}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: web, image: 'web:{text}'}}]}}\n",
            config_map(&name, text)
        );
        self.fleet
            .repository
            .write(&format!("subscriptions/{unit}.yaml"), subscription(&name));
        self.fleet
            .repository
            .write(&format!("feeds/{name}/objects.yaml"), files);
    }

    /// One unit is changed, added or removed.
    fn push(&mut self, number: usize) {
        let unit = self.dice.below(8);
        if self.units.contains_key(&unit) && self.units.len() > 1 && self.dice.below(5) == 0 {
            self.units.remove(&unit);
            self.removed.push(unit);
            self.fleet.repository.remove(&format!("subscriptions/{unit}.yaml"));
        } else {
            let text = format!("text-{number}");
            self.write(unit, &text);
            self.removed.retain(|removed| *removed != unit);
            self.units.insert(unit, text);
        }
        self.fleet.push("change", &[]);
    }

    /// Everything works again, and every unit says something new.
    #[track_caller]
    fn calm(&mut self, text: &str) {
        for cluster in self.fleet.clusters.values() {
            cluster.server().faults().clear_all();
        }
        let units: Vec<_> = self.units.keys().copied().collect();
        for unit in units {
            self.write(unit, text);
            self.units.insert(unit, text.to_owned());
        }
        self.fleet.push("calm", &[]);
        for (unit, text) in &self.units {
            self.fleet.until_text_everywhere(&format!("unit-{unit}"), text);
        }
        for (name, unit) in self
            .names
            .iter()
            .flat_map(|name| self.removed.iter().map(move |unit| (name, unit)))
        {
            let object = format!("unit-{unit}");
            eventually(LIMIT, &format!("{object} is gone from {name}"), || {
                match self.fleet.text(name, &object) {
                    None => Ok(()),
                    found => Err(format!("{found:?}")),
                }
            });
        }
        self.fleet.until_settled();
    }
}

#[test]
fn a_fleet_comes_to_rest_after_faults_and_leaves_no_task_behind() {
    let seed = std::env::var("FLOTILLA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(20_261_129).max(1);
    println!("FLOTILLA_SEED={seed}");
    let fleet = Fleet::start(long_or(20, 3));
    let mut soak = Soak {
        names: fleet.clusters.keys().cloned().collect(),
        fleet,
        dice: Dice(seed),
        units: BTreeMap::from([(0, "begin".to_owned())]),
        removed: Vec::new(),
        backups: BTreeMap::new(),
    };
    soak.calm("first");
    let tasks = |soak: &Soak| soak.fleet.runtime.metrics().num_alive_tasks();
    let before = tasks(&soak);
    for number in 0..long_or(300, 25) {
        soak.disturb();
        soak.push(number);
    }
    soak.calm("last");
    // Watches of kinds that were not there before are the clusters' own; each unit adds none.
    let allowed = before + 4 * soak.names.len();
    eventually(LIMIT, "tasks have ended", || {
        let now = tasks(&soak);
        if now <= allowed {
            Ok(())
        } else {
            Err(format!("{now} tasks, {before} at the beginning"))
        }
    });
    let clusters = soak.names.len();
    assert_eq!(
        soak.fleet.state().clusters.len(),
        clusters,
        "the hub knows each cluster once"
    );
}
