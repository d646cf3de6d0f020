use proptest::prelude::*;

use super::*;

fn unit() -> UnitKey {
    UnitKey::new("default", "web").expect("it is a valid unit")
}

fn name(index: usize) -> ClusterName {
    ClusterName::parse(format!("c{index:02}")).expect("it is a valid name")
}

fn seat(had: u64, room: Room) -> Seat {
    Seat {
        had,
        weight: 1,
        least: 0,
        most: u64::MAX,
        room,
        rank: 0,
        group: String::new(),
    }
}

fn seats(list: impl IntoIterator<Item = Seat>) -> Seats {
    list.into_iter()
        .enumerate()
        .map(|(index, seat)| (name(index), seat))
        .collect()
}

#[track_caller]
fn check(rule: Rule, wanted: u64, list: &[Seat], expected: &[u64], unplaced: u64) {
    let shares = share(&unit(), wanted, rule, None, &seats(list.to_vec()));
    let found: Vec<u64> = shares.replicas.values().copied().collect();
    assert_eq!((found.as_slice(), shares.unplaced), (expected, unplaced));
}

fn rooms(list: &[(u64, u64)]) -> Vec<Seat> {
    list.iter()
        .map(|(had, room)| seat(*had, Room::Replicas(*room)))
        .collect()
}

#[test]
fn what_is_new_goes_by_the_room_there_is() {
    check(Rule::Spread, 9, &rooms(&[(0, 6), (0, 12)]), &[3, 6], 0);
    check(Rule::Spread, 6, &rooms(&[(2, 4), (2, 6)]), &[3, 3], 0);
}

#[test]
fn what_finds_no_room_is_counted_and_never_dropped() {
    check(Rule::Spread, 30, &rooms(&[(0, 12), (0, 14)]), &[12, 14], 4);
    check(Rule::Binpack, 30, &rooms(&[(0, 12), (0, 14)]), &[12, 14], 4);
    check(Rule::Spread, 5, &[], &[], 5);
}

#[test]
fn with_equal_numbers_nothing_moves_whatever_the_room() {
    check(Rule::Spread, 8, &rooms(&[(7, 3), (1, 100)]), &[7, 1], 0);
    check(Rule::Binpack, 8, &rooms(&[(7, 3), (1, 100)]), &[7, 1], 0);
}

#[test]
fn more_replicas_keep_what_is_placed() {
    check(Rule::Spread, 10, &rooms(&[(7, 3), (1, 100)]), &[7, 3], 0);
}

#[test]
fn fewer_replicas_are_taken_in_proportion() {
    check(Rule::Spread, 4, &rooms(&[(6, 9), (2, 9)]), &[3, 1], 0);
}

#[test]
fn packing_fills_one_cluster_after_the_other() {
    let mut list = rooms(&[(0, 5), (0, 5), (0, 5)]);
    (list[0].rank, list[1].rank, list[2].rank) = (2, 0, 1);
    check(Rule::Binpack, 7, &list, &[0, 5, 2], 0);
}

#[test]
fn a_cluster_that_nobody_hears_of_keeps_what_it_has_and_gets_no_more() {
    check(
        Rule::Spread,
        8,
        &[seat(2, Room::Replicas(10)), seat(2, Room::Frozen)],
        &[6, 2],
        0,
    );
    check(
        Rule::Spread,
        3,
        &[seat(2, Room::Replicas(10)), seat(2, Room::Frozen)],
        &[1, 2],
        0,
    );
    check(
        Rule::Spread,
        1,
        &[seat(2, Room::Replicas(10)), seat(2, Room::Frozen)],
        &[0, 1],
        0,
    );
    check(
        Rule::Weights,
        8,
        &[seat(2, Room::Unbounded), seat(2, Room::Frozen)],
        &[6, 2],
        0,
    );
}

#[test]
fn weights_give_what_bounds_allow_and_the_rest_to_the_others() {
    let mut list = vec![
        seat(0, Room::Unbounded),
        seat(0, Room::Unbounded),
        seat(0, Room::Unbounded),
    ];
    list[0].weight = 8;
    list[0].most = 4;
    list[2].least = 5;
    check(Rule::Weights, 12, &list, &[4, 3, 5], 0);
    list[1].most = 1;
    list[2].most = 5;
    check(Rule::Weights, 12, &list, &[4, 1, 5], 2);
}

#[test]
fn the_least_of_each_comes_first_where_there_is_room() {
    let mut list = rooms(&[(0, 100), (0, 2)]);
    list[1].least = 3;
    check(Rule::Spread, 10, &list, &[8, 2], 0);
    check(Rule::Spread, 2, &list, &[0, 2], 0);
}

#[track_caller]
fn check_groups(wanted: u64, skew: Skew, list: &[(u64, u64, &str)], expected: &[u64], unplaced: u64) {
    let list = list.iter().map(|(had, room, group)| Seat {
        group: (*group).to_owned(),
        ..seat(*had, Room::Replicas(*room))
    });
    let shares = share(&unit(), wanted, Rule::Spread, Some(skew), &seats(list));
    let found: Vec<u64> = shares.replicas.values().copied().collect();
    assert_eq!((found.as_slice(), shares.unplaced), (expected, unplaced));
}

#[test]
fn groups_stay_as_even_as_asked() {
    let hard = Skew { max: 1, hard: true };
    check_groups(9, hard, &[(0, 100, "a"), (0, 50, "a"), (0, 3, "b")], &[3, 1, 3], 2);
    check_groups(
        9,
        Skew { max: 1, hard: false },
        &[(0, 100, "a"), (0, 50, "a"), (0, 3, "b")],
        &[4, 2, 3],
        0,
    );
    check_groups(4, hard, &[(4, 9, "a"), (3, 9, "b")], &[2, 2], 0);
    check_groups(6, hard, &[(3, 9, "a"), (3, 9, "b")], &[3, 3], 0);
}

fn any_seat() -> impl Strategy<Value = Seat> {
    let room = prop_oneof![
        4 => (0..50_u64).prop_map(Room::Replicas),
        1 => Just(Room::Frozen),
        1 => Just(Room::Unbounded),
    ];
    (0..20_u64, 0..5_u64, 0..4_u64, 0..40_u64, room, 0..6_usize, 0..3_u8).prop_map(
        |(had, weight, least, more, room, rank, group)| Seat {
            had: had.min(least + more),
            weight,
            least,
            most: least + more,
            room,
            rank,
            group: ["a", "b", "c"][usize::from(group)].to_owned(),
        },
    )
}

fn any_rule() -> impl Strategy<Value = Rule> {
    prop_oneof![Just(Rule::Weights), Just(Rule::Spread), Just(Rule::Binpack)]
}

fn any_skew() -> impl Strategy<Value = Option<Skew>> {
    prop::option::of((1..4_u64, any::<bool>()).prop_map(|(max, hard)| Skew { max, hard }))
}

proptest! {
    #[test]
    fn totals_are_conserved_and_bounds_kept(
        list in prop::collection::vec(any_seat(), 0..12),
        wanted in 0..200_u64,
        rule in any_rule(),
        skew in any_skew(),
    ) {
        let seats = seats(list);
        let shares = share(&unit(), wanted, rule, skew, &seats);
        let sum: u64 = shares.replicas.values().sum();
        prop_assert_eq!(sum + shares.unplaced, wanted);
        prop_assert_eq!(shares.replicas.len(), seats.len());
        for (name, seat) in &seats {
            let share = shares.replicas[name];
            prop_assert!(share <= seat.most, "{} has {} of at most {}", name, share, seat.most);
            match seat.room {
                Room::Frozen => prop_assert!(share <= seat.had, "{} grew to {}", name, share),
                Room::Replicas(room) if rule != Rule::Weights => prop_assert!(share <= room.max(seat.had)),
                Room::Replicas(_) | Room::Unbounded => {}
            }
        }
    }

    #[test]
    fn what_was_shared_out_stays_so(
        list in prop::collection::vec(any_seat(), 1..12),
        wanted in 0..200_u64,
        rule in any_rule(),
        skew in any_skew(),
    ) {
        let mut seats = seats(list);
        let first = share(&unit(), wanted, rule, skew, &seats);
        for (name, seat) in &mut seats {
            seat.had = first.replicas[name];
        }
        prop_assert_eq!(share(&unit(), wanted, rule, skew, &seats).replicas, first.replicas);
    }

    #[test]
    fn more_room_never_leaves_more_unplaced(
        list in prop::collection::vec(any_seat(), 1..12),
        wanted in 0..200_u64,
        more in 1..20_u64,
        at in 0..12_usize,
        rule in prop_oneof![Just(Rule::Spread), Just(Rule::Binpack)],
    ) {
        let mut seats = seats(list);
        let before = share(&unit(), wanted, rule, None, &seats).unplaced;
        let at = name(at % seats.len());
        if let Some(Seat { room: Room::Replicas(room), .. }) = seats.get_mut(&at) {
            *room += more;
        }
        prop_assert!(share(&unit(), wanted, rule, None, &seats).unplaced <= before);
    }

    // One replica more or less moves one replica.
    #[test]
    fn a_small_change_moves_the_fewest_replicas(
        list in prop::collection::vec((0..20_u64, 0..50_u64), 1..12),
        more in 0..10_u64,
        rule in prop_oneof![Just(Rule::Spread), Just(Rule::Binpack)],
    ) {
        let seats = seats(rooms(&list));
        let had: u64 = list.iter().map(|(had, _)| had).sum();
        for wanted in [had + more, had.saturating_sub(more)] {
            let shares = share(&unit(), wanted, rule, None, &seats);
            let moved: u64 = seats.iter().map(|(name, seat)| shares.replicas[name].abs_diff(seat.had)).sum();
            prop_assert_eq!(moved + if wanted > had { shares.unplaced } else { 0 }, wanted.abs_diff(had));
        }
    }
}
